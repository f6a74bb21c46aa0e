//! How long a signature is good for.

use std::time::Duration;

use crate::SigningTime;

/// How long a signature is good for, on the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity(Option<SigningTime>);

// === impl Validity ===

impl Validity {
    /// The signature does not age: its nonce or nothing protects it.
    pub const UNLIMITED: Self = Self(None);

    /// The server accepts it until then.
    #[must_use]
    pub const fn until(end: SigningTime) -> Self {
        Self(Some(end))
    }

    /// The server accepts it for so long after the time in it.
    #[must_use]
    pub fn for_window(time: SigningTime, window: Duration) -> Self {
        Self(Some(time.saturating_add(window)))
    }

    /// Returns until when the server accepts it, or `None` if there is no end.
    #[must_use]
    pub const fn end(self) -> Option<SigningTime> {
        self.0
    }
}
