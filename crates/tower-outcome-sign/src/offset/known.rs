//! What is known of the server's clock, and what is not believed yet.

use std::time::Duration;

use super::interval::Interval;

/// How many answers have to agree on what one alone is not believed.
const WITNESSES: u8 = 3;

/// What is known of the server's clock, and what is not believed yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    interval: Option<Interval>,
    doubted: Option<Doubted>,
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
        *self = Self {
            interval: Some(interval),
            doubted: None,
        };
    }
}
