//! The service.

use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_outcome_core::{BoxError, Classify, HttpClassifier, Stage, StageStamp, peek::PeekBody};
use tower_service::Service;

use crate::{AsyncSign, Draft, ResponseFuture, SignedBody, layer::Config};

/// Signs each request last, after everything above has waited.
///
/// See the [crate docs](crate) for an example.
pub struct SignService<S, A, C = HttpClassifier> {
    inner: S,
    own: Arc<Own<A, C>>,
}

/// What the clones of a service share, so that a clone costs one count.
struct Own<A, C> {
    config: Arc<Config<A, C>>,
    stamp: StageStamp,
}

// === impl SignService ===

impl<S, A, C> SignService<S, A, C> {
    pub(crate) fn new(inner: S, config: Arc<Config<A, C>>) -> Self {
        Self {
            inner,
            own: Arc::new(Own {
                config,
                stamp: StageStamp::new(Stage::Sign),
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

impl<S: Clone, A, C> Clone for SignService<S, A, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            own: Arc::clone(&self.own),
        }
    }
}

/// Prints nothing of the signer.
impl<S: fmt::Debug, A, C> fmt::Debug for SignService<S, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignService")
            .field("inner", &self.inner)
            .field("config", &self.own.config)
            .finish()
    }
}

impl<S, A, C, B, RB> Service<Request<B>> for SignService<S, A, C>
where
    S: Service<Request<SignedBody<B>>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    A: AsyncSign,
    C: Classify,
    B: Body + Unpin,
    B::Error: Into<BoxError>,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Response = Response<PeekBody<RB>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, S, B, A, C, RB>;

    /// Always ready. The body has to be read first, and the turn of the key to come; an inner service
    /// that was made ready would stay reserved for all of that, and its readiness would age.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Neither of the two is ready: the future makes the one that it takes along so.
        let clone = self.inner.clone();
        let service = mem::replace(&mut self.inner, clone);
        let Own { config, stamp } = &*self.own;
        let (head, body) = request.into_parts();
        // At once what it is going to be, so that it is moved once less.
        let mut draft = Draft::from_parts(head, None);
        match stamp.pass(&mut draft.head_mut().extensions) {
            Ok(stamped) => ResponseFuture::new(service, draft, body, stamped, Arc::clone(config)),
            Err(error) => ResponseFuture::refused(service, body, error, Arc::clone(config)),
        }
    }
}
