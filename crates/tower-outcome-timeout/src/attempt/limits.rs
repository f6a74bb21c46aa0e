//! Which bound strikes when: no clock and no timer, only reckoning.

use std::time::Duration;

use tokio::time::Instant;
use tower_outcome_core::Deadline;

use super::{bounds::Bounds, pace::Progress};
use crate::Bound;

/// The bounds of one attempt up to its response head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// When the attempt is over, whatever it does, and on whose word.
    end: Option<(Instant, Bound, Duration)>,
    head: Option<Duration>,
    write_idle: Option<Duration>,
}

/// What is to be done about the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// There is no bound.
    Never,
    /// Nothing before that instant. Something may have happened by then that puts it off.
    At(Instant),
    /// The bound, of that length, strikes.
    Now(Bound, Duration),
}

// === impl Limits ===

impl Limits {
    /// The attempt gets what is left of the call, if that is less.
    #[inline]
    pub(super) fn new(started: Instant, bounds: &Bounds, deadline: Option<Deadline>) -> Self {
        let attempt = bounds
            .attempt
            .and_then(|limit| Some((started.checked_add(limit)?, Bound::Attempt, limit)));
        let end = match (attempt, deadline.map(Deadline::instant)) {
            (Some(attempt), Some(deadline)) if attempt.0 < deadline => Some(attempt),
            (attempt, None) => attempt,
            (_, Some(deadline)) => Some((
                deadline,
                Bound::Deadline,
                deadline.saturating_duration_since(started),
            )),
        };
        Self {
            end,
            head: bounds.head,
            write_idle: bounds.write_idle,
        }
    }

    /// Whether nothing is left to begin with.
    #[inline]
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|(end, ..)| end <= now)
    }

    /// Returns when the attempt is over, whatever it does, and by which bound of which length.
    pub(super) fn end(&self) -> Option<(Instant, Bound, Duration)> {
        self.end
    }

    /// Says what to do at `now`.
    ///
    /// What the transport does next wakes nobody. So a bound that does not run yet counts as if it
    /// began now: nothing can strike earlier, and at that time it is reckoned anew.
    pub(super) fn due(&self, now: Instant, progress: Progress) -> Due {
        let head = self.head.map(|limit| {
            let since = match progress {
                Progress::Whole(at) => at,
                Progress::Untouched | Progress::Taking(_) | Progress::Starved => now,
            };
            (since, limit, Bound::Head)
        });
        let write_idle = self.write_idle.and_then(|limit| {
            let since = match progress {
                Progress::Whole(_) => return None,
                Progress::Taking(at) => at,
                Progress::Untouched | Progress::Starved => now,
            };
            Some((since, limit, Bound::WriteIdle))
        });
        let earliest = [head, write_idle]
            .into_iter()
            .flatten()
            // Beyond all clocks is never.
            .filter_map(|(since, limit, bound)| Some((since.checked_add(limit)?, bound, limit)))
            .chain(self.end)
            .min_by_key(|(at, ..)| *at);
        match earliest {
            None => Due::Never,
            Some((at, bound, limit)) if at <= now => Due::Now(bound, limit),
            Some((at, ..)) => Due::At(at),
        }
    }
}

#[cfg(test)]
mod tests;
