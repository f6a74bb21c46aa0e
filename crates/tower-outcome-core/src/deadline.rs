//! The one instant that bounds a whole call.

use std::time::Duration;

use http::Extensions;
use tokio::time::Instant;

use crate::carried::Carried;

/// The one instant by which a whole call has to be over, carried in the request's extensions.
///
/// It bounds limiter waits, token refreshes, backoff, every attempt and the response body. It
/// counts on tokio's clock, so tests on paused time take none.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use tower_outcome_core::Deadline;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
/// # runtime.block_on(async {
/// let mut request = Request::get("https://venue.example/time").body(()).unwrap();
/// request.extensions_mut().insert(Deadline::after(Duration::from_secs(10)));
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Instant);

// === impl Deadline ===

impl Deadline {
    /// Creates a deadline at an instant.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// Creates a deadline that much later than now.
    ///
    /// A span that the clock cannot represent counts as 30 years.
    #[must_use]
    pub fn after(span: Duration) -> Self {
        // Thirty years is tokio's own notion of "far in the future".
        const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
        let now = Instant::now();
        Self(now.checked_add(span).unwrap_or_else(|| now + FAR))
    }

    /// Returns the deadline that the extensions of a request carry, if any: by itself, or in the
    /// [`CallContext`](crate::CallContext) of a layer above.
    #[must_use]
    #[inline]
    pub fn of(extensions: &Extensions) -> Option<Self> {
        // Mostly there are none, and then nothing is looked up.
        if extensions.is_empty() {
            return None;
        }
        let own = extensions.get::<Self>().copied();
        own.or_else(|| Carried::of(extensions)?.deadline())
    }

    /// Returns the instant itself.
    #[must_use]
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// Returns what is left at `now`; zero once the deadline has passed.
    #[must_use]
    pub fn remaining(self, now: Instant) -> Duration {
        self.0.saturating_duration_since(now)
    }

    /// Returns whether nothing is left at `now`.
    #[must_use]
    pub fn is_over(self, now: Instant) -> bool {
        now >= self.0
    }
}
