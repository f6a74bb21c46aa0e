//! The service.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request};
use http_body::Body;
use tower_outcome_core::{
    BoxError, CallContext, Classify, Deadline, HttpClassifier, Phase, Replay, Stage, StageStamp,
    Stamped, peek::PeekBody,
};
use tower_service::Service;

use crate::{
    Passed, Unauthenticated, UnavailableKind,
    course::{self, Course, Unsent},
    credentials::Shared,
    flight::Want,
    future::{ResponseFuture, Start},
    layer::Config,
    obtain::Refusal,
    refresh,
};

/// Attaches a credential to requests; when the server rejects it, refreshes it once for everybody and
/// sends each request once more.
///
/// See the [crate docs](crate) for an example.
#[derive(Debug)]
pub struct AuthRefresh<S, C = HttpClassifier> {
    inner: S,
    config: Arc<Config<C>>,
    stamp: StageStamp,
}

/// By what name a deadline above knows that this layer keeps a request.
pub(crate) const LAYER: &str = "auth_refresh";

// === impl AuthRefresh ===

impl<S, C> AuthRefresh<S, C> {
    pub(crate) fn new(inner: S, config: Arc<Config<C>>) -> Self {
        Self {
            inner,
            config,
            stamp: StageStamp::new(Stage::AuthRefresh),
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

impl<S: Clone, C> Clone for AuthRefresh<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
            stamp: self.stamp.clone(),
        }
    }
}

impl<S, C, B, RB> Service<Request<B>> for AuthRefresh<S, C>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Response = Response<PeekBody<RB>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, S, B, C, RB>;

    /// Always ready. Whether there is a credential is found out by the call; and an inner service that
    /// was made ready would stay reserved while it waits for one.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let mut stamped = Stamped::default();
        let refused = match self.stamp.pass(&mut head.extensions) {
            Ok(left) => {
                stamped = left;
                None
            }
            Err(error) => Some(error),
        };
        let context = CallContext::of(&head.extensions).cloned();
        let hold = context
            .as_ref()
            .map(|context| context.hold(LAYER, Phase::AwaitingToken));
        let shared = &self.config.credentials.0;
        let start = if let Some(error) = refused {
            Start::Refuse(error)
        } else if Unauthenticated::is_in(&head.extensions) {
            Start::Pass
        } else if !belongs(shared, &head) {
            pass(shared, &head)
        } else if refresh::is_refreshing(shared) {
            Start::Refuse(recursive(shared))
        } else if let Some(held) = shared.fresh() {
            if held.is_in(&head.headers) {
                Start::Pass
            } else {
                Start::Attach(held)
            }
        } else {
            Start::Obtain(shared.obtain(Want::Any, Deadline::of(&head.extensions)))
        };
        // Neither of the two is ready: the future makes the one that it takes along so.
        let clone = self.inner.clone();
        let service = mem::replace(&mut self.inner, clone);
        let course = Course {
            config: Arc::clone(&self.config),
            service,
            unsent: Some(Unsent { head, body }),
            held: None,
            call: None,
            spare: None,
            context,
            hold,
            stamped,
        };
        ResponseFuture::new(start, course)
    }
}

/// What becomes of a request that is part of the refresh for which it would wait.
#[cold]
fn recursive(shared: &Shared) -> BoxError {
    course::not_sent(Refusal {
        why: shared.unavailable(UnavailableKind::Recursive),
        after: None,
    })
}

/// Whether a request is one for which the credential is meant.
#[inline]
fn belongs(shared: &Shared, head: &request::Parts) -> bool {
    let origins = &*shared.origins;
    origins.is_empty()
        || origins
            .iter()
            .any(|origin| origin.is_of(head).unwrap_or(true))
}

/// What becomes of a request for which it is not meant.
#[cold]
fn pass(shared: &Shared, head: &request::Parts) -> Start {
    shared.observer.passed(&Passed {
        name: &shared.name,
        host: head.uri.host(),
    });
    Start::Pass
}
