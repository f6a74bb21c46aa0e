//! Wall time, injected.

use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// Tells the wall time.
///
/// Waiting goes through tokio's clock; wall time is needed only where a peer speaks of dates, as in
/// `Retry-After: Fri, 07 Nov 2025 09:30:00 GMT`.
pub trait Clock: Debug + Send + Sync {
    /// Returns the current wall time.
    fn now(&self) -> SystemTime;
}

/// The wall clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock(());

/// A wall clock that stands still until it is told otherwise, for tests.
#[derive(Debug)]
pub struct ManualClock(Mutex<SystemTime>);

// === impl SystemClock ===

impl SystemClock {
    /// Creates the clock.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the operating system is asked"
    )]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// Creates a clock that shows `now`.
    #[must_use]
    pub const fn new(now: SystemTime) -> Self {
        Self(Mutex::new(now))
    }

    /// Puts the clock forward, or leaves it where it is if the sum cannot be represented.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(later) = now.checked_add(by) {
            *now = later;
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
