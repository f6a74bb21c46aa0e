//! What others use of the same limits, as far as the venue tells.
//!
//! A response says how much of a limit was used when the venue looked at the request. That number
//! is older than the response, and it contains what this side sent, so it is no substitute for this
//! side's own count. What it can show is that somebody else uses the limit too, and how much.
//! That much is booked as a phantom, which is forgotten after a window like everything else.

use super::{State, Units};
use crate::{budget::MAX_LIMITS, rule::Taken};

/// What is known of others that use a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Foreign {
    /// All units that ever departed; wraps.
    departed: u32,
    /// When it was last certain that somebody else uses the limit.
    seen: Option<u64>,
}

/// Where the counts stood when a request departed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    departed: Units,
    /// By limit, all of this side's that the venue can have counted by then.
    occupied: Units,
}

/// As many windows after the last certain sign, others are no longer reckoned with.
const MEMORY: u64 = 10;

// === impl State ===

impl State {
    /// Notes where the counts stand; the request that departs now is counted already.
    pub(crate) fn mark(&mut self, now: u64) -> Mark {
        let mut mark = Mark {
            departed: [0; MAX_LIMITS],
            occupied: [0; MAX_LIMITS],
        };
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            let Taken { logged, held, .. } = rule.taken(now, &self.clock);
            mark.departed[limit] = self.foreign[limit].departed;
            mark.occupied[limit] = logged.saturating_add(held);
        }
        mark
    }

    /// The venue says that so many units of a limit were used when it looked at the request that
    /// departed at the mark.
    pub(crate) fn observe_used(&mut self, now: u64, limit: usize, used: u64, mark: &Mark) {
        let rule = &mut self.rules[limit];
        let window = rule.window();
        let taken = rule.taken(now, &self.clock);
        let foreign = &mut self.foreign[limit];
        let since = foreign.departed.wrapping_sub(mark.departed[limit]);
        // Whatever the venue can have counted of this side's: what counted when the request left
        // and what left while it was on its way.
        let most = u64::from(mark.occupied[limit]) + u64::from(since);
        if used > most {
            foreign.seen = Some(now);
        }
        let known = foreign
            .seen
            .is_some_and(|at| now.saturating_sub(at) <= window.saturating_mul(MEMORY));
        if !known {
            return;
        }
        // The best guess of what it did count: all but what left after this request did.
        let in_flight = taken.held.saturating_sub(since);
        let counted = u64::from(taken.logged) + u64::from(taken.phantom) + u64::from(in_flight);
        let phantom = u32::try_from(used.saturating_sub(counted)).unwrap_or(u32::MAX);
        if phantom > 0 {
            rule.phantom(now, phantom, &self.clock);
        }
    }

    /// The venue has refused a request although this side was within its limits: somebody else
    /// uses them too, and what it says about that is believed from here on.
    pub(crate) fn suspect_others(&mut self, now: u64) {
        for foreign in &mut self.foreign[..self.rules.len()] {
            foreign.seen = Some(now);
        }
    }
}

// === impl Foreign ===

impl Foreign {
    #[inline]
    pub(crate) fn note_departure(&mut self, units: u32) {
        self.departed = self.departed.wrapping_add(units);
    }
}
