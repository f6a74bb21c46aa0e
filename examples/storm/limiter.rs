//! What a strategy's limiter did while the storm lasted.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tower_outcome::RateBudget;
use tower_outcome::rate_limit::{Admitted, Observer};

use crate::run::Sent;
use crate::scenario::{Kind, MINUTE};

/// A strategy's limiter, and what it takes to judge it.
#[derive(Clone)]
pub(crate) struct Limiter {
    pub(crate) budget: RateBudget,
    pub(crate) watch: Arc<Watch>,
    /// The class of the queries, which makes way for all others.
    pub(crate) lowest: &'static str,
    /// How many requests a minute that class may make.
    pub(crate) allowed: u32,
}

/// Watches who waits in a budget, and when the requests that it let through are over.
#[derive(Default)]
pub(crate) struct Watch {
    /// By class.
    waits: Mutex<HashMap<String, Waits>>,
    /// When a request was answered or given up on, in order.
    ends: Mutex<Vec<Instant>>,
}

#[derive(Clone, Default)]
struct Waits {
    longest: Duration,
    /// From the first instant in which anybody waited to the last.
    period: Option<RangeInclusive<Instant>>,
}

/// Notes the end of a request, also of one that is dropped.
struct NoteEnd(Arc<Watch>);

// === impl Limiter ===

impl Limiter {
    /// How much of what the guarantee allows arrived at the venue while queries waited, in percent,
    /// unless none did.
    ///
    /// The limiter has a say in when they waited, but not in how much that is: arrivals are the
    /// venue's, in order and since `opening`, and ends are taken below the limiter.
    pub(crate) fn used_percent(&self, opening: Instant, arrivals: &[Sent]) -> Option<f64> {
        let waits = self.watch.of(self.lowest)?.period?;
        let waiting = *waits.start() - opening..=*waits.end() - opening;
        let ends = lock(&self.watch.ends);
        let ends = ends.iter().map(|end| *end - opening);
        used_percent(ends, arrivals, &waiting, self.allowed)
    }
}

// === impl Watch ===

impl Watch {
    /// The longest wait of a class, unless nobody of it was let through.
    pub(crate) fn longest_wait(&self, class: &str) -> Option<Duration> {
        self.of(class).map(|waits| waits.longest)
    }

    /// Takes a request with a permit to its end.
    pub(crate) async fn until_over<F: Future>(self: Arc<Self>, request: F) -> F::Output {
        let _end = NoteEnd(self);
        request.await
    }

    fn of(&self, class: &str) -> Option<Waits> {
        lock(&self.waits).get(class).cloned()
    }
}

impl Observer for Watch {
    fn admitted(&self, event: &Admitted<'_>) {
        let mut waits = lock(&self.waits);
        let waits = waits.entry(event.class.to_owned()).or_default();
        waits.longest = event.waited.max(waits.longest);
        if !event.waited.is_zero() {
            let now = Instant::now();
            let first = waits.period.as_ref().map(|period| *period.start());
            waits.period = Some(first.unwrap_or(now - event.waited)..=now);
        }
    }
}

// === impl NoteEnd ===

impl Drop for NoteEnd {
    fn drop(&mut self) {
        lock(&self.0.ends).push(Instant::now());
    }
}

/// The guarantee lets a request go a minute after fewer than `allowed` of those before it are still
/// under way: that minute, in percent of the mean time after which queries that had to wait arrived.
fn used_percent(
    ends: impl Iterator<Item = Duration>,
    arrivals: &[Sent],
    waiting: &RangeInclusive<Duration>,
    allowed: u32,
) -> Option<f64> {
    let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
    let times: Vec<f64> = ends
        .zip(arrivals.iter().skip(allowed))
        .filter(|(_, sent)| sent.kind == Kind::Query && waiting.contains(&sent.at))
        .map(|(end, sent)| sent.at.as_secs_f64() - end.as_secs_f64())
        .collect();
    let count = u32::try_from(times.len()).ok().filter(|count| *count > 0)?;
    let minutes = f64::from(count) * MINUTE.as_secs_f64();
    Some(100.0 * minutes / times.iter().sum::<f64>())
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Fate;

    fn sent(kind: Kind, at: Duration) -> Sent {
        Sent {
            call: String::new(),
            kind,
            row: 0,
            due: Duration::ZERO,
            at,
            fate: Fate::Answered,
            applied: true,
        }
    }

    #[test]
    fn what_comes_half_as_often_as_allowed_is_half_of_it() {
        let used = |later: Duration| {
            let arrivals = [Duration::ZERO, Duration::ZERO, later, later];
            let arrivals = arrivals.map(|at| sent(Kind::Query, at));
            let ends = [MINUTE / 2, MINUTE];
            used_percent(ends.into_iter(), &arrivals, &(later..=later), 2)
        };
        assert_eq!(used(MINUTE * 7 / 4), Some(100.0));
        assert_eq!(used(MINUTE * 11 / 4), Some(50.0));
    }

    #[test]
    fn only_queries_that_come_while_some_wait_are_looked_at() {
        let arrivals = [
            sent(Kind::Query, Duration::ZERO),
            // Before.
            sent(Kind::Query, MINUTE * 9),
            // Needs not wait.
            sent(Kind::Order, MINUTE * 10),
            sent(Kind::Query, MINUTE * 12),
            // Afterwards.
            sent(Kind::Query, MINUTE * 20),
        ];
        let used = |from, to| {
            let ends = arrivals.iter().map(|sent| sent.at);
            used_percent(ends, &arrivals, &(MINUTE * from..=MINUTE * to), 1)
        };
        assert_eq!(used(10, 19), Some(50.0));
        assert_eq!(used(13, 19), None);
    }
}
