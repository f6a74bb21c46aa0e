//! Requests, times, and what came of signing them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use tower_outcome_sign::{Draft, Fresh, Sign, SignError, SigningTime, Unit};

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn at_ms(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH + ms(milliseconds)
}

pub(crate) fn fresh_ms(milliseconds: u64) -> Fresh {
    Fresh::new(SigningTime::from_unit(milliseconds, Unit::Millis).unwrap())
}

pub(crate) fn request(method: &str, uri: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    Request::builder()
        .method(method)
        .uri(uri)
        .body(body.into())
        .unwrap()
}

/// Signs a request, as a layer would.
pub(crate) fn sign(
    signer: &impl Sign,
    request: Request<Bytes>,
    fresh: &Fresh,
) -> Result<Request<Bytes>, SignError> {
    let mut draft = Draft::new(request);
    signer.sign(&mut draft, fresh)?;
    Ok(draft.into_request())
}

#[track_caller]
pub(crate) fn header<'a>(request: &'a Request<Bytes>, name: &str) -> &'a str {
    request.headers()[name].to_str().unwrap()
}
