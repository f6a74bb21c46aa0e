//! When the server is asked.

use std::time::Duration;

use tower_outcome_core::ConfigError;

/// When the server is asked, and how long.
///
/// | setting | default | why |
/// |---|---|---|
/// | [`first`](Self::first) | 500 ms | what was applied is mostly there at once, and what lags by a little is not missed |
/// | [`factor`](Self::factor) | 2 | |
/// | [`cap`](Self::cap) | 5 s | somebody waits for the answer |
/// | [`each`](Self::each) | 5 s | one that hangs keeps the next from being asked |
/// | [`deadline`](Self::deadline) | 60 s | past the least age and a lag of most of a minute |
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Schedule {
    pub(crate) first: Duration,
    pub(crate) factor: u32,
    pub(crate) cap: Duration,
    pub(crate) each: Duration,
    pub(crate) deadline: Duration,
}

// === impl Schedule ===

impl Schedule {
    /// Creates the default.
    pub const fn new() -> Self {
        Self {
            first: Duration::from_millis(500),
            factor: 2,
            cap: Duration::from_secs(5),
            each: Duration::from_secs(5),
            deadline: Duration::from_secs(60),
        }
    }

    /// Sets the time from the end of the attempt to the first inquiry.
    pub const fn first(mut self, delay: Duration) -> Self {
        self.first = delay;
        self
    }

    /// Sets by what the time from the end of an inquiry to the next grows: 1 keeps it as it is.
    pub const fn factor(mut self, factor: u32) -> Self {
        self.factor = factor;
        self
    }

    /// Sets the longest time from one inquiry to the next. A longer wait that the server asks for is
    /// kept.
    pub const fn cap(mut self, delay: Duration) -> Self {
        self.cap = delay;
        self
    }

    /// Sets how long one inquiry may take.
    pub const fn each(mut self, limit: Duration) -> Self {
        self.each = limit;
        self
    }

    /// Sets the time from the end of the attempt to that of all asking. The call's
    /// [`Deadline`](tower_outcome_core::Deadline) ends it earlier.
    pub const fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// The wait before the inquiry after so many.
    pub(crate) fn delay(&self, inquiries: u32) -> Duration {
        let factor = self.factor.checked_pow(inquiries).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.cap)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let spans = [
            ("schedule.first", self.first),
            ("schedule.each", self.each),
            ("schedule.deadline", self.deadline),
        ];
        for (field, span) in spans {
            if span.is_zero() {
                return Err(ConfigError::new(field, span, "more than zero"));
            }
        }
        if self.factor == 0 {
            return Err(ConfigError::new("schedule.factor", 0, "at least 1"));
        }
        if self.cap < self.first {
            let expected = "at least schedule.first";
            return Err(ConfigError::new("schedule.cap", self.cap, expected));
        }
        if self.deadline < self.first {
            let expected = "at least schedule.first";
            return Err(ConfigError::new(
                "schedule.deadline",
                self.deadline,
                expected,
            ));
        }
        Ok(())
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_never_overflow() {
        let schedule = Schedule::new();
        let waits: Vec<_> = (0..6).map(|n| schedule.delay(n).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 5000, 5000]);
        assert_eq!(schedule.delay(u32::MAX), Duration::from_secs(5));
    }
}
