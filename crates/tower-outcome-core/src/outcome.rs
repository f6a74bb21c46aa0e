//! What became of a call.

use std::fmt;

use crate::{Reason, RetryAfter};

/// What became of a call, and therefore whether it may be sent again.
///
/// The enum is complete on purpose: a caller has to face [`Unknown`](Self::Unknown) and cannot hide
/// it in a `_` arm.
///
/// ```
/// use tower_outcome_core::{Outcome, Reason};
///
/// fn next_step(outcome: Outcome) -> &'static str {
///     match outcome {
///         Outcome::Success => "done",
///         Outcome::Retryable { .. } => "may be sent again",
///         Outcome::Permanent { .. } => "give up: the answer will not change",
///         Outcome::Unknown { .. } => "ask the server before doing anything else",
///     }
/// }
///
/// let outcome = Outcome::Unknown { reason: Reason::Transport };
/// assert_eq!(next_step(outcome), "ask the server before doing anything else");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition, so that callers must face Unknown"
)]
pub enum Outcome {
    /// The server did what was asked.
    Success,
    /// Sending the request again is safe and may help: either the server provably did not act on
    /// it, or repeating it is harmless.
    Retryable {
        /// Why it failed.
        reason: Reason,
        /// How long the server asked to be left alone, if it did.
        after: Option<RetryAfter>,
    },
    /// The answer will not change; sending the request again cannot help.
    Permanent {
        /// Why it failed.
        reason: Reason,
    },
    /// The request may have been applied, and sending it again might apply it twice. Only the
    /// server can tell.
    Unknown {
        /// Why nobody on this side can know.
        reason: Reason,
    },
}

// === impl Outcome ===

impl Outcome {
    /// Returns the reason of everything but a success.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        match *self {
            Self::Success => None,
            Self::Retryable { reason, .. }
            | Self::Permanent { reason }
            | Self::Unknown { reason } => Some(reason),
        }
    }

    /// Returns the wait that the server asked for, which only a retryable outcome carries.
    #[must_use]
    pub const fn after(&self) -> Option<RetryAfter> {
        match *self {
            Self::Retryable { after, .. } => after,
            Self::Success | Self::Permanent { .. } | Self::Unknown { .. } => None,
        }
    }

    /// Returns whether the server did what was asked.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Success)
    }

    /// Returns whether sending the request again is safe and may help.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Retryable { .. })
    }

    /// Returns whether the answer will not change.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Permanent { .. })
    }

    /// Returns whether the request may have been applied and nobody on this side can tell.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// Returns a stable lower-case word for spans and metrics: `success`, `retryable`,
    /// `permanent` or `unknown`.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Retryable { .. } => "retryable",
            Self::Permanent { .. } => "permanent",
            Self::Unknown { .. } => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())?;
        if let Some(reason) = self.reason() {
            write!(f, " ({reason})")?;
        }
        Ok(())
    }
}
