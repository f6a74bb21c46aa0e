//! Puts a replayable body around every request.

use std::task::{Context, Poll};

use http::Request;
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::ReplayBody;

/// Makes the body of each request a [`ReplayBody`].
///
/// Needed only for bodies that are not `Clone`; it goes above every layer that resends.
#[derive(Clone, Copy, Debug)]
pub struct ReplayLayer {
    limit: usize,
}

/// Sends requests with a [`ReplayBody`] in the place of their own body.
///
/// Made by [`ReplayLayer`]. Readiness, response, error and future are those of the inner service.
#[derive(Clone, Copy, Debug)]
pub struct ReplayService<S> {
    inner: S,
    limit: usize,
}

// === impl ReplayLayer ===

impl ReplayLayer {
    /// How much of a body is kept unless told otherwise: 64 KiB.
    ///
    /// Each request in flight may hold as much, so that a thousand of them take 64 MiB at most.
    /// Requests that do something (an order, a payment, a message) are a few kilobytes; uploads
    /// are far beyond any bound that could be paid for every request.
    pub const DEFAULT_LIMIT: usize = 64 * 1024;

    /// Keeps up to [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT) of each body.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// Keeps up to `bytes` bytes of each body.
    ///
    /// 0 is allowed: the types stay the same, nothing is kept, and no body can be replayed.
    #[must_use]
    pub const fn with_limit(bytes: usize) -> Self {
        Self { limit: bytes }
    }
}

impl Default for ReplayLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for ReplayLayer {
    type Service = ReplayService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ReplayService {
            inner,
            limit: self.limit,
        }
    }
}

// === impl ReplayService ===

impl<S> ReplayService<S> {
    /// Returns a reference to the inner service.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B> Service<Request<B>> for ReplayService<S>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let limit = self.limit;
        self.inner
            .call(request.map(|body| ReplayBody::with_limit(body, limit)))
    }
}
