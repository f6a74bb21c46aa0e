//! What the server said, before anybody asks whether the request may be repeated.

use crate::{Attempt, Decision, Delivery, Outcome, Reason, Repeatable, RetryAfter};

/// What is known of the server's part in a request.
///
/// A classifier first finds out what the server said ([`Answer`]), then combines it with whether
/// the request is [repeatable](Repeatable) and what went before ([`Attempt`]) to the
/// [`Outcome`] of the call. Rules for an API need to know only the first half.
///
/// | answer | repeatable | not repeatable |
/// |---|---|---|
/// | `Applied` | Success | Success |
/// | `NotApplied` | Retryable | Retryable |
/// | `Rejected` | Permanent | Permanent |
/// | `Unclear`, transient | Retryable | Unknown |
/// | `Unclear`, not transient | Permanent | Unknown |
/// | `Duplicate` | Permanent | Permanent |
///
/// After an attempt that may have been applied, `Rejected` and `Duplicate` are Unknown instead,
/// unless the method is safe: a refusal of this attempt says nothing about the earlier one, and a
/// duplicate proves that the earlier one arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The server did what was asked.
    Applied,
    /// The server has seen this operation identifier before.
    Duplicate,
    /// It is certain that the server did not act, and asking again may help.
    NotApplied {
        /// Why it did not act.
        reason: Reason,
        /// How long it asked to be left alone.
        after: Option<RetryAfter>,
    },
    /// The server did not act, and will not if it is asked again.
    Rejected {
        /// Why it refused.
        reason: Reason,
    },
    /// The server may or may not have acted.
    Unclear {
        /// Why nobody can tell.
        reason: Reason,
        /// How long it asked to be left alone.
        after: Option<RetryAfter>,
        /// Whether asking again may help, where that is harmless.
        transient: bool,
    },
}

// === impl Answer ===

impl Answer {
    /// Combines what the server said with what is known of the request.
    #[must_use]
    pub const fn outcome(self, repeatable: Repeatable, attempt: Attempt) -> Outcome {
        match self {
            Self::Applied => Outcome::Success,
            Self::NotApplied { reason, after } => Outcome::Retryable { reason, after },
            Self::Rejected { reason } => permanent(reason, repeatable, attempt),
            Self::Duplicate => permanent(Reason::Duplicate, repeatable, attempt),
            Self::Unclear {
                reason,
                after,
                transient,
            } => match (repeatable, transient) {
                (Repeatable::Yes(_), true) => Outcome::Retryable { reason, after },
                (Repeatable::Yes(_), false) => permanent(reason, repeatable, attempt),
                (Repeatable::No, _) => Outcome::Unknown { reason },
            },
        }
    }

    /// Decides for a call that was answered.
    ///
    /// A server that says it did not act has [refused](Delivery::Refused) the request, whatever
    /// else it said.
    #[must_use]
    pub const fn decide(self, repeatable: Repeatable, attempt: Attempt) -> Decision {
        let delivery = match self {
            Self::NotApplied { .. } => Delivery::Refused,
            _ => Delivery::Answered,
        };
        Decision::new(self.outcome(repeatable, attempt), delivery).with_after(self.after())
    }

    /// Returns how long the server asked to be left alone.
    #[must_use]
    pub const fn after(self) -> Option<RetryAfter> {
        match self {
            Self::NotApplied { after, .. } | Self::Unclear { after, .. } => after,
            Self::Applied | Self::Duplicate | Self::Rejected { .. } => None,
        }
    }
}

/// A refusal is final only if no earlier attempt can have left something behind.
const fn permanent(reason: Reason, repeatable: Repeatable, attempt: Attempt) -> Outcome {
    if attempt.maybe_applied_before() && !repeatable.is_safe() {
        Outcome::Unknown { reason }
    } else {
        Outcome::Permanent { reason }
    }
}
