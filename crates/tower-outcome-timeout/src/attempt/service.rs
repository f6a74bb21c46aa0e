//! The service.

use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_outcome_core::{AttemptWitness, BoxError, CallContext, Deadline};
use tower_service::Service;

use super::{SentBody, TimeoutBody, TimeoutFuture, bounds::Bounds, limits::Limits, pace::Pace};

/// Bounds one attempt. See [`TimeoutLayer`](crate::TimeoutLayer).
#[derive(Clone, Copy, Debug)]
pub struct Timeout<S> {
    inner: S,
    bounds: Bounds,
    acts_on_parts: bool,
}

// === impl Timeout ===

impl<S> Timeout<S> {
    pub(super) const fn new(inner: S, bounds: Bounds, acts_on_parts: bool) -> Self {
        Self {
            inner,
            bounds,
            acts_on_parts,
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
        let (head, body) = request.into_parts();
        let bounds = self.bounds.with(&head.extensions);
        let started = Instant::now();
        let limits = Limits::new(started, &bounds, Deadline::of(&head.extensions));
        let (body, witness) = AttemptWitness::new(&head, body, self.acts_on_parts);
        let context = CallContext::of(&head.extensions).cloned();
        if limits.is_over(started) {
            // Nothing of it leaves any more.
            return TimeoutFuture::new(None, witness, None, context, limits, None);
        }
        if let Some(context) = &context {
            context.watch(&witness);
        }
        let pace = Pace::of(&bounds, started, &witness);
        let body = SentBody::new(body, pace.clone());
        let future = self.inner.call(Request::from_parts(head, body));
        TimeoutFuture::new(
            Some(future),
            witness,
            pace,
            context,
            limits,
            bounds.read_idle,
        )
    }
}
