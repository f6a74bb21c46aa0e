//! Points in time, on two clocks at once.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Now, on both clocks.
///
/// The monotonic one cannot be set, and stands still while a machine sleeps; the wall clock goes on,
/// and can be set. Whichever says that a credential has expired is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) mono: Instant,
    pub(crate) wall: SystemTime,
}

/// A point in time that is reached as soon as one of the clocks has reached it; never, if it is on
/// neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) mono: Option<Instant>,
    pub(crate) wall: Option<SystemTime>,
}

// === impl Moment ===

impl Moment {
    /// The point so much later, on both clocks; one that cannot be represented is never reached.
    pub(crate) fn plus(self, span: Duration) -> Mark {
        Mark {
            mono: self.mono.checked_add(span),
            wall: self.wall.checked_add(span),
        }
    }
}

// === impl Mark ===

impl Mark {
    pub(crate) const NEVER: Self = Self {
        mono: None,
        wall: None,
    };

    pub(crate) const fn on_wall(wall: SystemTime) -> Self {
        Self {
            mono: None,
            wall: Some(wall),
        }
    }

    #[inline]
    pub(crate) fn is_reached(self, at: Moment) -> bool {
        self.mono.is_some_and(|mono| at.mono >= mono)
            || self.wall.is_some_and(|wall| at.wall >= wall)
    }

    /// Whether it is on neither clock.
    #[inline]
    pub(crate) fn is_never(self) -> bool {
        self.mono.is_none() && self.wall.is_none()
    }

    /// What is reached first.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            mono: earlier(self.mono, other.mono),
            wall: earlier(self.wall, other.wall),
        }
    }

    /// The point so much earlier.
    pub(crate) fn minus(self, span: Duration) -> Self {
        Self {
            // Before the clock began is reached as well.
            mono: self.mono.map(|mono| mono.checked_sub(span).unwrap_or(mono)),
            wall: self.wall.map(|wall| wall.checked_sub(span).unwrap_or(wall)),
        }
    }

    /// How long it is until then; `None` for ever.
    pub(crate) fn left(self, at: Moment) -> Option<Duration> {
        let mono = self
            .mono
            .map(|mono| mono.saturating_duration_since(at.mono));
        let wall = self
            .wall
            .map(|wall| wall.duration_since(at.wall).unwrap_or_default());
        earlier(mono, wall)
    }
}

fn earlier<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
