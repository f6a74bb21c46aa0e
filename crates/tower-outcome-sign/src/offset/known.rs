//! What is known of the server's clock, and what is not believed yet.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{
    OffsetEstimate,
    interval::{Interval, span},
};

/// How many answers have to agree on what one alone is not believed.
const WITNESSES: u8 = 3;

/// What is known of the server's clock, and what is not believed yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    interval: Option<Interval>,
    doubted: Option<Doubted>,
    /// What the wall clock showed when an answer was taken in last.
    showed: Option<(SystemTime, Instant)>,
}

/// What lies further off than clocks do, as far as answers in a row agree on it.
#[derive(Clone, Copy, Debug)]
struct Doubted {
    interval: Interval,
    answers: u8,
}

// === impl Known ===

impl Known {
    pub(super) const fn interval(&self) -> Option<Interval> {
        self.interval
    }

    /// Takes in what an answer says, and returns whether it is believed.
    pub(super) fn take(&mut self, heard: Interval, drift_ppm: u32, max_offset: Duration) -> bool {
        let now = heard.at;
        let before = self.interval.map(|before| before.at(now, drift_ppm));
        if let Some(both) = before.and_then(|before| before.both(heard)) {
            self.believe(both);
            return true;
        }
        if heard.is_within(max_offset) {
            self.believe(heard);
            return true;
        }
        let doubted = self.doubted.and_then(|doubted| {
            Some(Doubted {
                interval: doubted.interval.at(now, drift_ppm).both(heard)?,
                answers: doubted.answers + 1,
            })
        });
        let doubted = doubted.unwrap_or(Doubted {
            interval: heard,
            answers: 1,
        });
        if doubted.answers < WITNESSES {
            self.doubted = Some(doubted);
            return false;
        }
        self.believe(doubted.interval);
        true
    }

    fn believe(&mut self, interval: Interval) {
        self.interval = Some(interval);
        self.doubted = None;
    }

    /// Notes what the wall clock shows.
    pub(super) const fn showed(&mut self, wall: SystemTime, now: Instant) {
        self.showed = Some((wall, now));
    }

    /// Whether the wall clock has jumped since by what it was off. It may also jump because the machine
    /// was asleep, by any span, and then it is as wrong as before.
    pub(super) fn was_repaired(&self, wall: SystemTime, now: Instant, off: OffsetEstimate) -> bool {
        /// How much two clocks of this machine may differ in between.
        const SLACK: i128 = 500_000_000;
        let Some((showed, at)) = self.showed else {
            return false;
        };
        let expected = showed.checked_add(now.saturating_duration_since(at));
        let jump = match expected.map(|expected| wall.duration_since(expected)) {
            Some(Ok(ahead)) => span(ahead),
            Some(Err(behind)) => -span(behind.duration()),
            None => return false,
        };
        let jumped = jump.abs() > off.error && jump.abs() > SLACK;
        jumped && (jump - off.middle).abs() <= off.error + SLACK
    }
}
