//! The layer and its configuration.

use std::{fmt, sync::Arc, time::Duration};

use http::request;
use tower_layer::Layer;

use super::{
    DeadlineService,
    abandoned::{OnAbandoned, Watch},
};
use crate::Timeouts;

/// Bounds a whole call by one instant, response body included.
///
/// That instant is the [`Deadline`](tower_outcome_core::Deadline) which the caller has put into the
/// request's extensions, else the bound `call` from now on. It is there for the layers below: Retry
/// does not sleep past it, a limiter refuses what cannot make it, an attempt is cut to what is left.
/// A call whose deadline is over is not started.
///
/// With [`grpc_timeout`](crate::TimeoutsBuilder::grpc_timeout) the header of that name is the caller's
/// word too.
///
/// The instance is made ready by its caller, which takes no part in the default bound; an instant
/// that the caller has set counts from wherever it was set.
///
/// See the [crate docs](crate) for an example.
#[derive(Clone, Debug)]
pub struct DeadlineLayer {
    config: Arc<Config>,
}

/// Builds a [`DeadlineLayer`]; start with [`DeadlineLayer::builder`].
#[derive(Debug)]
#[must_use]
pub struct DeadlineLayerBuilder {
    config: Config,
}

/// What a deadline layer goes by, shared by all its services.
pub(super) struct Config {
    pub(super) call: Option<Duration>,
    /// Whether the `grpc-timeout` of a request is its caller's deadline.
    pub(super) grpc_timeout: bool,
    pub(super) watch: Option<Box<Watch>>,
}

// === impl DeadlineLayer ===

impl DeadlineLayer {
    /// Creates the layer with the bound `call`.
    #[must_use]
    pub fn new(timeouts: &Timeouts) -> Self {
        Self::builder(timeouts).build()
    }

    /// Returns the bound of a call whose caller sets none.
    #[must_use]
    pub fn call(&self) -> Option<Duration> {
        self.config.call
    }

    /// Starts with the bound `call`, to add to it.
    pub const fn builder(timeouts: &Timeouts) -> DeadlineLayerBuilder {
        DeadlineLayerBuilder {
            config: Config {
                call: timeouts.call,
                grpc_timeout: timeouts.grpc_timeout,
                watch: None,
            },
        }
    }
}

impl Default for DeadlineLayer {
    fn default() -> Self {
        Self::new(&Timeouts::new())
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = DeadlineService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        DeadlineService::new(inner, Arc::clone(&self.config))
    }
}

// === impl DeadlineLayerBuilder ===

impl DeadlineLayerBuilder {
    /// Has somebody told of each call whose future is dropped before it is done: by a `select!`, a
    /// task that is aborted, a user who went away. Nobody else learns that such an order may have
    /// been placed.
    ///
    /// `watch` looks at each request before it is sent, and keeps what it needs to know it again. What
    /// it returns is dropped unused if the call ends.
    ///
    /// ```
    /// use tower_outcome_timeout::{DeadlineLayer, Timeouts};
    ///
    /// let layer = DeadlineLayer::builder(&Timeouts::new())
    ///     .on_abandoned(|head| {
    ///         let order = head.headers.get("x-order-id").cloned();
    ///         Box::new(move |abandoned| {
    ///             if abandoned.outcome().is_unknown() {
    ///                 eprintln!("order {order:?} may have been placed");
    ///             }
    ///         })
    ///     })
    ///     .build();
    /// # let _ = layer;
    /// ```
    pub fn on_abandoned(
        mut self,
        watch: impl Fn(&request::Parts) -> OnAbandoned + Send + Sync + 'static,
    ) -> Self {
        self.config.watch = Some(Box::new(watch));
        self
    }

    /// Builds the layer.
    #[must_use]
    pub fn build(self) -> DeadlineLayer {
        DeadlineLayer {
            config: Arc::new(self.config),
        }
    }
}

// === impl Config ===

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("call", &self.call)
            .field("grpc_timeout", &self.grpc_timeout)
            .field("on_abandoned", &self.watch.is_some())
            .finish()
    }
}
