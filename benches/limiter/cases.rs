//! What is measured while nobody waits. A case more is an entry more in [`ALL`].

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use crate::{ours, peers};

/// Makes calls, one after the other.
pub(crate) type Burst = Box<dyn Fn(u32) + Send + Sync>;

/// One thing to measure.
pub(crate) struct Case {
    /// As it appears in the output.
    pub(crate) name: &'static str,
    /// What it stands for, in a few words.
    pub(crate) about: &'static str,
    /// How many times governor's time it may take.
    pub(crate) bound: Option<f64>,
    /// How many allocations it may make.
    pub(crate) allocations: Option<f64>,
    /// Sets up its limiter.
    pub(crate) start: fn() -> Burst,
}

/// In the order of the output. The first two are what times are compared with.
pub(crate) const ALL: &[Case] = &[
    Case {
        name: "governor_check",
        about: "governor, direct, with its own clock",
        bound: None,
        allocations: None,
        start: peers::governor_check,
    },
    Case {
        name: "governor_check_std",
        about: "the same with the standard library's clock",
        bound: None,
        allocations: None,
        start: peers::governor_check_std,
    },
    Case {
        name: "leaky_bucket_try_acquire",
        about: "leaky-bucket, fair",
        bound: None,
        allocations: None,
        start: peers::leaky_bucket_try_acquire,
    },
    Case {
        name: "semaphore_acquire",
        about: "tokio's Semaphore, acquired and given back",
        bound: None,
        allocations: None,
        start: peers::semaphore_acquire,
    },
    Case {
        name: "instant_now",
        about: "tokio's clock alone",
        bound: None,
        allocations: None,
        start: peers::instant_now,
    },
    Case {
        name: "outcome_try_acquire",
        about: "an exact sliding window that is always turning over",
        bound: Some(3.0),
        allocations: Some(0.0),
        start: ours::try_acquire,
    },
    Case {
        name: "outcome_acquire",
        about: "the same, by the future",
        bound: None,
        allocations: Some(0.0),
        start: ours::acquire,
    },
    Case {
        name: "outcome_until_response",
        about: "the same, held until the response is reported",
        bound: Some(5.0),
        allocations: Some(0.0),
        start: ours::until_response,
    },
    Case {
        name: "outcome_three_limits",
        about: "two windows and a bucket, all or nothing",
        bound: None,
        allocations: Some(0.0),
        start: ours::three_limits,
    },
    Case {
        name: "outcome_token_bucket",
        about: "a token bucket",
        bound: None,
        allocations: Some(0.0),
        start: ours::token_bucket,
    },
    Case {
        name: "governor_refusal",
        about: "governor, with nothing left",
        bound: None,
        allocations: None,
        start: peers::governor_refusal,
    },
    Case {
        name: "outcome_refusal",
        about: "a window with nothing left",
        bound: None,
        allocations: None,
        start: ours::refusal,
    },
];

/// Returns the case with that name.
pub(crate) fn named(name: &str) -> Option<&'static Case> {
    ALL.iter().find(|case| case.name == name)
}

/// Returns what a future says when it is asked once, without an executor.
#[inline]
pub(crate) fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing is to be waited for"),
    }
}
