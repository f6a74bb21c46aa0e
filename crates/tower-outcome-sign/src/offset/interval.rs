//! Between which bounds the server's clock is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::OffsetEstimate;

/// Between which bounds the server's clock is, minus the wall clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    low: i128,
    high: i128,
    /// When the bounds were right.
    pub(super) at: Instant,
    round_trip: Duration,
}

// === impl Interval ===

impl Interval {
    /// What one answer says; `None` if its date is out of all time.
    pub(super) fn heard(
        sent: SystemTime,
        round_trip: Duration,
        server: SystemTime,
        resolution: Duration,
        at: Instant,
    ) -> Option<Self> {
        let (sent, server) = (nanos(sent)?, nanos(server)?);
        Some(Self {
            low: server - (sent + span(round_trip)),
            high: server + span(resolution) - sent,
            at,
            round_trip,
        })
    }

    /// The same later on, when less is certain.
    pub(super) fn at(self, now: Instant, drift_ppm: u32) -> Self {
        let age = span(now.saturating_duration_since(self.at));
        let drift = age * i128::from(drift_ppm) / 1_000_000;
        Self {
            low: self.low - drift,
            high: self.high + drift,
            at: now.max(self.at),
            ..self
        }
    }

    /// Both together, unless they contradict each other.
    pub(super) fn both(self, newer: Self) -> Option<Self> {
        let both = Self {
            low: self.low.max(newer.low),
            high: self.high.min(newer.high),
            ..newer
        };
        (both.low <= both.high).then_some(both)
    }

    /// Whether it may be no further off than that.
    pub(super) fn is_within(self, offset: Duration) -> bool {
        let offset = span(offset);
        self.low <= offset && self.high >= -offset
    }

    pub(super) const fn estimate(self) -> OffsetEstimate {
        let width = self.high - self.low;
        OffsetEstimate {
            middle: self.low + width / 2,
            error: width / 2,
            round_trip: self.round_trip,
        }
    }
}

fn nanos(time: SystemTime) -> Option<i128> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(span(since))
}

pub(super) fn span(span: Duration) -> i128 {
    i128::try_from(span.as_nanos()).unwrap_or(i128::MAX / 4)
}
