//! The service.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request};
use http_body::Body;
use tokio::time::Instant;
use tower_outcome_core::{
    Attempt, BoxError, CallContext, Classify, Deadline, HttpClassifier, Repeatable, Stage,
    StageStamp, replay::HeadCopy,
};
use tower_service::Service;

use crate::{
    Keep, ReconcileBody, Reconciler,
    config::Config,
    future::{ResponseFuture, Start},
    kept::{Copy, Kept},
};

/// Asks the server what became of a request whose outcome is unknown.
///
/// See the [crate docs](crate) for an example.
pub struct Reconcile<S, R, C = HttpClassifier> {
    inner: S,
    config: Arc<Config<R, C>>,
    stamp: StageStamp,
}

// === impl Reconcile ===

impl<S, R, C> Reconcile<S, R, C> {
    pub(crate) fn new(inner: S, config: Arc<Config<R, C>>) -> Self {
        Self {
            inner,
            config,
            stamp: StageStamp::new(Stage::Reconcile),
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

impl<S: Clone, R, C: Classify> Reconcile<S, R, C> {
    /// Keeps what it takes to ask about a request, if it may come to that.
    #[inline]
    fn keep(&self, head: &mut request::Parts) -> Option<Kept<S, C::Call>> {
        let config = &*self.config;
        let call = config.classifier.call(head);
        let repeatable = config.classifier.repeatable(&call);
        // What is safe to repeat never ends unknown.
        if repeatable.is_safe() {
            return None;
        }
        let attempt = Attempt::of(&head.extensions);
        let asks = repeatable == Repeatable::No || attempt.maybe_applied_before();
        if !asks && config.resolutions.is_none() {
            return None;
        }
        let id = config.identify.find(head)?;
        let resolutions = config.resolutions.as_ref();
        let registration = resolutions.map(|resolutions| resolutions.register(&id));
        let copy = if asks {
            let context = CallContext::of(&head.extensions).cloned();
            let copied = match config.keep {
                Keep::Head => HeadCopy::of(head),
                Keep::Id => None,
            };
            let context = match context {
                None if config.signed => {
                    let context = CallContext::new();
                    context.begin_attempt();
                    context.note_repeatable(repeatable);
                    context.put(&mut head.extensions);
                    Some(context)
                }
                context => context,
            };
            Some(Copy {
                service: self.inner.clone(),
                deadline: Deadline::of(&head.extensions),
                head: copied,
                context,
                sent: Instant::now(),
            })
        } else {
            None
        };
        Some(Kept {
            call,
            attempt,
            id,
            registration,
            copy,
        })
    }
}

impl<S: Clone, R, C> Clone for Reconcile<S, R, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
            stamp: self.stamp.clone(),
        }
    }
}

impl<S, R, C, B, RB> Service<Request<B>> for Reconcile<S, R, C>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    R: Reconciler<S, B>,
    B: 'static,
    C: Classify + Send + Sync + 'static,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Response = Response<ReconcileBody<RB>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, S, B, R, C, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let stamped = match self.stamp.pass(&mut head.extensions) {
            Ok(stamped) => stamped,
            Err(error) => return ResponseFuture::new(Start::Refuse(error), &self.config),
        };
        let kept = self.keep(&mut head);
        if let Some(kept) = &kept {
            if let Some(known) = kept.known() {
                kept.tell(&self.config, &known);
                return ResponseFuture::new(
                    Start::Answer(kept.repeatable(&self.config), known),
                    &self.config,
                );
            }
        }
        let sending = self.inner.call(Request::from_parts(head, body));
        ResponseFuture::new(Start::Send(sending, kept, stamped), &self.config)
    }
}

impl<S: fmt::Debug, R, C: fmt::Debug> fmt::Debug for Reconcile<S, R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconcile")
            .field("inner", &self.inner)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
