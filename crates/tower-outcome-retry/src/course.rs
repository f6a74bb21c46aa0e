//! The course of one call: what was tried, and what is to be done next.

use std::{pin::Pin, sync::Arc, time::Duration};

use http::{Response, response};
use tokio::time::{Instant, Sleep, sleep};
use tower_outcome_core::{
    Attempt, BoxError, BrokenBody, CallContext, CallReport, Classify, Decision, Delivery, Failure,
    HintForm, NotRetried, Outcome, Phase, Reason, Replay, Settling, Stamped,
    peek::{Peek, PeekBody},
    replay::HeadCopy,
};

use crate::{
    Budget,
    budget::Reservation,
    config::{BudgetSource, Config},
};

/// What one call needs to know between its attempts.
pub(crate) struct Course<S, B, C: Classify> {
    pub(crate) config: Arc<Config<C>>,
    pub(crate) call: C::Call,
    /// What it takes to send the request again, or why that is impossible.
    pub(crate) spare: Result<Spare<S, B>, NotRetried>,
    /// The call's own budget; `None` is the layer's.
    pub(crate) budget: Option<Budget>,
    pub(crate) context: Option<CallContext>,
    pub(crate) stamped: Stamped,
}

/// What it takes to send the request again.
pub(crate) struct Spare<S, B> {
    pub(crate) service: S,
    pub(crate) head: HeadCopy,
    pub(crate) body: B,
    /// When the first attempt started, where somebody asks.
    pub(crate) started: Option<Instant>,
}

/// What a call has been through, if its first attempt was not all.
pub(crate) struct Trail {
    pub(crate) attempt: Attempt,
    pub(crate) waited: Duration,
    /// What layers below have sent again within these attempts.
    resent_below: u32,
    /// Failures since the backoff began or was reset.
    failures: u32,
    furthest: Delivery,
    /// What the attempt under way has taken from the budget; decided when it has ended.
    pub(crate) reservation: Option<Reservation>,
}

/// What is held while the next attempt is not sent yet.
pub(crate) struct Waiting<RB> {
    pub(crate) trail: Trail,
    /// `None` once the wait is over.
    pub(crate) sleep: Option<Pin<Box<Sleep>>>,
    /// Set once the service is not ready at the end of the wait.
    pub(crate) expiry: Option<Pin<Box<Sleep>>>,
    pub(crate) last: Last<RB>,
    /// Tells that a layer below knows by now what became of the last attempt.
    pub(crate) settling: Option<Arc<dyn Settling>>,
    /// Whether that is so: then the request goes down for the answer, and is no attempt.
    pub(crate) settled: bool,
    /// Taken when the attempt is scheduled, so that retries which are still waiting count.
    pub(crate) reservation: Option<Reservation>,
}

/// The result of the last attempt, kept until the next one is sent: whatever prevents that replaces
/// nothing.
pub(crate) struct Last<RB> {
    pub(crate) result: LastResult<RB>,
    pub(crate) decision: Decision,
}

pub(crate) enum LastResult<RB> {
    /// The body is read during the backoff, and kept as long as the response may be returned.
    Response(response::Parts, Peek<RB>),
    Error(BoxError),
}

/// What a call ends with.
pub(crate) type Output<RB> = Result<Response<PeekBody<RB, BrokenBody>>, BoxError>;

/// What to do next.
pub(crate) enum Step<RB> {
    Return(Output<RB>),
    Wait(Box<Waiting<RB>>),
}

// === impl Course ===

impl<S, B, C: Classify> Course<S, B, C> {
    /// Notes that the call succeeded on its first attempt, by the head alone: the hot path. Returns
    /// what becomes of the body's error, if it has one.
    #[inline]
    pub(crate) fn succeed(&self) -> BrokenBody {
        self.budget().deposit();
        if let Some(context) = &self.context {
            note_success(context);
        }
        let classifier = &self.config.classifier;
        BrokenBody::new(classifier.broken_body(&self.call, Attempt::FIRST))
    }

    /// The instant after which no attempt may start, and what stands for it.
    pub(crate) fn limit(&self) -> Option<(Instant, NotRetried)> {
        let spare = self.spare.as_ref().ok()?;
        let deadline = spare
            .head
            .deadline()
            .map(|deadline| (deadline.instant(), NotRetried::Deadline));
        let elapsed = match (self.config.elapsed, spare.started) {
            (Some(limit), Some(started)) => started
                .checked_add(limit)
                .map(|instant| (instant, NotRetried::Elapsed)),
            _ => None,
        };
        [deadline, elapsed]
            .into_iter()
            .flatten()
            .min_by_key(|(instant, _)| *instant)
    }

    fn budget(&self) -> &Budget {
        match (&self.budget, &self.config.budget) {
            (Some(budget), _) | (None, BudgetSource::Shared(budget)) => budget,
            // A budget by request was chosen when the call began.
            (None, BudgetSource::ByRequest(_)) => &UNLIMITED,
        }
    }
}

/// Most calls have no context: nobody above asks.
#[cold]
fn note_success(context: &CallContext) {
    context.end_attempt(Outcome::Success, Delivery::Answered);
    context.enter(Phase::ReadingBody);
}

static UNLIMITED: Budget = Budget::unlimited();

impl<S, B: Replay, C: Classify> Course<S, B, C> {
    /// An attempt has ended: returns its result, or schedules the next one.
    pub(crate) fn conclude<RB>(
        &self,
        mut trail: Trail,
        result: LastResult<RB>,
        mut decision: Decision,
    ) -> Step<RB> {
        let body_failed = self.spare.as_ref().is_ok_and(|spare| spare.body.failed());
        if let (true, Outcome::Retryable { .. }) = (body_failed, decision.outcome) {
            // The caller's own error: the next attempt would meet it again.
            decision.outcome = Outcome::Permanent {
                reason: Reason::RequestBody,
            };
        }
        if let Some(below) = result.report() {
            let again = below.attempts().saturating_sub(1);
            trail.resent_below = trail.resent_below.saturating_add(again);
            trail.waited = trail.waited.saturating_add(below.waited());
        }
        trail.furthest = if trail.attempt == Attempt::FIRST {
            decision.delivery
        } else {
            trail.furthest.furthest(decision.delivery)
        };
        if let Some(reservation) = trail.reservation.take() {
            if decision.outcome.is_success() {
                reservation.succeed();
            } else {
                reservation.spend();
            }
        }
        if let Some(context) = &self.context {
            context.end_attempt(decision.outcome, decision.delivery);
        }
        if decision.outcome.is_success() {
            if trail.attempt == Attempt::FIRST {
                self.budget().deposit();
            }
            return Step::Return(self.finish(&trail, Last { result, decision }, None));
        }
        let last = Last { result, decision };
        match self.schedule(&mut trail, &last) {
            Ok((delay, reservation)) => {
                if let Some(context) = &self.context {
                    context.enter(Phase::BackingOff);
                }
                trail.waited = trail.waited.saturating_add(delay);
                let settling = last.result.report().and_then(CallReport::settling);
                Step::Wait(Box::new(Waiting {
                    trail,
                    sleep: Some(Box::pin(sleep(delay))),
                    expiry: None,
                    settling: settling.cloned(),
                    settled: false,
                    last,
                    reservation: Some(reservation),
                }))
            }
            Err(not_retried) => Step::Return(self.finish(&trail, last, Some(not_retried))),
        }
    }

    /// Decides whether there is another attempt, and when.
    fn schedule<RB>(
        &self,
        trail: &mut Trail,
        last: &Last<RB>,
    ) -> Result<(Duration, Reservation), NotRetried> {
        let Decision {
            outcome, delivery, ..
        } = last.decision;
        let Outcome::Retryable { reason, after } = outcome else {
            return Err(NotRetried::Outcome);
        };
        if last.is_given_up() {
            return Err(NotRetried::AlreadyGivenUp);
        }
        let spare = match &self.spare {
            Ok(spare) => spare,
            Err(why) => return Err(why.clone()),
        };
        let config = &*self.config;
        if trail.attempt.number() >= config.max_attempts {
            return Err(NotRetried::Exhausted);
        }
        let pushed_back = after.is_some_and(|hint| hint.form() == HintForm::Pushback);
        // gRPC's pushback starts the backoff over (gRFC A6).
        let failures = if pushed_back { 0 } else { trail.failures };
        trail.failures = failures.saturating_add(1);
        let backoff = config.backoff.delay(failures, reason, &*config.random);
        let delay = config
            .hints
            .delay(backoff, after, reason)
            .ok_or(NotRetried::HintTooLong)?;
        if let Some(deadline) = spare.head.deadline() {
            if delay >= deadline.remaining(Instant::now()) {
                return Err(NotRetried::Deadline);
            }
        }
        if let (Some(limit), Some(started)) = (config.elapsed, spare.started) {
            if started.elapsed().saturating_add(delay) > limit {
                return Err(NotRetried::Elapsed);
            }
        }
        // Last, so that nothing is taken for a retry that is not made.
        let reservation = self
            .budget()
            .reserve(reason, delivery)
            .ok_or(NotRetried::BudgetSpent)?;
        Ok((delay, reservation))
    }

    /// Returns a result with its report.
    pub(crate) fn finish<RB>(
        &self,
        trail: &Trail,
        last: Last<RB>,
        not_retried: Option<NotRetried>,
    ) -> Output<RB> {
        let Last { result, decision } = last;
        let outcome = decision.outcome;
        let &Trail {
            attempt,
            waited,
            resent_below,
            furthest,
            ..
        } = trail;
        let report = CallReport::new(
            outcome,
            furthest,
            self.config.classifier.repeatable(&self.call),
        )
        .with_attempts(attempt.number().saturating_add(resent_below), waited)
        .with_after(outcome.after())
        .with_not_retried(not_retried)
        .with_settled_by(result.report().and_then(CallReport::settled_by));
        match result {
            LastResult::Response(mut head, peek) => {
                if let Some(context) = &self.context {
                    context.enter(Phase::ReadingBody);
                }
                let if_broken = if outcome.is_success() {
                    self.config.classifier.broken_body(&self.call, attempt)
                } else {
                    outcome
                };
                // A first attempt that succeeded has nothing to report but what is there.
                if !outcome.is_success() || attempt != Attempt::FIRST {
                    head.extensions.insert(report);
                }
                let body = peek.into_body().with_error_map(BrokenBody::new(if_broken));
                Ok(Response::from_parts(head, body))
            }
            LastResult::Error(error) => Err(Failure::wrap(error, |_| (outcome, furthest))
                .with_outcome(outcome)
                .with_delivery(furthest)
                .with_report(report)
                .into()),
        }
    }
}

// === impl Trail ===

impl Default for Trail {
    fn default() -> Self {
        Self {
            attempt: Attempt::FIRST,
            waited: Duration::ZERO,
            resent_below: 0,
            failures: 0,
            furthest: Delivery::NotSent,
            reservation: None,
        }
    }
}

// === impl Last ===

impl<RB> Last<RB> {
    /// Whether a layer below wanted to go on and could not.
    fn is_given_up(&self) -> bool {
        self.result
            .report()
            .and_then(CallReport::not_retried)
            .is_some_and(NotRetried::is_giving_up)
    }
}

// === impl LastResult ===

impl<RB> LastResult<RB> {
    /// What a layer below has to say.
    fn report(&self) -> Option<&CallReport> {
        match self {
            Self::Response(head, _) => CallReport::of(&head.extensions),
            Self::Error(error) => Failure::of(&**error).and_then(Failure::report),
        }
    }
}
