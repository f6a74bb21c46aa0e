//! Whether waiting makes sense.

use super::{State, Units};
use crate::queue::Mask;

// === impl State ===

impl State {
    /// The earliest instant at which a newcomer could go, provided that nobody gives up: waiting
    /// for less is pointless. It may well become later, if somebody of a higher class comes.
    pub(crate) fn earliest(&mut self, now: u64, class: usize, cost: &Units, mask: Mask) -> u64 {
        // A class that is owed something may go before higher ones, and out of their share.
        let has_floor = self.classes[class].config.floor_percent > 0;
        let (classes, leave) = if has_floor {
            (class..=class, Units::default())
        } else {
            (0..=class, self.classes[class].leave)
        };
        let (units, requests) = self.queue.ahead(classes, mask);
        let mut earliest = now.max(self.gate.until()).max(self.gate.paced_until(now));
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            if cost[limit] == 0 {
                continue;
            }
            let place = units[limit].saturating_add(u64::from(cost[limit]));
            let at = rule
                .earliest(now, place, requests, leave[limit], &self.clock)
                .max(self.gate.closed_until(limit));
            earliest = earliest.max(at);
        }
        earliest
    }
}
