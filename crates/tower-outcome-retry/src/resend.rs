//! Switching resends off for one request.

use http::Extensions;

/// Switches resends off for the request in whose extensions it is.
///
/// Such a request is sent at most once, whatever becomes of it. Nothing of it is copied.
///
/// ```
/// use http::Request;
/// use tower_outcome_retry::NoResend;
///
/// let request = Request::post("https://venue.example/orders")
///     .extension(NoResend::new())
///     .body(())
///     .unwrap();
/// # let _ = request;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoResend(());

// === impl NoResend ===

impl NoResend {
    /// Creates the mark.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }

    pub(crate) fn is_in(extensions: &Extensions) -> bool {
        // Mostly there are none, and then nothing is looked up.
        !extensions.is_empty() && extensions.get::<Self>().is_some()
    }
}
