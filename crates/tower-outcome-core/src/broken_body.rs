//! What a response body that fails means for its call.

use crate::{BoxError, Delivery, Failure, Outcome, peek::MapBodyError};

/// Wraps the error of a response body in a [`Failure`] that says what it means for the call.
///
/// A layer that classifies puts it around the body it hands on, so that a caller who loses the
/// answer half-way learns more than that a connection broke.
#[derive(Clone, Copy, Debug)]
pub struct BrokenBody(Outcome);

// === impl BrokenBody ===

impl BrokenBody {
    /// Creates it with what becomes of the call if the body fails.
    #[must_use]
    pub const fn new(outcome: Outcome) -> Self {
        Self(outcome)
    }
}

impl MapBodyError for BrokenBody {
    fn map(&self, error: BoxError) -> BoxError {
        Failure::wrap(error, |_| (self.0, Delivery::Answered))
            .with_outcome(self.0)
            .into()
    }
}
