//! What a strategy's limiter did while the storm lasted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tower_outcome::RateBudget;
use tower_outcome::rate_limit::{Admitted, Observer};

/// A strategy's limiter, and what it takes to judge it.
#[derive(Clone)]
pub(crate) struct Limiter {
    pub(crate) budget: RateBudget,
    pub(crate) waits: Arc<LongestWaits>,
    /// The class that makes way for all others.
    pub(crate) lowest: &'static str,
    /// How many requests a minute that class may make.
    pub(crate) allowed: u32,
}

/// Watches a budget, and keeps the longest wait of each class.
#[derive(Default)]
pub(crate) struct LongestWaits(Mutex<HashMap<String, Duration>>);

/// How much of what it may use the lowest class found used, on average over the time in which it
/// had to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    waited: f64,
    used: f64,
    last: Option<(Instant, f64)>,
}

// === impl Limiter ===

impl Limiter {
    /// Looks at the budget once a millisecond, for as long as it is let.
    pub(crate) async fn watch(self, usage: Arc<Mutex<Usage>>) {
        let mut ticks = interval(Duration::from_millis(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = ticks.tick().await;
            lock(&usage).note(now, self.share_used());
        }
    }

    /// How much of what the lowest class may use is used or on its way, if somebody of that class
    /// waits. What others use beyond that is no merit of the limiter.
    fn share_used(&self) -> Option<f64> {
        let snapshot = self.budget.snapshot();
        let limit = snapshot.limits.first()?;
        let waiting = snapshot.class(self.lowest)?.queued > 0;
        let taken = (limit.used + limit.held).min(self.allowed);
        waiting.then(|| f64::from(taken) / f64::from(self.allowed))
    }
}

// === impl LongestWaits ===

impl LongestWaits {
    /// The longest wait of a class, unless nobody of it was let through.
    pub(crate) fn of(&self, class: &str) -> Option<Duration> {
        lock(&self.0).get(class).copied()
    }
}

impl Observer for LongestWaits {
    fn admitted(&self, event: &Admitted<'_>) {
        let mut waits = lock(&self.0);
        let longest = waits.entry(event.class.to_owned()).or_default();
        *longest = event.waited.max(*longest);
    }
}

// === impl Usage ===

impl Usage {
    /// Notes which share was used at an instant, if anybody waited.
    fn note(&mut self, now: Instant, share: Option<f64>) {
        if let (Some((then, before)), Some(share)) = (self.last, share) {
            let time = (now - then).as_secs_f64();
            self.waited += time;
            self.used += time * f64::midpoint(before, share);
        }
        self.last = share.map(|share| (now, share));
    }

    /// The average, unless nobody ever waited.
    pub(crate) fn percent(self) -> Option<f64> {
        (self.waited > 0.0).then(|| 100.0 * self.used / self.waited)
    }
}

pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_counts_by_time_and_only_while_somebody_waits() {
        let start = Instant::now();
        let mut usage = Usage::default();
        assert_eq!(usage.percent(), None);
        for (at, share) in [
            (0, None),
            (100, Some(1.0)),
            (400, Some(1.0)),
            (500, Some(0.0)),
            (600, None),
            (900, Some(1.0)),
        ] {
            usage.note(start + Duration::from_millis(at), share);
        }
        // 300 ms full, and 100 ms half full on average.
        let percent = usage.percent().unwrap();
        assert!((percent - 87.5).abs() < 1e-6, "{percent}");
    }
}
