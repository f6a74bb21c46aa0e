//! One line of waiters.

use super::{Mask, slab::NIL};
use crate::budget::MAX_LIMITS;

/// The waiters of a class that touch the same limits, in the order in which they came.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) mask: Mask,
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) len: u32,
    /// What they cost together.
    pub(super) units: [u64; MAX_LIMITS],
}

// === impl Lane ===

impl Lane {
    pub(super) const fn new(mask: Mask) -> Self {
        Self {
            mask,
            head: NIL,
            tail: NIL,
            len: 0,
            units: [0; MAX_LIMITS],
        }
    }

    pub(super) fn add(&mut self, cost: &[u32; MAX_LIMITS]) {
        self.len += 1;
        for (sum, &units) in self.units.iter_mut().zip(cost) {
            *sum += u64::from(units);
        }
    }

    pub(super) fn subtract(&mut self, cost: &[u32; MAX_LIMITS]) {
        self.len -= 1;
        for (sum, &units) in self.units.iter_mut().zip(cost) {
            *sum -= u64::from(units);
        }
    }
}
