//! Our own stacks: several layers around one service.

use tower::ServiceBuilder;
use tower_outcome::{DeadlineLayer, Outbound, RetryLayer, TimeoutLayer, Timeouts};

use crate::{
    call::{Bare, Burst, Loop, Sent},
    cases::{auth_refresh, off, rate_limit},
    signer::sign,
};

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
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new())
        .layer(auth_refresh(true))
        .layer(rate_limit())
        .layer(sign("https://venue.example"))
        .layer(TimeoutLayer::default());
    Loop::boxed(stack.service(Bare::<24>), sent)
}

/// The same layers, put into their order by the typed builder.
pub(crate) fn five_built(sent: Sent) -> Box<dyn Burst> {
    let outbound = Outbound::builder()
        .timeouts(TimeoutLayer::default())
        .retry(RetryLayer::new())
        .auth_refresh(auth_refresh(true))
        .rate_limit(rate_limit())
        .sign(sign("https://venue.example"))
        .without_witness()
        .build()
        .expect("a stack that can work");
    Loop::boxed(outbound.service(Bare::<25>), sent)
}

/// All that a program has in earnest.
pub(crate) fn seven_built(sent: Sent) -> Box<dyn Burst> {
    let outbound = Outbound::builder()
        .timeouts(Timeouts::builder())
        .retry(RetryLayer::new())
        .auth_refresh(auth_refresh(true))
        .rate_limit(rate_limit())
        .sign(sign("https://venue.example"))
        .build()
        .expect("a stack that can work");
    Loop::boxed(outbound.service(Bare::<26>), sent)
}
