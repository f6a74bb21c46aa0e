//! Our own stacks: several layers around one service.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tower::ServiceBuilder;
use tower_outcome::{
    DeadlineLayer, Draft, Fresh, RetryLayer, Sign, SignError, SignLayer, TimeoutLayer,
    sign::{Needs, Validity},
};

use crate::{
    call::{Bare, Burst, Loop, Sent},
    cases::{auth_refresh, off, rate_limit},
};

/// Signs by setting a header that is there already, so that the layers are measured and no cryptography.
struct Header(HeaderValue);

const SIGNED: HeaderName = HeaderName::from_static("x-signed");

/// One bound over everything, as `hand_three` and `tower_resilience_three` have it.
pub(crate) fn three(sent: Sent) -> Box<dyn Burst> {
    let stack = ServiceBuilder::new()
        .layer(DeadlineLayer::default())
        .layer(RetryLayer::new())
        .layer(rate_limit());
    Loop::boxed(stack.service(Bare::<20>), sent)
}

pub(crate) fn three_off(sent: Sent) -> Box<dyn Burst> {
    let stack = ServiceBuilder::new()
        .layer(DeadlineLayer::default())
        .layer(off())
        .layer(rate_limit());
    Loop::boxed(stack.service(Bare::<21>), sent)
}

/// One bound for each attempt.
pub(crate) fn three_attempt(sent: Sent) -> Box<dyn Burst> {
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new())
        .layer(rate_limit())
        .layer(TimeoutLayer::default());
    Loop::boxed(stack.service(Bare::<22>), sent)
}

pub(crate) fn three_attempt_off(sent: Sent) -> Box<dyn Burst> {
    let stack = ServiceBuilder::new()
        .layer(off())
        .layer(rate_limit())
        .layer(TimeoutLayer::default());
    Loop::boxed(stack.service(Bare::<23>), sent)
}

pub(crate) fn five(sent: Sent) -> Box<dyn Burst> {
    let signer = Header(HeaderValue::from_static(
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ));
    let sign = SignLayer::new(signer, "https://venue.example").expect("an origin");
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new())
        .layer(auth_refresh(true))
        .layer(rate_limit())
        .layer(sign)
        .layer(TimeoutLayer::default());
    Loop::boxed(stack.service(Bare::<24>), sent)
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
