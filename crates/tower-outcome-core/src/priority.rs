//! The class of a request in a queue.

use http::Extensions;

/// The class of a request in a limiter's queue, carried in the request's extensions.
///
/// Lower numbers go first. What each class means is up to the program; three have names because
/// most programs need no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

// === impl Priority ===

impl Priority {
    /// Must not wait for anything else: cancelling, reducing risk, placing an order.
    pub const HIGHEST: Self = Self(0);
    /// Whatever nobody mapped; the default.
    pub const NORMAL: Self = Self(128);
    /// May always wait: charts, sweeps, housekeeping.
    pub const LOWEST: Self = Self(u8::MAX);

    /// Creates a class; lower goes first.
    #[must_use]
    pub const fn new(class: u8) -> Self {
        Self(class)
    }

    /// Returns the class that the extensions of a request carry, or [`NORMAL`](Self::NORMAL).
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().copied().unwrap_or(Self::NORMAL)
    }

    /// Returns the number of the class; lower goes first.
    #[must_use]
    pub const fn class(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}
