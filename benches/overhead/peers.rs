//! What others offer in the place of our stacks.

use std::{
    future::{Ready, ready},
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use governor::{
    Quota, RateLimiter,
    clock::MonotonicClock,
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed},
};
use http::Response;
use http_body_util::Full;
use pin_project_lite::pin_project;
use tower::{
    BoxError, Layer, Service, ServiceBuilder, layer::layer_fn, retry, timeout::TimeoutLayer,
};
use tower_resilience_ratelimiter::RateLimiterLayer;
use tower_resilience_retry::RetryLayer;
use tower_resilience_timelimiter::TimeLimiterLayer;

use crate::call::{Bare, Burst, Call, Loop, Sent};

/// tower's policy has to keep a copy of whatever it may send again.
#[derive(Clone, Debug)]
pub(crate) struct Cloning {
    pub(crate) left: u32,
}

/// Keeps no copy, and so sends nothing again.
#[derive(Clone, Debug)]
struct NotCloning;

/// Lets a request through if governor does, and fails it otherwise: a limiter in as few lines as it takes.
#[derive(Clone, Debug)]
struct Check<S> {
    inner: S,
    limiter: Arc<Governor>,
}

pin_project! {
    /// The response future of [`Check`].
    #[project = CheckingProj]
    enum Checking<F> {
        Passed { #[pin] future: F },
        Refused,
    }
}

// governor's default clock calibrates itself at first for as long as it likes, which nobody can count.
type Governor = RateLimiter<NotKeyed, InMemoryState, MonotonicClock, NoOpMiddleware<Instant>>;

/// So many requests in a second that none ever waits.
const FAR: u32 = 1_000_000_000;

/// By hand, with nothing boxed: tower's Timeout and Retry, and a layer around governor's `check`.
pub(crate) fn by_hand(sent: Sent) -> Box<dyn Burst> {
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new(Duration::from_secs(10)))
        .layer(retry::RetryLayer::new(Cloning { left: 2 }))
        .layer(layer_fn(check));
    Loop::boxed(stack.service(Bare::<16>), sent)
}

pub(crate) fn by_hand_off(sent: Sent) -> Box<dyn Burst> {
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new(Duration::from_secs(10)))
        .layer(retry::RetryLayer::new(NotCloning))
        .layer(layer_fn(check));
    Loop::boxed(stack.service(Bare::<17>), sent)
}

/// The layers of tower-resilience, each with as little as it can do.
pub(crate) fn tower_resilience(sent: Sent) -> Box<dyn Burst> {
    let limiter = RateLimiterLayer::builder()
        .limit_for_period(FAR as usize)
        .refresh_period(Duration::from_secs(1))
        .build()
        .expect("the limit is valid");
    let retry = RetryLayer::<Call, Response<Full<bytes::Bytes>>, _>::builder()
        .max_attempts(3)
        .exponential_backoff(Duration::from_millis(100))
        .build();
    let timeout = TimeLimiterLayer::builder()
        .timeout_duration(Duration::from_secs(10))
        .cancel_running_future(true)
        .build();
    let stack = ServiceBuilder::new()
        .map_err(|error| BoxError::from(format!("{error:?}")))
        .layer(timeout)
        .layer(retry)
        .layer(limiter);
    Loop::boxed(stack.service(Bare::<18>), sent)
}

fn check<S>(inner: S) -> Check<S> {
    let quota = Quota::per_second(NonZeroU32::new(FAR).expect("more than zero"));
    Check {
        inner,
        limiter: Arc::new(RateLimiter::direct_with_clock(quota, MonotonicClock)),
    }
}

// === impl Cloning ===

impl<Res> retry::Policy<Call, Res, BoxError> for Cloning {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Call, result: &mut Result<Res, BoxError>) -> Option<Ready<()>> {
        if result.is_ok() || self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Call) -> Option<Call> {
        Some(request.clone())
    }
}

// === impl NotCloning ===

impl<Res> retry::Policy<Call, Res, BoxError> for NotCloning {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Call, _: &mut Result<Res, BoxError>) -> Option<Ready<()>> {
        None
    }

    fn clone_request(&mut self, _: &Call) -> Option<Call> {
        None
    }
}

// === impl Check ===

impl<S, R> Service<R> for Check<S>
where
    S: Service<R, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Checking<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        match self.limiter.check() {
            Ok(()) => Checking::Passed {
                future: self.inner.call(request),
            },
            Err(_) => Checking::Refused,
        }
    }
}

impl<F, T> Future for Checking<F>
where
    F: Future<Output = Result<T, BoxError>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            CheckingProj::Passed { future } => future.poll(cx),
            CheckingProj::Refused => Poll::Ready(Err("over the limit".into())),
        }
    }
}

/// Able to retry, and with nothing to retry.
pub(crate) fn tower_resilience_retry(sent: Sent) -> Box<dyn Burst> {
    let layer = RetryLayer::<Call, Response<Full<bytes::Bytes>>, BoxError>::builder()
        .max_attempts(3)
        .exponential_backoff(Duration::from_millis(100))
        .build();
    Loop::boxed(layer.layer(Bare::<19>), sent)
}
