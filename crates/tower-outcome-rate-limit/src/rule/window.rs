//! Windows: sliding, and aligned to the venue's clock.

use std::collections::VecDeque;

use super::{Line, Margin, NEVER, Taken, nanos};
use crate::{limit::Kind, server_clock::ServerClock};

/// An exact window over a log of what was used and when.
///
/// The log is a ring of instants, each with the sum of everything logged up to it, so that both
/// forgetting and the question when something fits need no walk along the entries.
#[derive(Debug)]
pub(crate) struct Window {
    capacity: u32,
    /// How long an entry counts, margin included.
    length: u64,
    aligned: Option<Aligned>,
    /// Entries are merged into steps of this many nanoseconds, at the end of each.
    step: u64,
    log: VecDeque<Entry>,
    /// All that was ever logged. This and the sums below wrap; only differences mean something,
    /// and what is alive is never more than three times the largest capacity.
    sum: Sum,
    /// All that was logged and is forgotten.
    gone: Sum,
    held: u32,
}

/// The windows of the venue's clock.
#[derive(Clone, Copy, Debug)]
struct Aligned {
    period: u64,
    offset: u64,
    /// How long after it is stamped an entry may still arrive.
    spread: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    stamp: u64,
    /// Everything logged up to and including this entry.
    sum: Sum,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    all: u32,
    /// The part of it that others used.
    phantom: u32,
}

/// Up to this capacity every entry is kept as it is.
const EXACT: u32 = 4096;
/// How many steps a window has otherwise: what is used then counts up to a thousandth of the
/// window longer than it has to.
const STEPS: u64 = 1024;

// === impl Window ===

impl Window {
    pub(super) fn new(kind: Kind, margin: Margin) -> Self {
        let mut window = Self {
            capacity: 0,
            length: 0,
            aligned: None,
            step: 1,
            log: VecDeque::new(),
            sum: Sum::default(),
            gone: Sum::default(),
            held: 0,
        };
        window.reconfigure(kind, margin);
        window
    }

    pub(super) fn reconfigure(&mut self, kind: Kind, margin: Margin) {
        let (capacity, span, offset) = match kind {
            Kind::Sliding { capacity, window } => (capacity, window, None),
            Kind::Aligned {
                capacity,
                period,
                offset,
            } => (capacity, period, Some(offset)),
            Kind::TokenBucket { .. } | Kind::Spacing { .. } => return,
        };
        self.capacity = capacity;
        self.length = margin.widen(span);
        self.aligned = offset.map(|offset| Aligned {
            period: nanos(span),
            offset: nanos(offset),
            spread: nanos(margin.spread).saturating_add(nanos(margin.granularity)),
        });
        self.step = if capacity <= EXACT {
            1
        } else {
            (self.length / STEPS).max(1)
        };
    }

    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Units that are logged and count.
    fn alive(&self) -> u32 {
        self.sum.all.wrapping_sub(self.gone.all)
    }

    #[inline]
    pub(super) fn fits_at_any_time(&self, units: u32, leave: u32) -> bool {
        let wanted = u64::from(self.alive()) + u64::from(self.held) + u64::from(units);
        wanted <= u64::from(self.capacity.saturating_sub(leave))
    }

    #[inline]
    pub(super) fn ready_at(
        &mut self,
        now: u64,
        units: u32,
        leave: u32,
        clock: &ServerClock,
    ) -> u64 {
        self.forget(now, clock);
        let alive = u64::from(self.alive());
        let wanted = alive + u64::from(self.held) + u64::from(units);
        let allowed = u64::from(self.capacity.saturating_sub(leave));
        if wanted <= allowed {
            return now;
        }
        let excess = wanted - allowed;
        if excess > alive {
            return NEVER;
        }
        self.freed_at(excess, clock)
    }

    pub(super) fn earliest(&mut self, now: u64, line: Line, clock: &ServerClock) -> u64 {
        self.forget(now, clock);
        let room = |leave| u64::from(self.capacity.saturating_sub(leave)).max(1);
        let (own, ahead) = (room(line.leave), room(line.leave_ahead));
        let place = line.place.max(1);
        let (alive, held) = (u64::from(self.alive()), u64::from(self.held));
        if alive + held + place <= own {
            return now;
        }
        // What is used from now on is forgotten this late, and no earlier.
        let turn = self.forgotten_at(now, clock);
        if let (Some(aligned), Some(_)) = (self.aligned, clock.at(now)) {
            let excess = alive + held + place - own;
            if excess <= alive {
                return self.freed_at(excess, clock);
            }
            // The rest waits for what is used from now on. So many can go before the tick that ends
            // that window, and as many as there is room for at each tick from there.
            let early = |entry: &Entry| self.forgotten_at(entry.stamp, clock) < turn;
            let early = match self.log.partition_point(early) {
                0 => 0,
                some => u64::from(self.log[some - 1].sum.all.wrapping_sub(self.gone.all)),
            };
            let before = (ahead + early).saturating_sub(alive + held);
            let periods = place.saturating_sub(before + own).div_ceil(ahead);
            return turn.saturating_add(periods.saturating_mul(aligned.period));
        }
        // Within a window no more goes out than there is room for: the place is a whole number of
        // windows behind one that is near.
        let (windows, near, room) = if place <= own {
            (0, place, own)
        } else {
            let windows = (place - own).div_ceil(ahead);
            (windows, place - own - (windows - 1) * ahead, ahead)
        };
        let excess = (alive + held + near).saturating_sub(room);
        let at = if excess == 0 {
            now
        } else if excess <= alive {
            self.freed_at(excess, clock)
        } else {
            turn
        };
        at.saturating_add(windows.saturating_mul(self.length))
    }

    #[inline]
    pub(super) fn hold(&mut self, units: u32) {
        self.held = self.held.saturating_add(units);
    }

    #[inline]
    pub(super) fn release(&mut self, units: u32) {
        self.held = self.held.saturating_sub(units);
    }

    #[inline]
    pub(super) fn log(&mut self, now: u64, units: u32) {
        self.push(now, units, 0);
    }

    pub(super) fn phantom(&mut self, now: u64, units: u32, clock: &ServerClock) {
        self.forget(now, clock);
        let room = self.capacity.saturating_sub(self.alive_phantom());
        let units = units.min(room);
        if units > 0 {
            self.push(now, units, units);
        }
    }

    /// Logs what may be more than there is room for; up to twice the capacity, since the sums wrap.
    pub(super) fn charge(&mut self, now: u64, units: u32, clock: &ServerClock) {
        self.forget(now, clock);
        let taken = self.alive().saturating_add(self.held);
        let room = self.capacity.saturating_mul(2).saturating_sub(taken);
        let units = units.min(room);
        if units > 0 {
            self.push(now, units, 0);
        }
    }

    fn alive_phantom(&self) -> u32 {
        self.sum.phantom.wrapping_sub(self.gone.phantom)
    }

    #[inline]
    fn push(&mut self, now: u64, units: u32, phantom: u32) {
        let stamp = self.stamp(now);
        self.sum.all = self.sum.all.wrapping_add(units);
        self.sum.phantom = self.sum.phantom.wrapping_add(phantom);
        match self.log.back_mut() {
            // The same step, or a clock that went back: what is logged stays in order.
            Some(last) if last.stamp >= stamp => last.sum = self.sum,
            _ => self.log.push_back(Entry {
                stamp,
                sum: self.sum,
            }),
        }
    }

    #[inline]
    fn stamp(&self, now: u64) -> u64 {
        if self.step == 1 {
            now
        } else {
            (now / self.step)
                .saturating_add(1)
                .saturating_mul(self.step)
        }
    }

    pub(super) fn unlog(&mut self, now: u64, stamp: u64, units: u32, clock: &ServerClock) {
        let stamp = self.stamp(stamp);
        if self.forgotten_at(stamp, clock) <= now {
            return;
        }
        self.forget(now, clock);
        let from = self.log.partition_point(|entry| entry.stamp < stamp);
        if from == self.log.len() {
            return;
        }
        let gone = self.gone.all;
        let logged = self.log[from].sum.all.wrapping_sub(gone);
        let units = units.min(logged);
        for entry in self.log.range_mut(from..) {
            entry.sum.all = entry.sum.all.wrapping_sub(units);
        }
        self.sum.all = self.sum.all.wrapping_sub(units);
        // The step has changed since where they are part of an entry before that: sums never fall.
        let most = logged - units;
        for entry in self.log.range_mut(..from).rev() {
            if entry.sum.all.wrapping_sub(gone) <= most {
                break;
            }
            entry.sum.all = gone.wrapping_add(most);
        }
    }

    pub(super) fn taken(&mut self, now: u64, clock: &ServerClock) -> Taken {
        self.forget(now, clock);
        let phantom = self.alive_phantom();
        Taken {
            logged: self.alive().saturating_sub(phantom),
            phantom,
            held: self.held,
        }
    }

    #[inline]
    pub(super) fn forget(&mut self, now: u64, clock: &ServerClock) {
        while let Some(first) = self.log.front() {
            if self.forgotten_at(first.stamp, clock) > now {
                return;
            }
            self.gone = first.sum;
            self.log.pop_front();
        }
    }

    /// When so many of the logged units are forgotten.
    fn freed_at(&self, units: u64, clock: &ServerClock) -> u64 {
        let freed = |entry: &Entry| u64::from(entry.sum.all.wrapping_sub(self.gone.all)) < units;
        let at = self.log.partition_point(freed);
        match self.log.get(at) {
            Some(entry) => self.forgotten_at(entry.stamp, clock),
            None => NEVER,
        }
    }

    /// When an entry stops counting.
    #[inline]
    fn forgotten_at(&self, stamp: u64, clock: &ServerClock) -> u64 {
        match &self.aligned {
            None => stamp.saturating_add(self.length),
            Some(aligned) => aligned
                .forgotten_at(stamp, clock)
                .unwrap_or_else(|| stamp.saturating_add(self.length)),
        }
    }
}

// === impl Aligned ===

impl Aligned {
    /// The entry reached the venue by its stamp and the spread. It counts in the window that this
    /// falls into at the latest, and is forgotten when that is over for certain. Where the clock is
    /// unknown to a quarter of the period or more, counting as a sliding window is no worse.
    fn forgotten_at(self, stamp: u64, clock: &ServerClock) -> Option<u64> {
        let (low, high) = clock.at(stamp)?;
        let period = i128::from(self.period);
        let offset = i128::from(self.offset);
        if high - low >= period / 4 {
            return None;
        }
        let arrived = i128::from(stamp) + i128::from(self.spread) + high;
        let tick = ((arrived - offset).div_euclid(period) + 1) * period + offset;
        // The clocks go on drifting apart until then.
        let local = u64::try_from((tick - low).max(0)).unwrap_or(NEVER);
        let (low, _) = clock.at(local)?;
        Some(u64::try_from((tick - low).max(0)).unwrap_or(NEVER))
    }
}
