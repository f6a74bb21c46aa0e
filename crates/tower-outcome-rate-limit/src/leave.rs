//! What a request was granted by all its budgets.

use crate::{Budget, Permit, permit::End};

/// What a request was granted by all its budgets, the narrowest first.
///
/// Dropped before the request was sent, it gives everything back; after that, it counts.
#[derive(Debug, Default)]
pub(crate) struct Leave {
    /// Most requests have one, and it is not allocated.
    first: Option<Permit>,
    wider: Vec<Permit>,
    is_sent: bool,
}

// === impl Leave ===

impl Leave {
    #[inline]
    pub(crate) fn add(&mut self, permit: Permit) {
        if self.first.is_none() {
            self.first = Some(permit);
        } else {
            self.wider.push(permit);
        }
    }

    /// The request is sent.
    #[inline]
    pub(crate) fn send(&mut self) {
        self.is_sent = true;
    }

    /// The response head is here.
    #[inline]
    pub(crate) fn respond(&mut self) {
        self.end(End::Responded);
    }

    /// The request was sent so many times more than it was let through.
    #[cold]
    pub(crate) fn charge(&self, times: u32) {
        for permit in self.first.iter().chain(&self.wider) {
            permit.charge(times);
        }
    }

    /// Nothing was sent.
    pub(crate) fn refund(&mut self) {
        self.end(End::Refunded);
    }

    /// It may still arrive.
    pub(crate) fn give_up(&mut self) {
        self.end(End::GivenUp);
    }

    #[inline]
    fn end(&mut self, end: End) {
        if let Some(permit) = &mut self.first {
            permit.end(end);
        }
        for permit in &mut self.wider {
            permit.end(end);
        }
    }

    /// The budgets that let it through, the narrowest first.
    pub(crate) fn budgets(&self) -> impl Iterator<Item = &Budget> {
        self.first.iter().chain(&self.wider).map(Permit::budget)
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        if !self.is_sent {
            self.refund();
        }
    }
}
