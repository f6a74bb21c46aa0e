//! The distance between departures.

use std::time::Duration;

use super::{Margin, NEVER};

/// Keeps departures apart.
#[derive(Debug)]
pub(crate) struct Spacing {
    gap: u64,
    next: u64,
    /// How many were let through and have not left: while there is one, nobody knows when the next
    /// may go.
    held: u32,
}

// === impl Spacing ===

impl Spacing {
    pub(super) fn new(gap: Duration, margin: Margin) -> Self {
        Self {
            gap: margin.widen(gap),
            next: 0,
            held: 0,
        }
    }

    pub(super) fn reconfigure(&mut self, gap: Duration, margin: Margin) {
        let last = self.next.saturating_sub(self.gap);
        self.gap = margin.widen(gap);
        if self.next > 0 {
            self.next = last.saturating_add(self.gap);
        }
    }

    pub(super) const fn gap(&self) -> u64 {
        self.gap
    }

    #[inline]
    pub(super) fn ready_at(&self, now: u64) -> u64 {
        if self.held > 0 {
            NEVER
        } else {
            now.max(self.next)
        }
    }

    pub(super) fn hold(&mut self) {
        self.held = self.held.saturating_add(1);
    }

    pub(super) fn release(&mut self) {
        self.held = self.held.saturating_sub(1);
    }

    pub(super) fn earliest(&self, now: u64, ahead: u64) -> u64 {
        // One that was let through leaves now at the earliest.
        let next = if self.held > 0 {
            now.saturating_add(self.gap)
        } else {
            now
        };
        next.max(self.next)
            .saturating_add(ahead.saturating_mul(self.gap))
    }

    #[inline]
    pub(super) fn depart(&mut self, now: u64) {
        self.release();
        self.next = self.next.max(now.saturating_add(self.gap));
    }
}
