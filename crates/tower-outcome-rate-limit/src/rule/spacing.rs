//! The distance between departures.

use std::time::Duration;

use super::Margin;

/// Keeps departures apart.
#[derive(Debug)]
pub(crate) struct Spacing {
    gap: u64,
    next: u64,
}

// === impl Spacing ===

impl Spacing {
    pub(super) fn new(gap: Duration, margin: Margin) -> Self {
        Self {
            gap: margin.widen(gap),
            next: 0,
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
        now.max(self.next)
    }

    pub(super) fn earliest(&self, now: u64, ahead: u64) -> u64 {
        self.ready_at(now)
            .saturating_add(ahead.saturating_mul(self.gap))
    }

    #[inline]
    pub(super) fn depart(&mut self, now: u64) {
        self.next = self.next.max(now.saturating_add(self.gap));
    }
}
