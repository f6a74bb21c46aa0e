//! Requests that go without a credential.

use http::Extensions;

/// Lets the request in whose extensions it is pass without a credential: a log-in, a public endpoint.
///
/// Such a request is not refreshed for and not replayed.
///
/// ```
/// use http::Request;
/// use tower_outcome_auth_refresh::Unauthenticated;
///
/// let request = Request::get("https://venue.example/time")
///     .extension(Unauthenticated::new())
///     .body(())
///     .unwrap();
/// # let _ = request;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unauthenticated(());

// === impl Unauthenticated ===

impl Unauthenticated {
    /// Creates the mark.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }

    #[inline]
    pub(crate) fn is_in(extensions: &Extensions) -> bool {
        // Mostly there are none, and then nothing is looked up.
        !extensions.is_empty() && extensions.get::<Self>().is_some()
    }
}
