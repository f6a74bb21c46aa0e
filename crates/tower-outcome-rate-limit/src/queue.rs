//! Who waits, and in which order.
//!
//! A class of waiters is a set of lanes, one for each set of limits that requests touch. Inside a
//! lane who came first goes first; between the lanes of a class the same holds for those that share
//! a limit, while a lane that is stuck on one limit does not hold up those that do not use it.

mod deadlines;
mod lane;
mod slab;

use std::task::Waker;

use self::{
    deadlines::Deadlines,
    lane::Lane,
    slab::{NIL, Slab},
};
use crate::budget::{MAX_CLASSES, MAX_LIMITS};

pub(crate) use self::slab::Progress;

/// A waiter's place, valid until it is [released](Queue::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) u32);

/// A set of limits, one bit each.
pub(crate) type Mask = u8;

/// What a waiter brings along.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrant {
    pub(crate) class: usize,
    pub(crate) cost: [u32; MAX_LIMITS],
    /// When it gives up, where that is its own business and not its class's.
    pub(crate) deadline: Option<u64>,
}

/// What stands before a newcomer, of one limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ahead {
    pub(crate) units: u64,
    pub(crate) requests: u64,
    /// The highest class of those.
    pub(crate) highest: Option<usize>,
}

/// Everybody who waits for a budget.
#[derive(Debug)]
pub(crate) struct Queue {
    slab: Slab,
    lanes: [Vec<Lane>; MAX_CLASSES],
    /// By class, the limits that somebody waits for.
    wanted: [Mask; MAX_CLASSES],
    waiting: [u32; MAX_CLASSES],
    total: u32,
    deadlines: Deadlines,
    arrivals: u32,
    limits: usize,
}

// === impl Queue ===

impl Queue {
    pub(crate) fn new(limits: usize) -> Self {
        Self {
            slab: Slab::new(limits),
            lanes: [const { Vec::new() }; MAX_CLASSES],
            wanted: [0; MAX_CLASSES],
            waiting: [0; MAX_CLASSES],
            total: 0,
            deadlines: Deadlines::default(),
            arrivals: 0,
            limits,
        }
    }

    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.total
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) const fn waiting(&self, class: usize) -> u32 {
        self.waiting[class]
    }

    /// Whether somebody of this class or above waits for one of these limits, so that a newcomer
    /// would overtake.
    #[inline]
    pub(crate) fn would_overtake(&self, class: usize, mask: Mask) -> bool {
        self.total > 0
            && (0..=class).any(|above| {
                // Those who touch no limit wait for the gate alone; nobody overtakes them.
                self.wanted[above] & mask != 0
            })
    }

    /// Whether somebody of a class below waits.
    pub(crate) fn waits_below(&self, class: usize) -> bool {
        self.waiting[class + 1..].iter().any(|&waiting| waiting > 0)
    }

    /// Lets somebody in at the end.
    pub(crate) fn push(&mut self, now: u64, entrant: &Entrant, waker: Option<Waker>) -> Place {
        let Entrant {
            class,
            cost,
            deadline,
        } = *entrant;
        let mask = mask_of(&cost, self.limits);
        let arrival = self.arrivals;
        self.arrivals = self.arrivals.wrapping_add(1);
        let index = self.lane(class, mask);
        let lane = &mut self.lanes[class][index];
        let node = self
            .slab
            .insert(class, mask, arrival, now, &cost, lane.tail, waker);
        lane.add(&cost);
        lane.tail = node;
        if lane.head == NIL {
            lane.head = node;
        }
        self.waiting[class] += 1;
        self.total += 1;
        if let Some(deadline) = deadline {
            self.deadlines.push(deadline, node, arrival);
        }
        Place(node)
    }

    /// Notes that one that was let through has not noticed.
    pub(crate) fn put_to_sleep(&mut self, place: Place) {
        self.slab.finish(place.0, Progress::Asleep);
    }

    /// Lets one that slept back in, where it would stand if it had never been let through.
    pub(crate) fn let_back(&mut self, place: Place, deadline: Option<u64>, waker: Waker) {
        let node = place.0;
        let (class, mask) = self.slab.lane_of(node);
        let cost = self.slab.cost(node);
        let arrival = self.slab.arrival(node);
        let lane = self.lane(class, mask);
        let (head, tail) = {
            let lane = &self.lanes[class][lane];
            (lane.head, lane.tail)
        };
        // Nearly always it is the first.
        let age = |arrival: u32| arrival.wrapping_sub(self.arrivals);
        let mut behind = head;
        while behind != NIL && age(self.slab.arrival(behind)) < age(arrival) {
            behind = self.slab.behind(behind);
        }
        let before = if behind == NIL {
            tail
        } else {
            self.slab.before(behind)
        };
        self.slab.link(node, before, behind, waker);
        let lane = &mut self.lanes[class][lane];
        lane.add(&cost);
        if before == NIL {
            lane.head = node;
        }
        if behind == NIL {
            lane.tail = node;
        }
        self.waiting[class] += 1;
        self.total += 1;
        if let Some(deadline) = deadline {
            self.deadlines.push(deadline, node, arrival);
        }
    }

    /// The index of a lane, which is made if there is none.
    fn lane(&mut self, class: usize, mask: Mask) -> usize {
        let lanes = &mut self.lanes[class];
        match lanes.iter().position(|lane| lane.mask == mask) {
            Some(index) => index,
            None => {
                lanes.push(Lane::new(mask));
                self.wanted[class] |= mask;
                lanes.len() - 1
            }
        }
    }

    /// Takes somebody out of the line, for the reason given. The place remains until it is
    /// released; returned is the waker, to be woken or dropped once the lock is gone.
    pub(crate) fn unlink(&mut self, place: Place, progress: Progress) -> Option<Waker> {
        let node = place.0;
        let (class, mask) = self.slab.lane_of(node);
        let cost = self.slab.cost(node);
        let (before, behind) = self.slab.unlink(node);
        let lanes = &mut self.lanes[class];
        if let Some(index) = lanes.iter().position(|lane| lane.mask == mask) {
            let lane = &mut lanes[index];
            if before == NIL {
                lane.head = behind;
            }
            if behind == NIL {
                lane.tail = before;
            }
            lane.subtract(&cost);
            if lane.len == 0 {
                lanes.swap_remove(index);
                self.wanted[class] = lanes.iter().fold(0, |all, lane| all | lane.mask);
            }
        }
        self.waiting[class] -= 1;
        self.total -= 1;
        self.deadlines.note_gone(self.total, &self.slab);
        self.slab.finish(node, progress)
    }

    /// Gives up a place. The waker of one who was still in line goes out with it.
    pub(crate) fn release(&mut self, place: Place) -> Option<Waker> {
        let waker = if self.slab.progress(place.0) == Progress::Waiting {
            self.unlink(place, Progress::Granted)
        } else {
            None
        };
        self.slab.remove(place.0);
        waker
    }

    pub(crate) fn progress(&self, place: Place) -> Progress {
        self.slab.progress(place.0)
    }

    pub(crate) fn cost(&self, place: Place) -> [u32; MAX_LIMITS] {
        self.slab.cost(place.0)
    }

    pub(crate) fn class(&self, place: Place) -> usize {
        self.slab.lane_of(place.0).0
    }

    /// Whether a place still is that of the one who arrived then, who was let through.
    pub(crate) fn is_granted(&self, place: Place, arrival: u32) -> bool {
        self.slab.is(place.0, arrival, Progress::Granted)
    }

    pub(crate) fn arrival(&self, place: Place) -> u32 {
        self.slab.arrival(place.0)
    }

    pub(crate) fn since(&self, place: Place) -> u64 {
        self.slab.since(place.0)
    }

    pub(crate) fn wakes(&self, place: Place, waker: &Waker) -> bool {
        self.slab.wakes(place.0, waker)
    }

    /// Sets who is woken, and returns who was.
    pub(crate) fn set_waker(&mut self, place: Place, waker: Waker) -> Option<Waker> {
        self.slab.set_waker(place.0, waker)
    }

    /// The first of a class whose limits are all open.
    pub(crate) fn first(&self, class: usize, closed: Mask) -> Option<Place> {
        let open = self.lanes[class]
            .iter()
            .filter(|lane| lane.mask & closed == 0);
        // Arrivals wrap around, and all that wait came within half of their range.
        open.min_by_key(|lane| self.slab.arrival(lane.head).wrapping_sub(self.arrivals))
            .map(|lane| Place(lane.head))
    }

    /// Who has waited longest in each lane of a class.
    pub(crate) fn heads(&self, class: usize) -> impl Iterator<Item = Place> + '_ {
        self.lanes[class].iter().map(|lane| Place(lane.head))
    }

    /// The one that came last of the lowest class that waits, if that is below `class`.
    pub(crate) fn newest_below(&self, class: usize) -> Option<Place> {
        let lowest = (class + 1..MAX_CLASSES)
            .rev()
            .find(|&below| self.waiting[below] > 0)?;
        self.lanes[lowest]
            .iter()
            .max_by_key(|lane| self.slab.arrival(lane.tail).wrapping_sub(self.arrivals))
            .map(|lane| Place(lane.tail))
    }

    /// What stands before a newcomer for certain. Only lanes count that the newcomer cannot
    /// overtake, which are those that touch nothing but what it touches too.
    pub(crate) fn ahead(
        &self,
        classes: std::ops::RangeInclusive<usize>,
        mask: Mask,
    ) -> [Ahead; MAX_LIMITS] {
        let mut ahead = [Ahead::default(); MAX_LIMITS];
        for class in classes.rev() {
            for lane in &self.lanes[class] {
                if lane.mask & !mask != 0 {
                    continue;
                }
                for (limit, ahead) in ahead.iter_mut().enumerate() {
                    if lane.mask & 1 << limit != 0 {
                        ahead.units = ahead.units.saturating_add(lane.units[limit]);
                        ahead.requests += u64::from(lane.len);
                        ahead.highest = Some(class);
                    }
                }
            }
        }
        ahead
    }

    /// The next instant at which somebody gives up on its own account.
    pub(crate) fn next_deadline(&mut self) -> Option<(u64, Place)> {
        self.deadlines
            .next(&self.slab)
            .map(|(at, node)| (at, Place(node)))
    }

    /// Whether nobody stands before it in its lane.
    pub(crate) fn is_first(&self, place: Place) -> bool {
        self.slab.is_first(place.0)
    }

    /// Those who give up before an instant and wait for one of these limits until then.
    pub(crate) fn hopeless(
        &self,
        until: u64,
        limits: Mask,
        max_wait: impl Fn(usize) -> u64,
    ) -> Vec<Place> {
        let concerns = |node: u32| {
            let (_, mask) = self.slab.lane_of(node);
            limits == Mask::MAX || mask & limits != 0
        };
        let on_their_own = self.deadlines.before(until, &self.slab);
        let mut places: Vec<Place> = on_their_own
            .filter(|&node| concerns(node))
            .map(Place)
            .collect();
        for (class, lanes) in self.lanes.iter().enumerate() {
            let too_long =
                |&node: &u32| self.slab.since(node).saturating_add(max_wait(class)) < until;
            for lane in lanes.iter().filter(|lane| concerns(lane.head)) {
                let walk = self.slab.walk(lane.head);
                places.extend(walk.take_while(too_long).map(Place));
            }
        }
        places
    }

    /// Everybody who waits, to be looked at one by one.
    pub(crate) fn places(&self) -> Vec<Place> {
        let lanes = self.lanes.iter().flatten();
        lanes
            .flat_map(|lane| self.slab.walk(lane.head))
            .map(Place)
            .collect()
    }

    /// Takes the wakers of all who wait.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        let places = self.places();
        places
            .into_iter()
            .filter_map(|place| self.slab.take_waker(place.0))
            .collect()
    }
}

/// The limits that a cost touches.
#[inline]
pub(crate) fn mask_of(cost: &[u32; MAX_LIMITS], limits: usize) -> Mask {
    let mut mask = 0;
    for (limit, &units) in cost.iter().enumerate().take(limits) {
        if units > 0 {
            mask |= 1 << limit;
        }
    }
    mask
}

#[cfg(test)]
mod tests;
