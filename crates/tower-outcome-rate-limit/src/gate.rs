//! The gate: closed while the venue wants to be left alone.

use crate::{
    budget::{MAX_CLASSES, MAX_LIMITS},
    rule::NEVER,
};

/// Says from when on anybody may go at all.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Closed to everybody until then.
    until: u64,
    /// Closed to those who use a limit until then, by limit.
    closed: [u64; MAX_LIMITS],
    /// How many times in a row the venue refused without saying for how long.
    streak: u32,
    pace: Option<Pace>,
    /// Whether any of this may be in the way; if not, nobody has to know what time it is.
    is_engaged: bool,
}

/// How requests go out after a pause: one by one, so that those that were held up do not all
/// arrive at once.
#[derive(Clone, Copy, Debug)]
struct Pace {
    until: u64,
    /// By class, from when on its next request may go. A class waits for those above it too, and not
    /// for those below, or a heavy sweep would hold up the orders.
    next: [u64; MAX_CLASSES],
    rate: Rate,
}

/// The rate of one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) limit: usize,
    /// The distance between two units.
    pub(crate) unit: u64,
    pub(crate) window: u64,
}

const SECOND: u64 = 1_000_000_000;
/// The first pause where the venue does not say, and the longest.
const BASE: u64 = SECOND;
const CAP: u64 = 60 * SECOND;

// === impl Gate ===

impl Gate {
    pub(crate) const fn new() -> Self {
        Self {
            until: 0,
            closed: [0; MAX_LIMITS],
            streak: 0,
            pace: None,
            is_engaged: false,
        }
    }

    /// Whether anything may be in the way of anybody.
    #[inline]
    pub(crate) const fn is_engaged(&self) -> bool {
        self.is_engaged
    }

    /// Notes if nothing is in the way any more.
    pub(crate) fn disengage(&mut self, now: u64) {
        let is_closed = now < self.until || self.closed.iter().any(|&until| now < until);
        if self.pace.is_some_and(|pace| now >= pace.until) {
            self.pace = None;
        }
        self.is_engaged = is_closed || self.pace.is_some();
    }

    /// When it opens to everybody; in the past if it is open.
    #[inline]
    pub(crate) const fn until(&self) -> u64 {
        self.until
    }

    #[inline]
    pub(crate) const fn closed_until(&self, limit: usize) -> u64 {
        self.closed[limit]
    }

    /// By limit, until when it is closed to those who use it.
    #[inline]
    pub(crate) const fn closed(&self) -> &[u64; MAX_LIMITS] {
        &self.closed
    }

    /// Closes it. It never opens earlier than it was told before. Returns when it opens.
    pub(crate) fn pause(&mut self, now: u64, span: u64, longest: u64) -> u64 {
        let until = now.saturating_add(span.min(longest));
        self.until = self.until.max(until);
        self.is_engaged = true;
        self.until
    }

    pub(crate) fn close(&mut self, limit: usize, now: u64, span: u64, longest: u64) {
        let until = now.saturating_add(span.min(longest));
        self.closed[limit] = self.closed[limit].max(until);
        self.is_engaged = true;
    }

    /// The venue has refused a request. Returns when the gate opens.
    ///
    /// `clean` is how long nothing must have been refused for the next pause to be a short one again,
    /// or `None` if nothing but this has been answered since the last refusal.
    pub(crate) fn throttled(
        &mut self,
        now: u64,
        hint: Option<u64>,
        longest: u64,
        rate: Option<Rate>,
        clean: Option<u64>,
    ) -> u64 {
        let was_open = now >= self.until;
        if was_open && clean.is_some_and(|clean| now > self.until.saturating_add(clean.min(CAP))) {
            self.streak = 0;
        }
        let span = match hint {
            Some(span) => span,
            None => {
                // Those that were under way when it closed are one refusal, not many.
                if was_open || self.streak == 0 {
                    self.streak = self.streak.saturating_add(1);
                }
                BASE.checked_shl(self.streak - 1).unwrap_or(CAP).min(CAP)
            }
        };
        let until = self.pause(now, span, longest);
        self.pace = rate.map(|rate| Pace {
            until: until.saturating_add(rate.window),
            next: [until; MAX_CLASSES],
            rate,
        });
        until
    }

    /// Opens it, whatever was said before.
    pub(crate) fn open(&mut self) {
        self.until = 0;
        self.closed = [0; MAX_LIMITS];
        self.streak = 0;
        self.pace = None;
        self.is_engaged = false;
    }

    /// From when on the next request may go as far as the pace is concerned.
    pub(crate) fn paced_until(&mut self, now: u64, class: usize) -> u64 {
        match self.pace {
            Some(pace) if now < pace.until => {
                pace.next[..=class].iter().copied().max().unwrap_or(now)
            }
            Some(_) => {
                self.pace = None;
                now
            }
            None => now,
        }
    }

    /// A request goes.
    #[inline]
    pub(crate) fn pass(&mut self, now: u64, class: usize, cost: &[u32; MAX_LIMITS]) {
        if let Some(pace) = &mut self.pace {
            let units = u64::from(cost[pace.rate.limit].max(1));
            let span = pace.rate.unit.saturating_mul(units);
            let next = &mut pace.next[class];
            *next = (*next).max(now).saturating_add(span).min(NEVER - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<Rate> = Some(Rate {
        limit: 0,
        unit: SECOND / 10,
        window: SECOND,
    });

    const LONGEST: u64 = 1000 * SECOND;

    fn gate() -> Gate {
        Gate::new()
    }

    fn refuse(gate: &mut Gate, now: u64, hint: Option<u64>) -> u64 {
        gate.throttled(now, hint, LONGEST, RATE, Some(SECOND))
    }

    #[test]
    fn refusals_without_a_word_pause_longer_each_time() {
        let mut gate = gate();
        let mut now = 0;
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            let until = refuse(&mut gate, now, None);
            assert_eq!(until - now, expected * SECOND);
            now = until;
        }
    }

    #[test]
    fn many_refusals_of_one_rush_are_one() {
        let mut gate = gate();
        for _ in 0..200 {
            assert_eq!(refuse(&mut gate, 0, None), SECOND);
        }
        assert_eq!(refuse(&mut gate, SECOND, None), 3 * SECOND);
    }

    #[test]
    fn a_clean_window_makes_the_pause_short_again() {
        let mut gate = gate();
        let first = refuse(&mut gate, 0, None);
        let second = refuse(&mut gate, first, None);
        assert_eq!(second - first, 2 * SECOND);
        let later = second + SECOND + 1;
        assert_eq!(refuse(&mut gate, later, None), later + SECOND);
    }

    #[test]
    fn a_window_without_an_answer_is_not_clean() {
        let mut gate = gate();
        for (now, expected) in [(0, 1), (100, 2), (200, 4), (300, 8)] {
            let now = now * SECOND;
            let until = gate.throttled(now, None, LONGEST, RATE, None);
            assert_eq!(until - now, expected * SECOND);
        }
    }

    #[test]
    fn a_heavy_request_of_a_low_class_holds_up_nobody_above_it() {
        let mut gate = gate();
        let open = refuse(&mut gate, 0, Some(SECOND));
        gate.pass(open, 1, &[5; MAX_LIMITS]);
        assert_eq!(gate.paced_until(open, 0), open);
        assert_eq!(gate.paced_until(open, 1), open + SECOND / 2);
        gate.pass(open, 0, &[1; MAX_LIMITS]);
        assert_eq!(gate.paced_until(open, 0), open + SECOND / 10);
    }

    #[test]
    fn a_pause_is_never_shortened() {
        let mut gate = gate();
        assert_eq!(refuse(&mut gate, 0, Some(35 * SECOND)), 35 * SECOND);
        assert_eq!(refuse(&mut gate, SECOND, Some(SECOND)), 35 * SECOND);
        assert_eq!(gate.pause(SECOND, SECOND, LONGEST), 35 * SECOND);
    }

    #[test]
    fn nothing_closes_it_for_years() {
        let mut gate = gate();
        assert_eq!(refuse(&mut gate, 0, Some(u64::MAX)), 1000 * SECOND);
        assert_eq!(gate.pause(u64::MAX, u64::MAX, LONGEST), u64::MAX);
        gate.open();
        assert!(!gate.is_engaged());
    }

    #[test]
    fn after_a_pause_requests_go_one_by_one_for_a_window() {
        let mut gate = gate();
        let open = refuse(&mut gate, 0, Some(SECOND));
        assert_eq!(gate.paced_until(open, 0), open);
        gate.pass(open, 0, &[2; MAX_LIMITS]);
        assert_eq!(gate.paced_until(open, 0), open + SECOND / 5);
        let over = open + SECOND;
        assert_eq!(gate.paced_until(over, 0), over);
        gate.pass(over, 0, &[1; MAX_LIMITS]);
        assert_eq!(gate.paced_until(over, 0), over);
        gate.disengage(over);
        assert!(!gate.is_engaged());
    }
}
