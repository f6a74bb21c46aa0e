//! For whom a signer signs.

use http::request;
use tower_outcome_core::Origin;

/// The origins for which requests are signed.
#[derive(Clone, Debug)]
pub(crate) enum Origins {
    Any,
    These(Box<[Origin]>),
}

// === impl Origins ===

impl Origins {
    /// Returns whether a request is for one of them. One that does not say is for nobody known.
    #[inline]
    pub(crate) fn contains(&self, head: &request::Parts) -> bool {
        match self {
            Self::Any => true,
            Self::These(these) if these.len() == 1 => these[0].is_of(head) == Some(true),
            Self::These(these) => these.iter().any(|origin| origin.is_of(head) == Some(true)),
        }
    }
}
