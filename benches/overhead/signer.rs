//! A signer without cryptography.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tower_outcome::{
    Draft, Fresh, Sign, SignError, SignLayer,
    sign::{Needs, Validity},
};

/// Signs by setting a header that is there already, so that the layers are measured and no cryptography.
pub(crate) struct Header(HeaderValue);

pub(crate) const SIGNED: HeaderName = HeaderName::from_static("x-signed");

/// As long as the hexadecimal form of an HMAC-SHA256.
pub(crate) const SIGNATURE: HeaderValue =
    HeaderValue::from_static("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");

/// Signs what goes to an origin.
pub(crate) fn sign(origin: &str) -> SignLayer<Header> {
    SignLayer::new(Header(SIGNATURE), origin).expect("an origin")
}

// === impl Header ===

impl Sign for Header {
    fn needs(&self) -> Needs {
        Needs::HEAD
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        draft.set_header(SIGNED, self.0.clone())?;
        Ok(Validity::for_window(fresh.time(), Duration::from_secs(5)))
    }
}
