//! When a signed request can no longer start.

use http::Extensions;
use tokio::time::Instant;

/// The instant from which on a server refuses a signed request that has not reached it yet.
///
/// A request whose outcome is unknown may still be on its way; past this instant it can no longer
/// be accepted, so "not found" begins to mean something. It counts on tokio's clock and leans to
/// the late side: whatever is uncertain about the server's clock is added.
///
/// A layer that signs notes it in the [`CallContext`](crate::CallContext) of the call, where there
/// is one, and puts it into the extensions of the request and the response where it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValidUntil(Instant);

// === impl ValidUntil ===

impl ValidUntil {
    /// Creates the end of validity.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// Returns the end of validity that the extensions of a request or response carry, if any.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Self>().copied()
    }

    /// Returns the instant itself.
    #[must_use]
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// Returns whether the request can no longer start at `now`.
    #[must_use]
    pub fn is_over(self, now: Instant) -> bool {
        now >= self.0
    }
}
