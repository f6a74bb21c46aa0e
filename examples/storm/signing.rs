//! How every request is signed, and what the venue makes of it.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tower_outcome::sign::{
    Draft, Fresh, Key, Part, Secret, Sign, SignError, SigningTime, Template, TextEncoding, Unit,
    Verifier,
};
use tower_outcome::{Clock, ConfigError, SystemClock};
use tower_outcome_testkit::{Signature, Signed};

/// How long a signature is good for: ten seconds.
const WINDOW: Duration = Duration::from_millis(10 * 50);

/// What this venue wants signed. Both sides go by it.
pub(crate) fn template() -> Result<Template, ConfigError> {
    Template::builder(Key::hmac_sha256(Secret::new("kept to ourselves"))?)
        .key_id("trader")
        .sign([
            Part::KeyId,
            Part::Timestamp(Unit::Millis),
            Part::PathAndQuery,
            Part::Method,
            Part::Body,
        ])
        .signature_as(TextEncoding::Base64)
        .header("x-api-key", [Part::KeyId])
        .header("x-timestamp", [Part::Timestamp(Unit::Millis)])
        .header("x-signature", [Part::Signature])
        .window(WINDOW)
        .build()
}

/// Signs a request as most programs do: when it is made.
pub(crate) fn sign(
    template: &Template,
    request: Request<Bytes>,
) -> Result<Request<Full<Bytes>>, SignError> {
    let now = SigningTime::new(SystemClock::new().now())?;
    let mut draft = Draft::new(request);
    template.sign(&mut draft, &Fresh::new(now))?;
    Ok(draft.into_request().map(Full::new))
}

/// The venue's side: a signature that is right, and not too old.
pub(crate) fn demand() -> Result<Signature, ConfigError> {
    // Right first, however old; what is too old is answered otherwise.
    let verifier = Verifier::new(template()?)?.tolerance(Duration::MAX);
    let clock = SystemClock::new();
    let now = move || clock.now().duration_since(SystemTime::UNIX_EPOCH);
    let verify = move |request: &Request<Bytes>| {
        let verified = verifier.verify(request, SystemClock::new().now()).ok()?;
        Some(Signed::new().time(verified.time()?.since_epoch()))
    };
    Ok(Signature::new(verify).window(WINDOW, move || now().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SECOND;

    fn signed_at(time: SystemTime) -> Request<Bytes> {
        let order = Request::post("http://venue/orders").body(Bytes::from("{}"));
        let mut draft = Draft::new(order.unwrap());
        let time = SigningTime::new(time).unwrap();
        template()
            .unwrap()
            .sign(&mut draft, &Fresh::new(time))
            .unwrap();
        draft.into_request()
    }

    #[test]
    fn a_signature_is_good_for_ten_seconds_and_for_its_request() {
        let verifier = Verifier::new(template().unwrap())
            .unwrap()
            .tolerance(WINDOW);
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let order = signed_at(made);
        assert!(verifier.verify(&order, made + WINDOW).is_ok());
        assert!(verifier.verify(&order, made + WINDOW + SECOND).is_err());
        let other = order.map(|_| Bytes::from("[]"));
        assert!(verifier.verify(&other, made).is_err());
    }
}
