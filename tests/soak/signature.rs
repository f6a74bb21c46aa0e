//! How every request is signed, and what the venue makes of it.

use std::time::SystemTime;

use bytes::Bytes;
use http::Request;
use tower_outcome::{
    Clock, SystemClock, Template, Verifier,
    sign::{Key, Part, Secret, TextEncoding, Unit},
};
use tower_outcome_testkit::{Signature, Signed};

/// Signs the time, the method and the target. Not the body, so that it stays a stream.
pub(crate) fn template() -> Template {
    Template::builder(Key::hmac_sha256(Secret::new("a secret")).expect("a key"))
        .sign([
            Part::Timestamp(Unit::Millis),
            Part::Method,
            Part::PathAndQuery,
        ])
        .signature_as(TextEncoding::Base64)
        .header("x-timestamp", [Part::Timestamp(Unit::Millis)])
        .header("x-signature", [Part::Signature])
        .build()
        .expect("a template")
}

/// The venue's side: a signature that is right.
pub(crate) fn demand() -> Signature {
    let verifier = Verifier::new(template()).expect("a template that can be verified");
    let clock = SystemClock::new();
    let now = move || {
        clock
            .now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
    };
    let verify = move |request: &Request<Bytes>| {
        let verified = verifier.verify(request, SystemClock::new().now()).ok()?;
        Some(Signed::new().time(verified.time()?.since_epoch()))
    };
    Signature::new(verify).window(std::time::Duration::from_secs(30), now)
}
