//! Those that were let through and have not noticed yet.

use std::collections::VecDeque;

use super::State;
use crate::{queue::Place, rule::NEVER};

/// Those that were let through, the first of them first. Who has noticed stays in here until it is
/// looked at.
///
/// A future may be kept and not polled. What it was granted is not held for it for ever: after a
/// while it goes to somebody else, and the future stands in line again as soon as it is polled.
#[derive(Debug, Default)]
pub(crate) struct Untaken(VecDeque<Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    arrival: u32,
    /// When it is taken back.
    due: u64,
}

/// A task that is alive is polled far sooner.
const GRACE: u64 = 1_000_000_000;

// === impl State ===

impl State {
    pub(super) fn note_untaken(&mut self, now: u64, place: Place) {
        self.forget_taken();
        let arrival = self.queue.arrival(place);
        let due = now.saturating_add(GRACE);
        self.untaken.0.push_back(Entry {
            place,
            arrival,
            due,
        });
    }

    /// When something is to be taken back again.
    pub(super) fn next_take_back(&self) -> u64 {
        self.untaken.0.front().map_or(NEVER, |entry| entry.due)
    }

    /// Takes back what was not taken for too long.
    pub(super) fn take_back(&mut self, now: u64) {
        loop {
            self.forget_taken();
            let Some(&Entry { place, due, .. }) = self.untaken.0.front() else {
                return;
            };
            if due > now {
                return;
            }
            self.untaken.0.pop_front();
            let cost = self.queue.cost(place);
            self.revoke(&cost);
            let class = self.queue.class(place);
            self.classes[class].granted -= 1;
            self.queue.put_to_sleep(place);
        }
    }

    fn forget_taken(&mut self) {
        while let Some(&Entry { place, arrival, .. }) = self.untaken.0.front() {
            if self.queue.is_granted(place, arrival) {
                return;
            }
            self.untaken.0.pop_front();
        }
    }
}
