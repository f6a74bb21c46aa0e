//! Where waiters are kept.

use std::task::Waker;

use super::Mask;
use crate::budget::MAX_LIMITS;

/// No node.
pub(super) const NIL: u32 = u32::MAX;

/// How far a waiter has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nobody's place; it is free.
    Free,
    /// In line.
    Waiting,
    /// Let through; its units are held for it.
    Granted,
    /// Too late.
    Expired,
    /// Made way for somebody of a higher class.
    Displaced,
    /// The limits have become too small for it.
    TooLarge,
    /// Let through, and did not notice for too long; it stands in line again once it is polled.
    Asleep,
}

/// Waiters in one block of memory, linked by index: no allocation for each, and leaving costs the
/// same anywhere in the line.
#[derive(Debug)]
pub(super) struct Slab {
    nodes: Vec<Node>,
    /// What each costs, as many numbers a node as the budget has limits.
    costs: Vec<u32>,
    limits: usize,
    free: u32,
    used: usize,
}

#[derive(Debug)]
struct Node {
    before: u32,
    /// The next in line, or the next free node.
    behind: u32,
    arrival: u32,
    class: u8,
    mask: Mask,
    progress: Progress,
    since: u64,
    waker: Option<Waker>,
}

/// As many nodes may stay when nobody waits.
const KEPT: usize = 256;

// === impl Slab ===

impl Slab {
    pub(super) const fn new(limits: usize) -> Self {
        Self {
            nodes: Vec::new(),
            costs: Vec::new(),
            limits,
            free: NIL,
            used: 0,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of a node")]
    pub(super) fn insert(
        &mut self,
        class: usize,
        mask: Mask,
        arrival: u32,
        since: u64,
        cost: &[u32; MAX_LIMITS],
        before: u32,
        waker: Option<Waker>,
    ) -> u32 {
        let node = Node {
            before,
            behind: NIL,
            arrival,
            class: class as u8,
            mask,
            progress: Progress::Waiting,
            since,
            waker,
        };
        let index = if self.free == NIL {
            self.nodes.push(node);
            self.costs.extend_from_slice(&cost[..self.limits]);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            let place = index as usize;
            self.free = self.nodes[place].behind;
            self.nodes[place] = node;
            let from = place * self.limits;
            self.costs[from..from + self.limits].copy_from_slice(&cost[..self.limits]);
            index
        };
        if before != NIL {
            self.nodes[before as usize].behind = index;
        }
        self.used += 1;
        index
    }

    /// Takes a node out of its line, and returns its neighbours.
    pub(super) fn unlink(&mut self, index: u32) -> (u32, u32) {
        let node = &self.nodes[index as usize];
        let (before, behind) = (node.before, node.behind);
        if before != NIL {
            self.nodes[before as usize].behind = behind;
        }
        if behind != NIL {
            self.nodes[behind as usize].before = before;
        }
        (before, behind)
    }

    /// Puts a node that is in no line before another one, or at the end.
    pub(super) fn link(&mut self, index: u32, before: u32, behind: u32, waker: Waker) {
        let node = &mut self.nodes[index as usize];
        node.before = before;
        node.behind = behind;
        node.progress = Progress::Waiting;
        node.waker = Some(waker);
        if before != NIL {
            self.nodes[before as usize].behind = index;
        }
        if behind != NIL {
            self.nodes[behind as usize].before = index;
        }
    }

    pub(super) fn before(&self, index: u32) -> u32 {
        self.nodes[index as usize].before
    }

    pub(super) fn behind(&self, index: u32) -> u32 {
        self.nodes[index as usize].behind
    }

    pub(super) fn finish(&mut self, index: u32, progress: Progress) -> Option<Waker> {
        let node = &mut self.nodes[index as usize];
        node.progress = progress;
        node.waker.take()
    }

    /// Frees a node that is in no line and has no waker any more.
    pub(super) fn remove(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.progress = Progress::Free;
        node.behind = self.free;
        self.free = index;
        self.used -= 1;
        // The memory of a rush is given back when it is over.
        if self.used == 0 && self.nodes.len() > KEPT {
            *self = Self::new(self.limits);
        }
    }

    pub(super) fn progress(&self, index: u32) -> Progress {
        self.nodes[index as usize].progress
    }

    pub(super) fn lane_of(&self, index: u32) -> (usize, Mask) {
        let node = &self.nodes[index as usize];
        (usize::from(node.class), node.mask)
    }

    pub(super) fn is_first(&self, index: u32) -> bool {
        self.nodes[index as usize].before == NIL
    }

    pub(super) fn arrival(&self, index: u32) -> u32 {
        self.nodes[index as usize].arrival
    }

    pub(super) fn since(&self, index: u32) -> u64 {
        self.nodes[index as usize].since
    }

    pub(super) fn cost(&self, index: u32) -> [u32; MAX_LIMITS] {
        let from = index as usize * self.limits;
        let mut cost = [0; MAX_LIMITS];
        cost[..self.limits].copy_from_slice(&self.costs[from..from + self.limits]);
        cost
    }

    pub(super) fn wakes(&self, index: u32, waker: &Waker) -> bool {
        let node = &self.nodes[index as usize];
        node.waker.as_ref().is_some_and(|own| own.will_wake(waker))
    }

    pub(super) fn set_waker(&mut self, index: u32, waker: Waker) -> Option<Waker> {
        self.nodes[index as usize].waker.replace(waker)
    }

    pub(super) fn take_waker(&mut self, index: u32) -> Option<Waker> {
        self.nodes[index as usize].waker.take()
    }

    /// Whether the node still is the waiter that arrived then, and waits.
    pub(super) fn is_waiting(&self, index: u32, arrival: u32) -> bool {
        self.is(index, arrival, Progress::Waiting)
    }

    /// Whether the node still is the waiter that arrived then, and has got so far. There may be no
    /// such node any more.
    pub(super) fn is(&self, index: u32, arrival: u32, progress: Progress) -> bool {
        let node = self.nodes.get(index as usize);
        node.is_some_and(|node| node.arrival == arrival && node.progress == progress)
    }

    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.nodes.len()
    }

    /// A node and all behind it.
    pub(super) fn walk(&self, head: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |index: u32| Some(index).filter(|&index| index != NIL);
        std::iter::successors(next(head), move |&index| {
            next(self.nodes[index as usize].behind)
        })
    }
}
