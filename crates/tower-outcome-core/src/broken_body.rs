//! What a response body that fails means for its call.

use crate::{BoxError, Delivery, Failure, Outcome, Reason, RetryAfter, peek::MapBodyError};

/// Wraps the error of a response body in a [`Failure`] that says what it means for the call.
///
/// A layer that classifies puts it around the body it hands on, so that a caller who loses the
/// answer half-way learns more than that a connection broke.
#[derive(Clone, Debug)]
pub struct BrokenBody(Meaning);

/// An outcome in less space: every response body carries one, and next to none breaks.
#[derive(Clone, Debug)]
enum Meaning {
    Success,
    Retryable(Reason),
    RetryableAfter(Box<(Reason, RetryAfter)>),
    Permanent(Reason),
    Unknown(Reason),
}

// === impl BrokenBody ===

impl BrokenBody {
    /// Creates it with what becomes of the call if the body fails.
    #[inline]
    #[must_use]
    pub fn new(outcome: Outcome) -> Self {
        Self(match outcome {
            Outcome::Success => Meaning::Success,
            Outcome::Retryable {
                reason,
                after: None,
            } => Meaning::Retryable(reason),
            Outcome::Retryable {
                reason,
                after: Some(after),
            } => Meaning::RetryableAfter(Box::new((reason, after))),
            Outcome::Permanent { reason } => Meaning::Permanent(reason),
            Outcome::Unknown { reason } => Meaning::Unknown(reason),
        })
    }

    fn outcome(&self) -> Outcome {
        match &self.0 {
            Meaning::Success => Outcome::Success,
            &Meaning::Retryable(reason) => Outcome::Retryable {
                reason,
                after: None,
            },
            Meaning::RetryableAfter(boxed) => Outcome::Retryable {
                reason: boxed.0,
                after: Some(boxed.1),
            },
            &Meaning::Permanent(reason) => Outcome::Permanent { reason },
            &Meaning::Unknown(reason) => Outcome::Unknown { reason },
        }
    }
}

impl MapBodyError for BrokenBody {
    fn map(&self, error: BoxError) -> BoxError {
        let outcome = self.outcome();
        Failure::wrap(error, |_| (outcome, Delivery::Answered))
            .with_outcome(outcome)
            .into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::HintForm;

    #[test]
    fn the_outcome_comes_back_as_it_was() {
        let reason = Reason::Overloaded;
        let after = Some(RetryAfter::new(Duration::from_secs(7), HintForm::Seconds));
        for outcome in [
            Outcome::Success,
            Outcome::Retryable {
                reason,
                after: None,
            },
            Outcome::Retryable { reason, after },
            Outcome::Permanent { reason },
            Outcome::Unknown { reason },
        ] {
            assert_eq!(BrokenBody::new(outcome).outcome(), outcome);
        }
    }
}
