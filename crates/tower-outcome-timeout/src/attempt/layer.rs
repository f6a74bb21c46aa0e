//! The layer.

use tower_layer::Layer;

use super::{Timeout, bounds::Bounds};
use crate::Timeouts;

/// Bounds one attempt: in all, the wait for its head, pauses of the request body and of the response
/// body.
///
/// See the [crate docs](crate) for an example.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLayer {
    bounds: Bounds,
    acts_on_parts: bool,
}

// === impl TimeoutLayer ===

impl TimeoutLayer {
    /// Creates the layer with the bounds `attempt`, `head`, `write_idle` and `read_idle`.
    #[must_use]
    pub const fn new(timeouts: &Timeouts) -> Self {
        Self {
            bounds: Bounds::new(timeouts),
            acts_on_parts: false,
        }
    }

    /// Declares that the server may act on a request before all of it has arrived, as
    /// [`WitnessLayer::acts_on_parts`](tower_outcome_core::WitnessLayer::acts_on_parts) does: say it
    /// to both.
    #[must_use]
    pub const fn acts_on_parts(mut self) -> Self {
        self.acts_on_parts = true;
        self
    }
}

impl Default for TimeoutLayer {
    fn default() -> Self {
        Self::new(&Timeouts::new())
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Timeout::new(inner, self.bounds, self.acts_on_parts)
    }
}
