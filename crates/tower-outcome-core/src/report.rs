//! What a call went through.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use http::{Extensions, Response};

use crate::{
    BoxError, Decision, Delivery, Failure, Outcome, Reason, Repeatable, RetryAfter, SettledBy,
    Settling,
};

/// What a call went through before its result reached the caller.
///
/// It travels in the extensions of a response and in a [`Failure`]. A response that succeeded on
/// the first attempt carries none: there is nothing to say, and nothing is paid for saying it.
#[derive(Clone, Debug)]
pub struct CallReport {
    attempts: u32,
    waited: Duration,
    outcome: Outcome,
    delivery: Delivery,
    repeatable: Repeatable,
    after: Option<RetryAfter>,
    not_retried: Option<NotRetried>,
    settled_by: Option<SettledBy>,
    settling: Option<Arc<dyn Settling>>,
}

/// Why a result was not tried again although another attempt might have helped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NotRetried {
    /// A layer below gave up already; trying again here would multiply its attempts.
    AlreadyGivenUp,
    /// The request body could not be sent a second time.
    BodyNotReplayable,
    /// The shared retry budget is spent.
    BudgetSpent,
    /// The wait would have ended after the call's deadline.
    Deadline,
    /// The wait would have ended after the time allowed for all attempts.
    Elapsed,
    /// All attempts were used.
    Exhausted,
    /// The server asked for a longer wait than is ever slept.
    HintTooLong,
    /// A limit on this side did not let it through; trying again would only queue once more.
    LocalLimit,
    /// The service below refused to become ready for another attempt.
    NotReady(NotReady),
    /// The outcome does not allow it: it is permanent or unknown.
    Outcome,
    /// Sending again is switched off, for this request or altogether.
    SwitchedOff,
}

/// Why the service below refused to become ready for another attempt.
#[derive(Clone, Debug)]
pub struct NotReady(Arc<dyn Error + Send + Sync>);

// === impl CallReport ===

impl CallReport {
    /// Creates the report of a call that took one attempt.
    #[must_use]
    pub const fn new(outcome: Outcome, delivery: Delivery, repeatable: Repeatable) -> Self {
        Self {
            attempts: 1,
            waited: Duration::ZERO,
            outcome,
            delivery,
            repeatable,
            after: None,
            not_retried: None,
            settled_by: None,
            settling: None,
        }
    }

    /// Returns the report in the extensions of a response.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Self>()
    }

    /// Finds the report of a call's result, in the response or in the error.
    #[must_use]
    pub fn in_result<B>(result: &Result<Response<B>, BoxError>) -> Option<&Self> {
        match result {
            Ok(response) => Self::of(response.extensions()),
            Err(error) => Failure::of(&**error).and_then(Failure::report),
        }
    }

    /// Returns what became of a call, from its result.
    ///
    /// A response without a report was a success on the first attempt, provided that a layer which
    /// classifies (such as Retry) stands in the stack. A status of 400 or above without a report and
    /// an error without a [`Failure`] are unknown: nobody has looked at them.
    pub fn outcome_of<B>(result: &Result<Response<B>, BoxError>) -> Outcome {
        match result {
            Ok(response) => match Self::of(response.extensions()) {
                Some(report) => report.outcome(),
                None if response.status().as_u16() < 400 => Outcome::Success,
                // Nobody in the stack has looked at it.
                None => Outcome::Unknown {
                    reason: Reason::Unrecognized,
                },
            },
            Err(error) => Failure::of(&**error).map_or(
                Outcome::Unknown {
                    reason: Reason::Unrecognized,
                },
                Failure::outcome,
            ),
        }
    }

    /// Returns how many attempts were made, the first included.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns how long was waited between attempts, in all.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns what became of the call.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns how far the call got: the furthest of all its attempts.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Returns whether repeating the request was harmless, and on whose word.
    #[must_use]
    pub const fn repeatable(&self) -> Repeatable {
        self.repeatable
    }

    /// Returns the wait that the server asked for with the last answer.
    #[must_use]
    pub const fn after(&self) -> Option<RetryAfter> {
        self.after
    }

    /// Returns why no further attempt was made; a success has no reason.
    #[must_use]
    pub const fn not_retried(&self) -> Option<&NotRetried> {
        self.not_retried.as_ref()
    }

    /// Returns by what the outcome became known after the attempt had left it open, if so.
    #[must_use]
    pub const fn settled_by(&self) -> Option<SettledBy> {
        self.settled_by
    }

    /// Returns the decision of a layer below that found out what the attempt had left open: the last
    /// word on it, whatever the response or the error looks like.
    #[must_use]
    pub fn settled(&self) -> Option<Decision> {
        let decision = Decision::new(self.outcome, self.delivery).with_after(self.after);
        self.settled_by.map(|_| decision)
    }

    /// Returns what tells that the outcome has become known meanwhile.
    #[must_use]
    pub const fn settling(&self) -> Option<&Arc<dyn Settling>> {
        self.settling.as_ref()
    }

    /// Sets the number of attempts and the time waited between them.
    #[must_use]
    pub const fn with_attempts(mut self, attempts: u32, waited: Duration) -> Self {
        self.attempts = attempts;
        self.waited = waited;
        self
    }

    /// Sets the wait that the server asked for.
    #[must_use]
    pub const fn with_after(mut self, after: Option<RetryAfter>) -> Self {
        self.after = after;
        self
    }

    /// Sets why no further attempt was made.
    #[must_use]
    pub fn with_not_retried(mut self, why: Option<NotRetried>) -> Self {
        self.not_retried = why;
        self
    }

    /// Sets by what the outcome became known.
    #[must_use]
    pub const fn with_settled_by(mut self, by: Option<SettledBy>) -> Self {
        self.settled_by = by;
        self
    }

    /// Sets what tells that the outcome has become known meanwhile.
    #[must_use]
    pub fn with_settling(mut self, settling: Arc<dyn Settling>) -> Self {
        self.settling = Some(settling);
        self
    }
}

// === impl NotRetried ===

impl NotRetried {
    /// Returns whether the layer wanted to go on and could not, so that a layer above should not
    /// start over.
    #[must_use]
    pub const fn is_giving_up(&self) -> bool {
        !matches!(self, Self::Outcome | Self::SwitchedOff)
    }

    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::AlreadyGivenUp => "already_given_up",
            Self::BodyNotReplayable => "body_not_replayable",
            Self::BudgetSpent => "budget_spent",
            Self::Deadline => "deadline",
            Self::Elapsed => "elapsed",
            Self::Exhausted => "exhausted",
            Self::HintTooLong => "hint_too_long",
            Self::LocalLimit => "local_limit",
            Self::NotReady(_) => "not_ready",
            Self::Outcome => "outcome",
            Self::SwitchedOff => "switched_off",
        }
    }
}

impl fmt::Display for NotRetried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

// === impl NotReady ===

impl NotReady {
    /// Keeps the error with which the service refused.
    #[must_use]
    pub fn new(error: BoxError) -> Self {
        Self(error.into())
    }

    /// Returns the error with which the service refused.
    #[must_use]
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}
