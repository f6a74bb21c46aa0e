//! A limit at work: what is used of it, and when something fits.
//!
//! Everything here is arithmetic. Time is an argument, in nanoseconds since the budget was built.

mod bucket;
mod spacing;
mod window;

use std::time::Duration;

use self::{bucket::Bucket, spacing::Spacing, window::Window};
use crate::{Guard, limit::Kind, server_clock::ServerClock};

/// An instant that never comes: only something that ends can help.
pub(crate) const NEVER: u64 = u64::MAX;

/// A limit at work.
///
/// What a request takes is first held, and then either refunded or logged: from then on it counts
/// until the limit forgets it.
#[derive(Debug)]
pub(crate) enum Rule {
    Window(Window),
    Bucket(Bucket),
    Spacing(Spacing),
}

/// What is added to every window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margin {
    /// The guard for departures that are logged instead of held.
    pub(crate) spread: Duration,
    /// How much two clocks drift apart, in parts per million.
    pub(crate) ppm: u32,
    /// How exactly the venue tells the time.
    pub(crate) granularity: Duration,
}

/// Where units stand that wait for others to go first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Their own number and that of all before them.
    pub(crate) place: u64,
    /// How many requests are before them.
    pub(crate) requests: u64,
    /// What they leave untouched.
    pub(crate) leave: u32,
    /// What those before them leave at least.
    pub(crate) leave_ahead: u32,
}

/// How much of a limit is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) logged: u32,
    pub(crate) phantom: u32,
    pub(crate) held: u32,
}

// === impl Rule ===

impl Rule {
    pub(crate) fn new(kind: Kind, margin: Margin) -> Self {
        match kind {
            Kind::Sliding { .. } | Kind::Aligned { .. } => Self::Window(Window::new(kind, margin)),
            Kind::TokenBucket { tokens, per, burst } => {
                Self::Bucket(Bucket::new(tokens, per, burst, margin))
            }
            Kind::Spacing { gap } => Self::Spacing(Spacing::new(gap, margin)),
        }
    }

    /// Takes on another configuration of the same kind, and keeps what is used. Says whether it
    /// could.
    pub(crate) fn reconfigure(&mut self, now: u64, kind: Kind, margin: Margin) -> bool {
        match (self, kind) {
            (Self::Window(window), Kind::Sliding { .. } | Kind::Aligned { .. }) => {
                window.reconfigure(kind, margin);
            }
            (Self::Bucket(bucket), Kind::TokenBucket { tokens, per, burst }) => {
                bucket.reconfigure(now, tokens, per, burst, margin);
            }
            (Self::Spacing(spacing), Kind::Spacing { gap }) => spacing.reconfigure(gap, margin),
            _ => return false,
        }
        true
    }

    /// The most that can be taken at one instant; a spacing counts nothing.
    pub(crate) const fn capacity(&self) -> Option<u32> {
        match self {
            Self::Window(window) => Some(window.capacity()),
            Self::Bucket(bucket) => Some(bucket.burst()),
            Self::Spacing(_) => None,
        }
    }

    /// The time in which as much comes back as the capacity.
    pub(crate) const fn window(&self) -> u64 {
        match self {
            Self::Window(window) => window.length(),
            Self::Bucket(bucket) => bucket.refill(),
            Self::Spacing(spacing) => spacing.gap(),
        }
    }

    /// Whether so many units fit whatever time it is: without anything being forgotten.
    #[inline]
    pub(crate) fn fits_at_any_time(&self, units: u32, leave: u32) -> bool {
        match self {
            Self::Window(window) => window.fits_at_any_time(units, leave),
            Self::Bucket(_) | Self::Spacing(_) => false,
        }
    }

    /// The earliest instant at which so many units fit while `leave` stay untouched, as far as
    /// anybody knows; [`NEVER`] if something that is held has to end first.
    #[inline]
    pub(crate) fn ready_at(
        &mut self,
        now: u64,
        units: u32,
        leave: u32,
        clock: &ServerClock,
    ) -> u64 {
        match self {
            Self::Window(window) => window.ready_at(now, units, leave, clock),
            Self::Bucket(bucket) => bucket.ready_at(now, units, leave),
            Self::Spacing(spacing) => spacing.ready_at(now),
        }
    }

    /// The earliest instant at which units fit that stand behind others. Never later than it will
    /// really be, as long as nobody gives up.
    pub(crate) fn earliest(&mut self, now: u64, line: Line, clock: &ServerClock) -> u64 {
        match self {
            Self::Window(window) => window.earliest(now, line, clock),
            Self::Bucket(bucket) => bucket.earliest(now, line.place, line.leave),
            Self::Spacing(spacing) => spacing.earliest(now, line.requests),
        }
    }

    /// Takes units that are on their way.
    #[inline]
    pub(crate) fn hold(&mut self, units: u32) {
        match self {
            Self::Window(window) => window.hold(units),
            Self::Bucket(bucket) => bucket.hold(units),
            Self::Spacing(spacing) => spacing.hold(),
        }
    }

    /// Gives held units back of a request that was let through and does not leave.
    pub(crate) fn revoke(&mut self, units: u32) {
        match self {
            Self::Window(window) => window.release(units),
            Self::Bucket(bucket) => bucket.release(units),
            Self::Spacing(spacing) => spacing.release(),
        }
    }

    /// A request that was let through leaves only now.
    #[inline]
    pub(crate) fn depart(&mut self, now: u64) {
        if let Self::Spacing(spacing) = self {
            spacing.depart(now);
        }
    }

    /// Gives held units back.
    pub(crate) fn refund(&mut self, units: u32) {
        match self {
            Self::Window(window) => window.release(units),
            Self::Bucket(bucket) => bucket.release(units),
            // A departure that did not happen; the distance is kept all the same.
            Self::Spacing(_) => {}
        }
    }

    /// Held units have reached the venue, and count from now.
    #[inline]
    pub(crate) fn settle(&mut self, now: u64, units: u32, clock: &ServerClock) {
        match self {
            Self::Window(window) => {
                window.release(units);
                window.forget(now, clock);
                window.log(now, units);
            }
            Self::Bucket(bucket) => {
                bucket.release(units);
                bucket.log(now, units);
            }
            Self::Spacing(_) => {}
        }
    }

    /// Units that were never held count from now.
    #[inline]
    pub(crate) fn log(&mut self, now: u64, units: u32) {
        match self {
            Self::Window(window) => window.log(now, units),
            Self::Bucket(bucket) => bucket.log(now, units),
            Self::Spacing(spacing) => spacing.hold(),
        }
    }

    /// Units that nobody asked for were used just now, whether or not there was room.
    pub(crate) fn charge(&mut self, now: u64, units: u32, clock: &ServerClock) {
        match self {
            Self::Window(window) => window.charge(now, units, clock),
            Self::Bucket(bucket) => bucket.log(now, units),
            Self::Spacing(spacing) => {
                spacing.hold();
                spacing.depart(now);
            }
        }
    }

    /// Takes back what was logged at `stamp`.
    pub(crate) fn unlog(&mut self, now: u64, stamp: u64, units: u32, clock: &ServerClock) {
        match self {
            Self::Window(window) => window.unlog(now, stamp, units, clock),
            Self::Bucket(bucket) => bucket.unlog(now, stamp, units),
            Self::Spacing(_) => {}
        }
    }

    /// Units that somebody else used, as the venue says.
    pub(crate) fn phantom(&mut self, now: u64, units: u32, clock: &ServerClock) {
        match self {
            Self::Window(window) => window.phantom(now, units, clock),
            Self::Bucket(bucket) => bucket.phantom(now, units),
            Self::Spacing(_) => {}
        }
    }

    /// Whether nothing of what was used counts any more.
    pub(crate) fn is_idle(&mut self, now: u64, clock: &ServerClock) -> bool {
        match self {
            Self::Window(_) | Self::Bucket(_) => self.taken(now, clock) == Taken::default(),
            Self::Spacing(spacing) => spacing.ready_at(now) <= now,
        }
    }

    /// How much is taken.
    pub(crate) fn taken(&mut self, now: u64, clock: &ServerClock) -> Taken {
        match self {
            Self::Window(window) => window.taken(now, clock),
            Self::Bucket(bucket) => bucket.taken(now),
            Self::Spacing(_) => Taken::default(),
        }
    }
}

// === impl Margin ===

impl Margin {
    pub(crate) const fn new(guard: Guard, ppm: u32, granularity: Duration) -> Self {
        Self {
            spread: guard.spread(),
            ppm,
            granularity,
        }
    }

    /// A span that has passed on the venue's clock for certain once as much has passed here.
    fn widen(self, span: Duration) -> u64 {
        let drift = nanos(span) / 1_000_000 * u64::from(self.ppm)
            + nanos(span) % 1_000_000 * u64::from(self.ppm) / 1_000_000;
        nanos(span)
            .saturating_add(drift)
            .saturating_add(nanos(self.spread))
            .saturating_add(nanos(self.granularity))
    }
}

/// Nanoseconds, as many as fit; 584 years do.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
