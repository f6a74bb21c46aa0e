//! Whether waiting makes sense.

use super::{State, Units};
use crate::{queue::Mask, rule::Line};

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
        let ahead = self.queue.ahead(classes, mask);
        let mut earliest = now
            .max(self.gate.until())
            .max(self.gate.paced_until(now, class));
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            if cost[limit] == 0 {
                continue;
            }
            // Those of higher classes leave less, and are gone sooner.
            let above = ahead[limit].highest;
            let line = Line {
                place: ahead[limit].units.saturating_add(u64::from(cost[limit])),
                requests: ahead[limit].requests,
                leave: leave[limit],
                leave_ahead: above.map_or(leave[limit], |above| {
                    self.classes[above].leave[limit].min(leave[limit])
                }),
            };
            let at = rule.earliest(now, line, &self.clock);
            earliest = earliest.max(at).max(self.gate.closed_until(limit));
        }
        earliest
    }
}
