//! The layer.

use std::time::Duration;

use tower_layer::Layer;

use super::{Timeout, bounds::Bounds};
use crate::Timeouts;

/// Bounds one attempt: in all, the wait for its head, pauses of the request body and of the response
/// body.
///
/// What had been delivered when a bound strikes is what the
/// [`WitnessLayer`](tower_outcome_core::WitnessLayer) below it has seen; without one, the request may have
/// been sent. Between the two there must be nothing that sends a request twice.
///
/// See the [crate docs](crate) for an example.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLayer {
    bounds: Bounds,
}

// === impl TimeoutLayer ===

impl TimeoutLayer {
    /// Creates the layer with the bounds `attempt`, `head`, `write_idle` and `read_idle`.
    #[must_use]
    pub const fn new(timeouts: &Timeouts) -> Self {
        Self {
            bounds: Bounds::new(timeouts),
        }
    }

    /// Returns the bound of an attempt.
    #[must_use]
    pub const fn attempt(&self) -> Option<Duration> {
        self.bounds.attempt
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
        Timeout::new(inner, self.bounds)
    }
}
