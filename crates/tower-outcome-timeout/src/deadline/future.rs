//! The response future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::Response;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_outcome_core::{
    BoxError, CallContext, CallReport, Delivery, Failure, GivenUp, NotRetried, Outcome, Phase,
    Reason, Repeatable,
};

use super::{
    DeadlineBody,
    abandoned::{Abandoned, OnAbandoned},
};
use crate::{Bound, Elapsed};

pin_project! {
    /// The response future of [`DeadlineService`](crate::DeadlineService).
    ///
    /// A response that is ready wins over the deadline. Dropping it drops the call, of which a hook
    /// may be told; see [`on_abandoned`](crate::DeadlineLayerBuilder::on_abandoned).
    pub struct DeadlineFuture<F> {
        // `None` if the deadline was over to begin with, and once it has struck.
        #[pin]
        inner: Option<F>,
        span: Option<Span>,
        started: bool,
        // `None` if the deadline was over to begin with, and once it was handed on to the body.
        context: Option<CallContext>,
        // Whether the context is of this layer, and not of one above.
        owned: bool,
        repeatable: Repeatable,
        // Gone once the call is done.
        watch: Option<OnAbandoned>,
        // Made when the first poll did not end the call, and handed on to the body.
        timer: Option<Pin<Box<Sleep>>>,
    }

    impl<F> PinnedDrop for DeadlineFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // Before the inner future goes, which may still be at work.
            if let (Some(watch), Some(context)) = (this.watch.take(), &*this.context) {
                abandon(watch, context, give_up(context, *this.owned), *this.repeatable);
            }
        }
    }
}

/// The time that a call has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) started: Instant,
    pub(super) end: Instant,
}

/// What it takes to tell what becomes of a call whose head is here if the deadline strikes during its
/// body.
#[derive(Debug)]
pub(super) struct IfOver {
    /// What the head has said, unless that was a success.
    reported: Option<Outcome>,
    context: Option<CallContext>,
    repeatable: Repeatable,
}

// === impl DeadlineFuture ===

impl<F> DeadlineFuture<F> {
    #[inline]
    pub(super) const fn new(
        inner: F,
        span: Option<Span>,
        context: CallContext,
        owned: bool,
        repeatable: Repeatable,
        watch: Option<OnAbandoned>,
    ) -> Self {
        Self {
            inner: Some(inner),
            span,
            started: true,
            context: Some(context),
            owned,
            repeatable,
            watch,
            timer: None,
        }
    }

    pub(super) const fn expired(span: Option<Span>, repeatable: Repeatable) -> Self {
        Self {
            inner: None,
            span,
            started: false,
            context: None,
            owned: true,
            repeatable,
            watch: None,
            timer: None,
        }
    }
}

impl<F, RB, E> Future for DeadlineFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<DeadlineBody<RB>>, BoxError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        if let Some(inner) = this.inner.as_pin_mut() {
            if let Poll::Ready(result) = inner.poll(cx) {
                // The caller learns of it.
                *this.watch = None;
                let response = match result {
                    Ok(response) => response,
                    Err(error) => return Poll::Ready(Err(error.into())),
                };
                let reported = CallReport::of(response.extensions()).map(CallReport::outcome);
                let if_over = IfOver {
                    reported: reported.filter(|outcome| !outcome.is_success()),
                    context: this.context.take(),
                    repeatable: *this.repeatable,
                };
                let (span, timer) = (*this.span, this.timer.take());
                return Poll::Ready(Ok(
                    response.map(|body| DeadlineBody::new(body, span, if_over, timer))
                ));
            }
        }
        let failure = ready!(self.poll_deadline(cx));
        Poll::Ready(Err(failure.into()))
    }
}

impl<F> DeadlineFuture<F> {
    /// Waits until the deadline strikes.
    #[inline(never)]
    fn poll_deadline(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Failure> {
        let mut this = self.project();
        let Some(span) = *this.span else {
            return Poll::Pending;
        };
        if !*this.started {
            return Poll::Ready(not_started(*this.repeatable));
        }
        let Some(context) = this.context else {
            // Polled after completion, which the contract of futures leaves open.
            return Poll::Pending;
        };
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(span.end)));
        ready!(timer.as_mut().poll(cx));
        *this.watch = None;
        let repeatable = context.repeatable().unwrap_or(*this.repeatable);
        // Before the inner future goes, which may still be at work.
        let given_up = give_up(context, *this.owned);
        let failure = struck(span, context, given_up, repeatable);
        this.inner.set(None);
        Poll::Ready(failure)
    }
}

/// What becomes of a call whose deadline was over before it began.
fn not_started(repeatable: Repeatable) -> Failure {
    let elapsed = Elapsed::new(Bound::Deadline, Duration::ZERO, Phase::Queued);
    let failure = Failure::not_sent(Reason::LocalLimit, elapsed);
    let report = CallReport::new(failure.outcome(), failure.delivery(), repeatable)
        .with_attempts(0, Duration::ZERO)
        .with_not_retried(Some(NotRetried::Deadline));
    failure.with_report(report)
}

/// What becomes of a call at its deadline.
fn struck(span: Span, context: &CallContext, given_up: GivenUp, repeatable: Repeatable) -> Failure {
    let GivenUp {
        phase, delivery, ..
    } = given_up;
    let outcome = given_up.outcome(Reason::TimedOut, repeatable);
    let limit = span.end.saturating_duration_since(span.started);
    let elapsed = Elapsed::new(Bound::Deadline, limit, phase);
    let report = CallReport::new(outcome, delivery, repeatable)
        .with_attempts(attempts(context, delivery), Duration::ZERO)
        .with_not_retried(Some(NotRetried::Deadline));
    let failure = Failure::new(outcome, delivery, elapsed).with_report(report);
    match context.idempotency_key() {
        Some(key) => failure.with_idempotency_key(key),
        None => failure,
    }
}

/// A call within another may be followed by more.
fn give_up(context: &CallContext, owned: bool) -> GivenUp {
    if owned {
        context.give_up()
    } else {
        context.give_up_attempt()
    }
}

#[cold]
fn abandon(watch: OnAbandoned, context: &CallContext, given_up: GivenUp, repeatable: Repeatable) {
    let repeatable = context.repeatable().unwrap_or(repeatable);
    watch(Abandoned {
        outcome: given_up.outcome(Reason::TimedOut, repeatable),
        delivery: given_up.delivery,
        phase: given_up.phase,
        attempts: attempts(context, given_up.delivery),
    });
}

/// Where no layer counts, what may have been sent was sent once.
fn attempts(context: &CallContext, delivery: Delivery) -> u32 {
    let sent = u32::from(delivery != Delivery::NotSent);
    context.attempts().max(sent)
}

impl<F> fmt::Debug for DeadlineFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineFuture")
            .field("span", &self.span)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

// === impl IfOver ===

impl IfOver {
    #[cold]
    pub(super) fn outcome(&self) -> Outcome {
        if let Some(reported) = self.reported {
            return reported;
        }
        let told = self.context.as_ref().and_then(CallContext::repeatable);
        let reason = Reason::TimedOut;
        // The server has probably acted, and the answer is lost.
        if told.unwrap_or(self.repeatable).is_yes() {
            Outcome::Retryable {
                reason,
                after: None,
            }
        } else {
            Outcome::Unknown { reason }
        }
    }
}
