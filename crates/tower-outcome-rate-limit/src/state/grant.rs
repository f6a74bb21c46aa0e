//! Letting waiters through.

use std::task::Waker;

use super::{Blocked, State, Units};
use crate::{
    queue::{Mask, Place, Progress},
    rule::NEVER,
};

/// Those to be woken once the lock is gone: a waker may run any code.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    wakers: [Option<Waker>; Self::MOST],
    len: usize,
}

/// What is not to be had behind those that have been looked at in a round.
#[derive(Debug, Default)]
struct Shut {
    limits: Mask,
    /// By limit, the units that are kept for those that wait for others.
    kept: Units,
}

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// There was more to do than there was room for wakers.
    More,
    /// Nothing more can go before then.
    Until(u64),
}

// === impl State ===

impl State {
    /// Lets everybody through who may go now, in order, and sends away who is too late.
    pub(crate) fn grant(&mut self, now: u64, woken: &mut Woken) -> Round {
        self.settle_lingering(now);
        self.on_held = false;
        if self.queue.is_empty() {
            return Round::Until(NEVER);
        }
        self.take_back(now);
        // Whose time is up at this very instant may still go.
        if self.expire(|at| at < now, woken).is_none() {
            return Round::More;
        }
        let Some(next) = self.let_through(now, woken) else {
            return Round::More;
        };
        let waiting = self.queue.len();
        match self.expire(|at| at <= now, woken) {
            Some(end) if self.queue.len() == waiting => {
                Round::Until(next.min(end).min(self.next_take_back()))
            }
            // Those who stood behind may be able to go.
            _ => Round::More,
        }
    }

    /// Lets everybody through who may go now, in order, and returns when to look again, or `None`
    /// if there are more.
    fn let_through(&mut self, now: u64, woken: &mut Woken) -> Option<u64> {
        let gate = self.gate.until();
        if now < gate {
            return Some(gate);
        }
        let mut next = NEVER;
        let mut shut = Shut::default();
        for class in 0..self.classes.len() {
            loop {
                if let Some((owed, place)) = self.first_owed(class, shut.limits) {
                    // What is owed comes out of the share of those who owe it.
                    match self.try_grant(now, owed, class, place, &shut, woken) {
                        Ok(()) if woken.is_full() => return None,
                        Ok(()) => {}
                        Err(blocked) => {
                            next = next.min(blocked.first);
                            self.shut(blocked, place, &mut shut);
                            if blocked.by_gate {
                                return Some(self.look_again(next));
                            }
                        }
                    }
                    continue;
                }
                let Some(place) = self.queue.first(class, shut.limits) else {
                    break;
                };
                match self.try_grant(now, class, class, place, &shut, woken) {
                    Ok(()) if woken.is_full() => return None,
                    Ok(()) => {}
                    Err(blocked) => {
                        next = next.min(blocked.first);
                        self.shut(blocked, place, &mut shut);
                        if blocked.by_gate {
                            return Some(self.look_again(next));
                        }
                    }
                }
            }
        }
        Some(self.look_again(next))
    }

    /// Units that are held are not lost in thought: when those given up on have arrived, the
    /// instant at which they are forgotten is known.
    fn look_again(&self, next: u64) -> u64 {
        match self.lingering.front() {
            Some(&(due, _)) if self.on_held => next.min(due),
            _ => next,
        }
    }

    /// One that cannot go shuts the limits that are in its way to all behind it, and keeps room for
    /// itself on those that are not: else those behind would take them in turn, and it would find
    /// them both free at no time.
    fn shut(&mut self, blocked: Blocked, place: Place, shut: &mut Shut) {
        shut.limits |= blocked.by;
        self.on_held |= blocked.on_held;
        let cost = self.queue.cost(place);
        for (limit, (kept, units)) in shut.kept.iter_mut().zip(cost).enumerate() {
            if blocked.by & 1 << limit == 0 {
                *kept = kept.saturating_add(units);
            }
        }
    }

    fn try_grant(
        &mut self,
        now: u64,
        class: usize,
        standing: usize,
        place: Place,
        shut: &Shut,
        woken: &mut Woken,
    ) -> Result<(), Blocked> {
        let cost = self.queue.cost(place);
        if let Some(blocked) = self.blocked(now, standing, &cost, &shut.kept) {
            return Err(blocked);
        }
        self.hold(now, class, &cost);
        self.keep_accounts(class, &cost);
        self.classes[class].granted += 1;
        woken.push(self.queue.unlink(place, Progress::Granted));
        self.note_untaken(now, place);
        self.forgive_if_gone(class);
        Ok(())
    }

    /// Sends away everybody whose time is up, and returns when the next one's is, or `None` if there
    /// are more.
    fn expire(&mut self, is_over: impl Fn(u64) -> bool, woken: &mut Woken) -> Option<u64> {
        let mut next = NEVER;
        while let Some((at, place)) = self.queue.next_deadline() {
            if !is_over(at) {
                next = at;
                break;
            }
            self.send_away(place, Progress::Expired, woken);
            if woken.is_full() {
                return None;
            }
        }
        for class in 0..self.classes.len() {
            while let Some((at, place)) = self.longest_wait(class) {
                let at = at.saturating_add(self.classes[class].max_wait);
                if !is_over(at) {
                    next = next.min(at);
                    break;
                }
                self.send_away(place, Progress::Expired, woken);
                if woken.is_full() {
                    return None;
                }
            }
        }
        Some(next)
    }

    /// Who of a class came first, and when.
    pub(crate) fn longest_wait(&self, class: usize) -> Option<(u64, Place)> {
        let heads = self.queue.heads(class);
        heads
            .map(|place| (self.queue.since(place), place))
            .min_by_key(|&(since, _)| since)
    }

    pub(crate) fn send_away(&mut self, place: Place, why: Progress, woken: &mut Woken) {
        let class = self.queue.class(place);
        self.classes[class].refused += 1;
        woken.push(self.queue.unlink(place, why));
        self.forgive_if_gone(class);
    }

    /// Sends away those who cannot make it any more, since one of these limits stays closed until
    /// then. The wakers are to be woken once the lock is gone.
    pub(crate) fn send_away_hopeless(&mut self, until: u64, limits: Mask) -> Vec<Waker> {
        let max_wait = |class: usize| self.classes[class].max_wait;
        let hopeless = self.queue.hopeless(until, limits, max_wait);
        self.send_all_away(hopeless, Progress::Expired)
    }

    /// Sends away those who do not fit into the limits any more.
    pub(crate) fn send_away_too_large(&mut self) -> Vec<Waker> {
        let places = self.queue.places();
        let too_large = |&place: &Place| {
            let class = self.queue.class(place);
            self.too_large(class, &self.queue.cost(place)).is_some()
        };
        let places = places.into_iter().filter(too_large).collect();
        self.send_all_away(places, Progress::TooLarge)
    }

    fn send_all_away(&mut self, places: Vec<Place>, why: Progress) -> Vec<Waker> {
        let mut wakers = Vec::with_capacity(places.len());
        for place in places {
            if self.queue.progress(place) == Progress::Waiting {
                let class = self.queue.class(place);
                self.classes[class].refused += 1;
                wakers.extend(self.queue.unlink(place, why));
                self.forgive_if_gone(class);
            }
        }
        wakers
    }

    // === what lower classes are owed ===

    /// The first lower class that is owed as much as its first waiter costs.
    fn first_owed(&self, class: usize, closed: Mask) -> Option<(usize, Place)> {
        if !self.floors || self.owes_nothing(class) || self.queue.waiting(class) == 0 {
            return None;
        }
        (class + 1..self.classes.len())
            .filter(|&below| self.classes[below].config.floor_percent > 0)
            .filter_map(|below| Some((below, self.queue.first(below, closed)?)))
            .find(|&(below, place)| self.is_owed(below, &self.queue.cost(place)))
    }

    /// Whether a class is owed this much of every limit that higher classes took from it.
    fn is_owed(&self, class: usize, cost: &Units) -> bool {
        let owed = &self.classes[class].owed;
        let mut some = false;
        for (limit, &units) in cost.iter().enumerate().take(self.rules.len()) {
            if units > 0 && owed[limit] > 0 {
                if owed[limit] < u64::from(units) * 100 {
                    return false;
                }
                some = true;
            }
        }
        some
    }

    /// A class has taken so much: it is owed less, and those below it that wait are owed more.
    pub(crate) fn keep_accounts(&mut self, class: usize, cost: &Units) {
        if !self.floors {
            return;
        }
        for (limit, &units) in cost.iter().enumerate().take(self.rules.len()) {
            let units = u64::from(units);
            let owed = &mut self.classes[class].owed[limit];
            *owed = owed.saturating_sub(units * 100);
            if self.owes_nothing(class) {
                continue;
            }
            for below in class + 1..self.classes.len() {
                if self.queue.waiting(below) > 0 {
                    let state = &mut self.classes[below];
                    let percent = u64::from(state.config.floor_percent);
                    let owed = &mut state.owed[limit];
                    *owed = owed.saturating_add(units * percent);
                }
            }
        }
    }

    /// Nothing is owed to a class of which nobody waits.
    pub(crate) fn forgive_if_gone(&mut self, class: usize) {
        if self.floors && self.queue.waiting(class) == 0 {
            self.classes[class].owed = Units::default().map(u64::from);
        }
    }

    /// Whether what was held or has been counted since can let somebody through.
    pub(crate) const fn waits_on_held(&self) -> bool {
        self.on_held
    }
}

// === impl Woken ===

impl Woken {
    const MOST: usize = 32;

    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wakers[self.len] = Some(waker);
            self.len += 1;
        }
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.len == Self::MOST
    }

    /// Wakes them all. Not under the lock.
    pub(crate) fn wake(&mut self) {
        for waker in &mut self.wakers[..self.len] {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
        self.len = 0;
    }
}
