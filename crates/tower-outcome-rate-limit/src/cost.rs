//! What a request costs.

use crate::budget::MAX_LIMITS;

/// What a request costs of each limit of a budget.
///
/// [`Budget::cost`](crate::Budget::cost) makes one from the names of limits, once; copying it is
/// cheap. A limit that costs 0 is not touched: the request neither waits for it nor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(pub(crate) [u32; MAX_LIMITS]);

// === impl Cost ===

impl Cost {
    /// One unit of every limit; what a request costs that nobody mapped.
    pub const EACH: Self = Self([1; MAX_LIMITS]);

    /// Nothing. Such a request waits only while the budget is paused.
    pub const NOTHING: Self = Self([0; MAX_LIMITS]);

    /// Creates a cost from the units of each limit, in the order in which the budget was given its
    /// limits. What is left out costs 0, and what is beyond the last limit means nothing.
    #[must_use]
    pub const fn in_order<const N: usize>(units: [u32; N]) -> Self {
        let mut cost = [0; MAX_LIMITS];
        let mut i = 0;
        while i < N && i < MAX_LIMITS {
            cost[i] = units[i];
            i += 1;
        }
        Self(cost)
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::EACH
    }
}
