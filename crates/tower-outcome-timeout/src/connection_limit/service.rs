//! The service.

use std::{
    hash::Hash,
    mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use tower_outcome_core::BoxError;
use tower_service::Service;

use super::{ConnectionLimitBody, ConnectionLimitFuture, slots::Slots};

/// Bounds the requests in flight. See [`ConnectionLimitLayer`](crate::ConnectionLimitLayer).
#[derive(Debug)]
pub struct ConnectionLimit<S, K> {
    inner: S,
    slots: Arc<Slots<K>>,
    acquire: Option<Duration>,
}

// === impl ConnectionLimit ===

impl<S, K> ConnectionLimit<S, K> {
    pub(super) const fn new(inner: S, slots: Arc<Slots<K>>, acquire: Option<Duration>) -> Self {
        Self {
            inner,
            slots,
            acquire,
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

impl<S: Clone, K> Clone for ConnectionLimit<S, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            slots: Arc::clone(&self.slots),
            acquire: self.acquire,
        }
    }
}

impl<S, K, B, RB> Service<Request<B>> for ConnectionLimit<S, K>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    K: Eq + Hash,
    RB: Body,
{
    type Response = Response<ConnectionLimitBody<RB>>;
    type Error = BoxError;
    type Future = ConnectionLimitFuture<S::Future, S, B>;

    /// Always ready: which slot is waited for depends on the request, and the inner service is made
    /// ready when the slot is there.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        // Neither is ready yet; the future makes the one ready that it calls.
        let inner = mem::replace(&mut self.inner, clone);
        let (head, body) = request.into_parts();
        let queue = self.slots.queue(&head);
        ConnectionLimitFuture::new(inner, Request::from_parts(head, body), queue, self.acquire)
    }
}
