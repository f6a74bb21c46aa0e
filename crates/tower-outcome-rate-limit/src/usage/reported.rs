//! What a response said.

use std::time::Duration;

/// Holds what a response said about the use of one limit, as it was said.
///
/// The numbers need not fit each other or the configured limit: a server may report more use than
/// it allows. See [`UsageHeaders`](super::UsageHeaders) for an example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reported {
    /// How much is used, the request that was answered included.
    pub used: Option<u64>,
    /// How much may still be used.
    pub remaining: Option<u64>,
    /// How much may be used in all.
    pub limit: Option<u64>,
    /// The time until some of it comes back, counted from the arrival of the response, never
    /// rounded down and at most [`RetryAfter::MAX`](tower_outcome_core::RetryAfter::MAX).
    pub reset: Option<Duration>,
}

// === impl Reported ===

impl Reported {
    /// Creates a report that says nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            used: None,
            remaining: None,
            limit: None,
            reset: None,
        }
    }

    /// Says how much is used.
    #[must_use]
    pub const fn with_used(mut self, used: u64) -> Self {
        self.used = Some(used);
        self
    }

    /// Says how much may still be used.
    #[must_use]
    pub const fn with_remaining(mut self, remaining: u64) -> Self {
        self.remaining = Some(remaining);
        self
    }

    /// Says how much may be used in all.
    #[must_use]
    pub const fn with_limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Says in what time some of it comes back.
    #[must_use]
    pub const fn with_reset(mut self, reset: Duration) -> Self {
        self.reset = Some(reset);
        self
    }

    /// How much is used of a limit that has this capacity here: so much that no more is left than
    /// the server says, whatever it thinks the limit is.
    pub(crate) fn used_of(&self, capacity: u64) -> Option<u64> {
        let limit = self.limit.unwrap_or(capacity);
        let by_use = self
            .used
            .map(|used| used.saturating_add(capacity.saturating_sub(limit)));
        let by_rest = self
            .remaining
            .map(|rest| limit.max(capacity).saturating_sub(rest));
        by_use.max(by_rest)
    }

    /// Whether the server says that nothing is left.
    pub(crate) fn is_exhausted(&self) -> bool {
        let used_up = matches!((self.used, self.limit), (Some(used), Some(limit)) if used >= limit);
        self.remaining.map_or(used_up, |rest| rest == 0)
    }

    /// The report, if it says anything.
    pub(super) fn said(self) -> Option<Self> {
        (self != Self::new()).then_some(self)
    }

    /// Takes from `other` what this report does not say.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            used: self.used.or(other.used),
            remaining: self.remaining.or(other.remaining),
            limit: self.limit.or(other.limit),
            reset: self.reset.or(other.reset),
        }
    }
}
