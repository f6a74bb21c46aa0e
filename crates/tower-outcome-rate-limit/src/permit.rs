//! Leave to send one request.

use std::fmt;

use crate::{Budget, state::Units};

/// Leave to send one request.
///
/// Under [`Guard::UntilResponse`](crate::Guard::UntilResponse), its units are held until one of
/// three things is said:
///
/// - [`responded`](Self::responded): the response head is here. They count for one window from now.
/// - [`refund`](Self::refund): nothing was sent. They are free again.
/// - dropped: the request was given up on and may still arrive. They are held for the guard's `late`,
///   and count for one window from then.
///
/// Under the other guards they count from the departure, and only a refund changes that.
#[must_use = "a permit that is dropped counts as a request that may still arrive"]
pub struct Permit {
    budget: Budget,
    cost: Units,
    departed: u64,
    is_open: bool,
}

/// How often a request is believed to have been sent again by a layer below.
const MOST_RESENT: u32 = 16;

/// How a request ended, as far as the venue's count goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Responded,
    Refunded,
    GivenUp,
}

// === impl Permit ===

impl Permit {
    #[inline]
    pub(crate) const fn new(budget: Budget, cost: Units, departed: u64) -> Self {
        Self {
            budget,
            cost,
            departed,
            is_open: true,
        }
    }

    /// The response head has arrived, so the venue has counted the request.
    #[inline]
    pub fn responded(mut self) {
        self.end(End::Responded);
    }

    /// Nothing was sent, and nothing will be.
    pub fn refund(mut self) {
        self.end(End::Refunded);
    }

    /// Returns the budget that let the request through.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The request was sent so many times more, without waiting its turn.
    pub(crate) fn charge(&self, times: u32) {
        let shared = self.budget.shared();
        let now = shared.now();
        let mut state = shared.lock();
        // No layer sends more than a few times.
        for _ in 0..times.min(MOST_RESENT) {
            state.charge(now, &self.cost);
        }
    }

    #[inline]
    pub(crate) fn end(&mut self, end: End) {
        if !self.is_open {
            return;
        }
        self.is_open = false;
        let shared = self.budget.shared();
        if !(shared.holds && matches!(end, End::Responded)) {
            return self.end_otherwise(end);
        }
        let now = shared.now();
        let mut state = shared.lock();
        state.settle(now, &self.cost);
        // Who waits for held units did not know for how long; now there is an instant.
        if !state.queue.is_empty() && state.waits_on_held() {
            shared.stir(state, now);
        }
    }

    #[cold]
    fn end_otherwise(&self, end: End) {
        let shared = self.budget.shared();
        if !(shared.holds || matches!(end, End::Refunded)) {
            // It counts since it departed.
            return;
        }
        let now = shared.now();
        let mut state = shared.lock();
        match end {
            End::Responded => {}
            End::Refunded if shared.holds => state.refund(&self.cost),
            End::Refunded => state.unlog(now, self.departed, &self.cost),
            End::GivenUp => state.linger(now, &self.cost),
        }
        if !state.queue.is_empty() {
            shared.stir(state, now);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.end(End::GivenUp);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("budget", &self.budget.name())
            .field("cost", &&self.cost[..self.budget.limits().len()])
            .finish_non_exhaustive()
    }
}
