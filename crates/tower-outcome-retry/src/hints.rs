//! What to make of a wait that the server asked for.

use std::time::Duration;

use tower_outcome_core::{ConfigError, HintForm, Reason, RetryAfter};

/// What to make of a wait that the server asked for.
///
/// | setting | default | why |
/// |---|---|---|
/// | [`policy`](Self::policy) | a lower bound | coming back earlier only costs another refusal |
/// | [`clamp`](Self::clamp) | none | a shorter wait than was asked for is another refusal |
/// | [`longest`](Self::longest) | 5 min | nobody waits longer inside a call; the result is returned at once, with the hint |
/// | [`dates`](Self::dates) | count | RFC 9110, section 10.2.3, allows both forms |
/// | [`throttled_floor`](Self::throttled_floor) | none | |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    policy: HintPolicy,
    clamp: Option<Duration>,
    longest: Duration,
    dates: bool,
    throttled_floor: Duration,
}

/// How a wait that the server asked for and the backoff come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintPolicy {
    /// The longer of the two is slept.
    #[default]
    LowerBound,
    /// What the server asked for is slept, however short.
    Replace,
    /// The backoff is slept.
    Ignore,
}

// === impl Hints ===

impl Hints {
    /// Creates the default policy.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            policy: HintPolicy::LowerBound,
            clamp: None,
            longest: Duration::from_secs(5 * 60),
            dates: true,
            throttled_floor: Duration::ZERO,
        }
    }

    /// Sets how the hint and the backoff come together.
    #[must_use]
    pub const fn policy(mut self, policy: HintPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Cuts what the server asks for to this span.
    #[must_use]
    pub const fn clamp(mut self, to: Duration) -> Self {
        self.clamp = Some(to);
        self
    }

    /// Sets the longest wait that is slept because the server asked for it. A longer one, after
    /// clamping, is not slept at all. `Duration::MAX` leaves it to the deadline.
    #[must_use]
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Sets whether a `Retry-After` in the form of a date counts.
    #[must_use]
    pub const fn dates(mut self, count: bool) -> Self {
        self.dates = count;
        self
    }

    /// Sets the shortest wait after the server asked for fewer requests, whatever it asked for.
    #[must_use]
    pub const fn throttled_floor(mut self, floor: Duration) -> Self {
        self.throttled_floor = floor;
        self
    }

    /// Returns the wait, or `None` if the server asked for more than is ever slept.
    pub(crate) fn delay(
        &self,
        backoff: Duration,
        hint: Option<RetryAfter>,
        reason: Reason,
    ) -> Option<Duration> {
        let floor = if reason.is_throttling() {
            self.throttled_floor
        } else {
            Duration::ZERO
        };
        let hint = hint
            .filter(|hint| self.dates || hint.form() != HintForm::Date)
            .filter(|_| self.policy != HintPolicy::Ignore);
        let Some(hint) = hint else {
            return Some(backoff.max(floor));
        };
        let asked = self
            .clamp
            .map_or(hint.delay(), |clamp| hint.delay().min(clamp));
        if asked > self.longest {
            return None;
        }
        // gRPC's pushback is the wait and not a bound of it (gRFC A6).
        let exact = self.policy == HintPolicy::Replace || hint.form() == HintForm::Pushback;
        Some(if exact { asked } else { asked.max(backoff) }.max(floor))
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.longest < self.throttled_floor {
            return Err(ConfigError::new(
                "hints.longest",
                self.longest,
                "no less than hints.throttled_floor",
            ));
        }
        Ok(())
    }
}

impl Default for Hints {
    fn default() -> Self {
        Self::new()
    }
}
