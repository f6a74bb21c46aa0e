//! The service.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request};
use http_body::Body;
use tokio::time::Instant;
use tower_outcome_core::{
    BoxError, BrokenBody, CallContext, Classify, HttpClassifier, NotRetried, Replay, Stage,
    StageStamp, Stamped, peek::PeekBody, replay::HeadCopy,
};
use tower_service::Service;

use crate::{
    NoResend,
    config::{BudgetSource, Config},
    course::{Course, Spare},
    future::ResponseFuture,
};

/// Sends a request again when its outcome says that this is safe and may help.
///
/// See the [crate docs](crate) for an example.
#[derive(Debug)]
pub struct Retry<S, C = HttpClassifier> {
    inner: S,
    config: Arc<Config<C>>,
    stamp: StageStamp,
}

// === impl Retry ===

impl<S, C> Retry<S, C> {
    pub(crate) fn new(inner: S, config: Arc<Config<C>>) -> Self {
        Self {
            inner,
            config,
            stamp: StageStamp::new(Stage::Retry),
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

impl<S: Clone, C> Clone for Retry<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
            stamp: self.stamp.clone(),
        }
    }
}

impl<S, C, B, RB> Service<Request<B>> for Retry<S, C>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Response = Response<PeekBody<RB, BrokenBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, S, B, C, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let config = &*self.config;
        let (mut head, body) = request.into_parts();
        let stamped = match self.stamp.pass(&mut head.extensions) {
            Ok(stamped) => stamped,
            Err(error) => return self.refuse(&head, error),
        };
        let context = CallContext::of(&head.extensions).cloned();
        let call = config.classifier.call(&head);
        let budget = match &config.budget {
            BudgetSource::Shared(_) => None,
            BudgetSource::ByRequest(choose) => Some(choose(&head)),
        };
        if let Some(context) = &context {
            context.begin_attempt_of(config.classifier.repeatable(&call));
        }
        // The clone is not ready, and is made so before it is called; the instance that was made
        // ready is the one called now.
        let spare = if may_resend(config, &head) {
            match (body.replay(), HeadCopy::of(&head)) {
                (Some(body), Some(head)) => Ok(Spare {
                    service: self.inner.clone(),
                    head,
                    body,
                    started: config.elapsed.map(|_| Instant::now()),
                }),
                _ => Err(NotRetried::BodyNotReplayable),
            }
        } else {
            Err(NotRetried::SwitchedOff)
        };
        let sending = self.inner.call(Request::from_parts(head, body));
        ResponseFuture::new(
            sending,
            Course {
                config: Arc::clone(&self.config),
                call,
                spare,
                budget,
                context,
                stamped,
            },
        )
    }
}

impl<S, C> Retry<S, C>
where
    C: Classify,
{
    #[cold]
    fn refuse<F, B, RB>(
        &self,
        head: &request::Parts,
        error: BoxError,
    ) -> ResponseFuture<F, S, B, C, RB> {
        ResponseFuture::refused(
            error,
            Course {
                config: Arc::clone(&self.config),
                call: self.config.classifier.call(head),
                spare: Err(NotRetried::SwitchedOff),
                budget: None,
                context: None,
                stamped: Stamped::default(),
            },
        )
    }
}

fn may_resend<C>(config: &Config<C>, head: &request::Parts) -> bool {
    config.max_attempts > 1
        && !NoResend::is_in(&head.extensions)
        && config.resend_if.as_ref().is_none_or(|allow| allow(head))
}
