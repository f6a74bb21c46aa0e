//! The service.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request};
use http_body::Body;
use tokio::time::Instant;
use tower_outcome_core::{BoxError, Deadline, Stage, StageStamp};
use tower_service::Service;

use super::{SentBody, TimeoutBody, TimeoutFuture, bounds::Bounds, limits::Limits, pace::Pace};
use crate::grpc_timeout;

/// Bounds one attempt. See [`TimeoutLayer`](crate::TimeoutLayer).
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    inner: S,
    own: Arc<Own>,
}

/// What the clones of a service share: each layer above that may send again keeps one.
#[derive(Debug)]
struct Own {
    bounds: Bounds,
    stamp: StageStamp,
}

// === impl Timeout ===

impl<S> Timeout<S> {
    pub(super) fn new(inner: S, bounds: Bounds) -> Self {
        Self {
            inner,
            own: Arc::new(Own {
                bounds,
                stamp: StageStamp::new(Stage::Timeout),
            }),
        }
    }

    /// Returns the inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, mutably.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service, by value.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, RB> Service<Request<B>> for Timeout<S>
where
    S: Service<Request<SentBody<B>>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<TimeoutBody<RB>>;
    type Error = BoxError;
    type Future = TimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let stamped = self.own.stamp.leave(&mut head.extensions);
        let bounds = self.own.bounds.with(&head.extensions);
        let started = Instant::now();
        let limits = Limits::new(started, &bounds, Deadline::of(&head.extensions));
        if limits.is_over(started) {
            // Nothing of it leaves any more.
            return TimeoutFuture::new(None, None, limits, false, None, stamped);
        }
        if bounds.grpc_timeout {
            announce(&mut head, started);
        }
        let pace = Pace::of(&bounds, started, &head, &body);
        let body = SentBody::new(body, pace.clone());
        let future = self.inner.call(Request::from_parts(head, body));
        if let Some(pace) = &pace {
            pace.handed_down();
        }
        let (announced, idle) = (bounds.grpc_timeout, bounds.read_idle);
        TimeoutFuture::new(Some(future), pace, limits, announced, idle, stamped)
    }
}

/// Tells the server how long the call has left; what its caller has told it counts if it is less.
#[cold]
fn announce(head: &mut request::Parts, now: Instant) {
    let Some(deadline) = Deadline::of(&head.extensions) else {
        return;
    };
    let left = deadline.remaining(now);
    if grpc_timeout::read(&head.headers).is_none_or(|asked| left < asked) {
        let value = grpc_timeout::write(left);
        head.headers.insert(grpc_timeout::GRPC_TIMEOUT, value);
    }
}
