//! The layer and its configuration.

use std::{fmt, hash::Hash, sync::Arc, time::Duration};

use http::{request, uri::Authority};
use tokio::sync::Semaphore;
use tower_layer::Layer;
use tower_outcome_core::ConfigError;

use super::{
    ConnectionLimit,
    slots::{KeyOf, Slots},
};
use crate::Timeouts;

/// Lets at most so many requests per key be in flight, from when they are handed down to the end of
/// their response bodies.
///
/// The key is the authority of the target (host and port), if nothing else is said. All services of
/// the layer and of its clones share the slots, which are given out in the order in which they were
/// asked for. A request that gets none within the bound `acquire` fails, and was not sent.
///
/// The wait is in the response future and before the inner service is made ready, so nothing of the
/// inner service is held meanwhile. The slot is free again as soon as the response body has ended,
/// failed or was dropped, or the call failed or was dropped.
///
/// # Connections
///
/// Over HTTP/1.1 each request in flight has a connection to itself, so this bounds the connections
/// that are in use; idle ones come on top, and hyper-util opens one more than it needs whenever a
/// connection becomes idle while another is being opened. To bound them all, let the connection own a
/// permit: take it in the connector, first thing in its future, keep it in the I/O object, and put
/// [`ConnectTimeoutLayer`](crate::ConnectTimeoutLayer) around both. The tests of this project do so
/// (`tests/timeout/connections.rs`). Over HTTP/2 all requests to a host share one connection, and
/// this layer is the only bound besides the server's own.
///
/// ```
/// use tower::ServiceBuilder;
/// use tower_outcome_timeout::{ConnectionLimitLayer, TimeoutLayer, Timeouts};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let timeouts = Timeouts::new();
/// let stack = ServiceBuilder::new()
///     .layer(ConnectionLimitLayer::builder(16).timeouts(&timeouts).build()?)
///     .layer(TimeoutLayer::new(&timeouts));
/// # let _ = stack;
/// # Ok(())
/// # }
/// ```
pub struct ConnectionLimitLayer<K = Option<Authority>> {
    slots: Arc<Slots<K>>,
    acquire: Option<Duration>,
}

/// Builds a [`ConnectionLimitLayer`]; start with [`ConnectionLimitLayer::builder`].
#[must_use]
pub struct ConnectionLimitBuilder<K> {
    limit: usize,
    acquire: Option<Duration>,
    key: Box<KeyOf<K>>,
}

// === impl ConnectionLimitLayer ===

impl ConnectionLimitLayer {
    /// Starts with so many requests in flight for each authority, and the default of `acquire`.
    pub fn builder(limit: usize) -> ConnectionLimitBuilder<Option<Authority>> {
        ConnectionLimitBuilder {
            limit,
            acquire: Timeouts::new().acquire,
            key: Box::new(|head| head.uri.authority().cloned()),
        }
    }
}

impl<K: Eq + Hash> ConnectionLimitLayer<K> {
    /// Returns how many requests of a key are in flight.
    pub fn in_flight(&self, key: &K) -> usize {
        self.slots.taken(key)
    }
}

impl<K> ConnectionLimitLayer<K> {
    /// Returns the bound of the wait for a slot.
    #[must_use]
    pub const fn acquire(&self) -> Option<Duration> {
        self.acquire
    }
}

impl<K> Clone for ConnectionLimitLayer<K> {
    fn clone(&self) -> Self {
        Self {
            slots: Arc::clone(&self.slots),
            acquire: self.acquire,
        }
    }
}

impl<S, K> Layer<S> for ConnectionLimitLayer<K> {
    type Service = ConnectionLimit<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        ConnectionLimit::new(inner, Arc::clone(&self.slots), self.acquire)
    }
}

impl<K> fmt::Debug for ConnectionLimitLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLimitLayer")
            .field("slots", &self.slots)
            .field("acquire", &self.acquire)
            .finish()
    }
}

// === impl ConnectionLimitBuilder ===

impl<K> ConnectionLimitBuilder<K> {
    /// Takes the bound `acquire` from there; by default it is 5 s.
    pub fn timeouts(mut self, timeouts: &Timeouts) -> Self {
        self.acquire = timeouts.acquire;
        self
    }

    /// Sets which requests share slots, such as those of one API key; by default those with the same
    /// authority. Keys that are idle are forgotten.
    pub fn key<L>(
        self,
        key: impl Fn(&request::Parts) -> L + Send + Sync + 'static,
    ) -> ConnectionLimitBuilder<L> {
        ConnectionLimitBuilder {
            limit: self.limit,
            acquire: self.acquire,
            key: Box::new(key),
        }
    }

    /// Builds the layer.
    ///
    /// # Errors
    ///
    /// If the limit is 0 or above what a semaphore can count.
    pub fn build(self) -> Result<ConnectionLimitLayer<K>, ConfigError> {
        if self.limit == 0 {
            return Err(ConfigError::new("limit", 0, "at least 1"));
        }
        if self.limit > Semaphore::MAX_PERMITS {
            return Err(ConfigError::new(
                "limit",
                self.limit,
                "at most an eighth of the address space",
            ));
        }
        Ok(ConnectionLimitLayer {
            slots: Arc::new(Slots::new(self.limit, self.key)),
            acquire: self.acquire,
        })
    }
}

impl<K> fmt::Debug for ConnectionLimitBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLimitBuilder")
            .field("limit", &self.limit)
            .field("acquire", &self.acquire)
            .finish_non_exhaustive()
    }
}
