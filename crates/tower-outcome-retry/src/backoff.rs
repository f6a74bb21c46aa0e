//! How long to wait before the next attempt, if the server does not say.

use std::time::Duration;

use tower_outcome_core::{ConfigError, Random, Reason};

/// How long to wait before the next attempt: a span that grows with each failure, up to a cap, and
/// spread at random.
///
/// | setting | default | why |
/// |---|---|---|
/// | [`base`](Self::base) | 50 ms | long enough for a lost connection to be replaced, short enough not to be felt |
/// | [`throttled_base`](Self::throttled_base) | 1 s | a server that asks for less does not mean 50 ms |
/// | [`factor`](Self::factor) | 2 | halves the load with each round |
/// | [`cap`](Self::cap) | 20 s | beyond it a caller would rather know |
/// | [`jitter`](Self::jitter) | full | spreads the callers that failed together best |
///
/// The numbers are those of the AWS SDKs' standard mode. The arithmetic saturates: any attempt
/// number and any span give a wait between zero and the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    throttled_base: Duration,
    factor: u32,
    cap: Duration,
    jitter: Jitter,
}

/// How a wait is spread at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// Between zero and the whole span, evenly.
    #[default]
    Full,
    /// Between half of the span and the whole, evenly: for callers that must not come back at once.
    Equal,
    /// The whole span: for tests, and for a program that is alone.
    None,
}

// === impl Backoff ===

impl Backoff {
    /// Creates the default backoff.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            base: Duration::from_millis(50),
            throttled_base: Duration::from_secs(1),
            factor: 2,
            cap: Duration::from_secs(20),
            jitter: Jitter::Full,
        }
    }

    /// Sets the span after the first failure.
    #[must_use]
    pub const fn base(mut self, base: Duration) -> Self {
        self.base = base;
        self
    }

    /// Sets the span after the first failure where the server asked for fewer requests.
    #[must_use]
    pub const fn throttled_base(mut self, base: Duration) -> Self {
        self.throttled_base = base;
        self
    }

    /// Sets by how much the span grows with each failure; 1 keeps it.
    #[must_use]
    pub const fn factor(mut self, factor: u32) -> Self {
        self.factor = factor;
        self
    }

    /// Sets the longest span. It may be below neither base: to cap at less than a second, lower
    /// [`throttled_base`](Self::throttled_base) too.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// Sets how the span is spread at random.
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Returns the wait after so many failures in a row, from 0 for the first.
    #[must_use]
    pub fn delay(&self, failures: u32, reason: Reason, random: &dyn Random) -> Duration {
        let base = if reason.is_throttling() {
            self.throttled_base
        } else {
            self.base
        };
        let span = base
            .saturating_mul(self.factor.saturating_pow(failures))
            .min(self.cap);
        match self.jitter {
            Jitter::None => span,
            Jitter::Full => fraction(span, random),
            Jitter::Equal => {
                let half = span / 2;
                // What integer division loses stays in the random part.
                half + fraction(span - half, random)
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.factor == 0 {
            return Err(ConfigError::new("backoff.factor", 0, "at least 1"));
        }
        if self.cap < self.base {
            return Err(ConfigError::new(
                "backoff.cap",
                self.cap,
                "no less than backoff.base",
            ));
        }
        if self.cap < self.throttled_base {
            return Err(ConfigError::new(
                "backoff.cap",
                self.cap,
                "no less than backoff.throttled_base",
            ));
        }
        Ok(())
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// A random part of a span, evenly from zero to the whole, to the nanosecond.
fn fraction(span: Duration, random: &dyn Random) -> Duration {
    let nanos = span.as_nanos();
    // The product of up to 94 and 64 bits does not fit; a span of over 584 years loses its tail.
    let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
    let part = ((u128::from(nanos) + 1) * u128::from(random.next_u64())) >> 64;
    Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
