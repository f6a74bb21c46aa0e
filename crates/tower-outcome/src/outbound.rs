//! All layers of a stack in the one order that works.
//!
//! [`Outbound::builder`] takes the steps of a stack in whatever order they come to mind, each as the
//! builder of its layer, checks them together, and yields one [`Layer`]. A wrong order
//! cannot be written, and a step that is left out is not there: it costs nothing.
//!
//! ```
//! use std::time::Duration;
//! use tower_outcome::{Limit, Outbound, RateBudget, RetryLayer, Timeouts};
//!
//! # fn main() -> Result<(), tower_outcome::OutboundError> {
//! let second = Duration::from_secs(1);
//! let outbound = Outbound::builder()
//!     .timeouts(Timeouts::builder().call(10 * second))
//!     .retry(RetryLayer::builder().max_attempts(4))
//!     .rate_limit(RateBudget::builder("venue").limit(Limit::sliding("requests", 500, 5 * second)))
//!     .build()?;
//! # let _ = outbound;
//! # Ok(())
//! # }
//! ```
//!
//! A step that is given twice does not compile, nor does one in the place of another:
//!
//! ```compile_fail,E0277
//! # use tower_outcome::{Outbound, RetryLayer};
//! let _ = Outbound::builder().retry(RetryLayer::builder()).retry(RetryLayer::builder());
//! ```
//!
//! ```compile_fail,E0277
//! # use tower_outcome::{Outbound, RetryLayer};
//! let _ = Outbound::builder().rate_limit(RetryLayer::builder());
//! ```
//!
//! # The order
//!
//! | step | takes | its place |
//! |---|---|---|
//! | [`replay`](OutboundBuilder::replay) | [`ReplayLayer`](crate::ReplayLayer) | outermost |
//! | [`timeouts`](OutboundBuilder::timeouts) | [`Timeouts`](crate::Timeouts) or their builder | the deadline of the call is here |
//! | [`idempotency_key`](OutboundBuilder::idempotency_key) | [`IdempotencyKeyLayer`](crate::IdempotencyKeyLayer) | above Retry |
//! | [`retry`](OutboundBuilder::retry) | [`RetryLayer`](crate::RetryLayer) or its builder | |
//! | [`each_attempt`](OutboundBuilder::each_attempt) | a layer of your own | |
//! | [`reconcile`](OutboundBuilder::reconcile) | [`ReconcileLayer`](crate::ReconcileLayer) or its builder | its questions go through all below |
//! | [`auth_refresh`](OutboundBuilder::auth_refresh) | [`AuthRefreshLayer`](crate::AuthRefreshLayer), [`Credentials`](crate::Credentials), or a builder of either | |
//! | [`rate_limit`](OutboundBuilder::rate_limit) | [`RateLimitLayer`](crate::RateLimitLayer), [`RateBudget`](crate::RateBudget), or a builder of either | below what sends again |
//! | [`connection_limit`](OutboundBuilder::connection_limit) | [`ConnectionLimitLayer`](crate::ConnectionLimitLayer) or its builder | |
//! | [`expiry_guard`](OutboundBuilder::expiry_guard) | [`ExpiryGuardLayer`](crate::auth_refresh::ExpiryGuardLayer) | below what waits |
//! | [`each_request`](OutboundBuilder::each_request) | a layer of your own | it may change what is signed |
//! | [`sign`](OutboundBuilder::sign) | `SignLayer` or its builder | the last change to a request |
//! | [`timeouts`](OutboundBuilder::timeouts), again | | the bounds of one attempt are here |
//! | [`witness`](OutboundBuilder::witness) | [`WitnessLayer`](crate::WitnessLayer): always there, unless [left out](OutboundBuilder::without_witness) | below what is signed |
//! | [`seal`](OutboundBuilder::seal) | `SealLayer` | innermost |
//!
//! Without `retry` nobody looks at what became of a request. A `max_attempts` of 1 decides and reports,
//! and sends nothing again.
//!
//! Every step may be an `Option` (but for `replay`, `timeouts` and `sign`), for stacks that are made from a
//! file: `None` passes requests through. What a file may leave out of the others has a value that does
//! nothing: a [`ReplayLayer`](crate::ReplayLayer) of 0 bytes, [`Timeouts`](crate::Timeouts) without bounds, an
//! `Option` of a signer. Every step may also be a `Result`, so that whatever was made on the way is checked at
//! the end with all else.
//!
//! A layer of your own that sees a call once (a cache, compression, a span) goes above the whole:
//! [`Outbound`] is a layer like any other.
//!
//! # One classifier
//!
//! All steps share [one](OutboundBuilder::classifier): a limiter that takes for a refusal what Retry takes
//! for a success undoes its work. A step that brings one of its own is an error, unless it is a layer that
//! is built already; and what a [`ByQuery`](crate::ByQuery) asks is judged by a classifier of its own.
//!
//! # gRPC
//!
//! Give the stack a [`GrpcClassifier`](crate::GrpcClassifier) and a [`replay`](OutboundBuilder::replay), since
//! tonic's bodies are no `Clone`, let [`Timeouts`](crate::Timeouts) send the deadline as `grpc-timeout`, and
//! map the body for the channel: `MapRequestBodyLayer::new(tonic::body::Body::new).layer(channel)`, of
//! tower-http. `GrpcStatusLayer` (feature `tonic`) goes above the whole, with the same classifier, so that the
//! caller of generated code finds what became of the call in its `Status`.
//!
//! # What is checked together
//!
//! [`build`](OutboundBuilder::build) reports all that is wrong, not the first: what each layer checks, and
//! what none can see alone:
//!
//! - the bound of an attempt is within the bound of the call;
//! - Reconcile can find out within a call that something was not applied;
//! - a credential that goes into the limiter's queue is good when it comes out: its mandatory
//!   [window](crate::auth_refresh::Windows) is as long as the longest wait, or there is an
//!   [`expiry_guard`](OutboundBuilder::expiry_guard), and credentials are handed down to it.

use std::{fmt, time::Duration};

use tower_layer::{Identity, Layer};

mod boxed;
mod builder;
mod error;
#[cfg(all(feature = "hyper-util", feature = "timeout"))]
mod hyper_client;
mod optional;
pub mod step;
pub mod steps;

#[cfg(all(feature = "hyper-util", feature = "timeout"))]
pub use self::hyper_client::{HyperClient, SharedClient};
pub use self::{
    boxed::{OutboundBody, OutboundClient, Sending},
    builder::OutboundBuilder,
    error::OutboundError,
    optional::{Optional, OptionalFuture, OptionalLayer},
    steps::Steps,
};

use self::step::{Facts, Left};

/// All layers of a stack in the one order that works.
///
/// It is a [`Layer`] for a `ServiceBuilder`, and makes [services](Self::service) and
/// [clients without a long type](Self::boxed). Clones and the services of one share what their layers
/// share: budgets, credentials, nonces.
///
/// See the [module docs](self) for how it is built.
#[derive(Clone)]
pub struct Outbound<L> {
    layers: L,
    facts: Facts,
}

// === impl Outbound ===

impl Outbound<Identity> {
    /// Starts without any step but the [`WitnessLayer`](crate::WitnessLayer).
    pub fn builder() -> OutboundBuilder<Steps<Left>> {
        OutboundBuilder::new()
    }
}

impl<L> Outbound<L> {
    /// Returns the bound of connecting, for the connector of a client of your own:
    /// `ConnectTimeoutLayer::within(outbound.connect_bound())`.
    #[must_use]
    pub const fn connect_bound(&self) -> Option<Duration> {
        self.facts.connect()
    }

    /// Puts the stack around a client.
    pub fn service<S>(&self, client: S) -> L::Service
    where
        L: Layer<S>,
    {
        self.layers.layer(client)
    }
}

impl<S, L: Layer<S>> Layer<S> for Outbound<L> {
    type Service = L::Service;

    fn layer(&self, client: S) -> Self::Service {
        self.layers.layer(client)
    }
}

impl<L> fmt::Debug for Outbound<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound")
            .field("bounds", &self.facts)
            .finish_non_exhaustive()
    }
}
