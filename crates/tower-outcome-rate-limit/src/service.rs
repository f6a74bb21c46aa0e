//! The service.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_outcome_core::{
    BoxError, CallContext, Classify, HttpClassifier, Phase, Stage, StageStamp, peek::PeekBody,
};
use tower_service::Service;

use crate::{
    future::{ResponseFuture, Unsent},
    layer::Config,
};

/// Lets requests through as a budget allows, in the order of their classes.
///
/// See the [crate docs](crate) for an example.
#[derive(Debug)]
pub struct RateLimit<S, C = HttpClassifier> {
    inner: S,
    own: Arc<Own<C>>,
}

/// What the clones of a service share, so that a clone costs one count.
#[derive(Debug)]
struct Own<C> {
    config: Arc<Config<C>>,
    stamp: StageStamp,
}

// === impl RateLimit ===

impl<S, C> RateLimit<S, C> {
    pub(crate) fn new(inner: S, config: Arc<Config<C>>) -> Self {
        Self {
            inner,
            own: Arc::new(Own {
                config,
                stamp: StageStamp::new(Stage::RateLimit),
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

impl<S: Clone, C> Clone for RateLimit<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            own: Arc::clone(&self.own),
        }
    }
}

impl<S, C, B, RB> Service<Request<B>> for RateLimit<S, C>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    C: Classify,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Response = Response<PeekBody<RB>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, S, B, C, RB>;

    /// Always ready. What a request has to wait for is known only when it is here; and an inner
    /// service that was made ready would stay reserved for the whole wait.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Own { config, stamp } = &*self.own;
        let config = Arc::clone(config);
        // Neither of the two is ready: the future makes the one that it takes along so.
        let clone = self.inner.clone();
        let service = mem::replace(&mut self.inner, clone);
        let (head, body) = request.into_parts();
        // At once what it is going to be, so that it is moved once less.
        let mut unsent = Unsent {
            service,
            head,
            body,
        };
        let extensions = &mut unsent.head.extensions;
        let stamped = match stamp.pass(extensions) {
            Ok(stamped) => stamped,
            Err(error) => return ResponseFuture::refused(error, config),
        };
        let context = CallContext::of(extensions);
        let hold = context.map(|context| context.hold("rate_limit", Phase::Queued));
        ResponseFuture::new(unsent, hold, stamped, config)
    }
}
