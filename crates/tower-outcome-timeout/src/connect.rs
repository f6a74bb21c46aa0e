//! The bound of connecting.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_layer::Layer;
use tower_outcome_core::{BoxError, Failure, Phase, Reason};
use tower_service::Service;

use crate::{Bound, Elapsed, Timeouts, timer::poll_due};

/// Bounds connecting: put it around the outermost connector, so that DNS, TCP and TLS, all addresses
/// together, share one bound.
///
/// A connection that is not there in time is given up, and the failure says that nothing was sent:
/// true for a `POST` too, since a request gets nowhere without a connection.
///
/// ```
/// use hyper_util::{
///     client::legacy::{Client, connect::HttpConnector},
///     rt::TokioExecutor,
/// };
/// use tower::Layer;
/// use tower_outcome_core::WitnessConnector;
/// use tower_outcome_timeout::ConnectTimeoutLayer;
///
/// # type Body = http_body_util::Full<bytes::Bytes>;
/// let connector = ConnectTimeoutLayer::default().layer(HttpConnector::new());
/// let client: Client<_, Body> = Client::builder(TokioExecutor::new())
///     .retry_canceled_requests(false)
///     .build(WitnessConnector::new(connector));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ConnectTimeoutLayer {
    limit: Option<Duration>,
}

/// Bounds connecting. See [`ConnectTimeoutLayer`].
#[derive(Clone, Copy, Debug)]
pub struct ConnectTimeout<S> {
    inner: S,
    limit: Option<Duration>,
}

pin_project! {
    /// The future of [`ConnectTimeout`]. A connection that is ready wins over the bound.
    pub struct ConnectTimeoutFuture<F> {
        // `None` once the bound has struck.
        #[pin]
        inner: Option<F>,
        limit: Option<Duration>,
        started: Instant,
        timer: Option<Pin<Box<Sleep>>>,
    }
}

// === impl ConnectTimeoutLayer ===

impl ConnectTimeoutLayer {
    /// Creates the layer with the bound `connect`.
    #[must_use]
    pub const fn new(timeouts: &Timeouts) -> Self {
        Self {
            limit: timeouts.connect,
        }
    }

    /// Creates the layer with this bound, or without one.
    #[must_use]
    pub const fn within(bound: Option<Duration>) -> Self {
        Self { limit: bound }
    }
}

impl Default for ConnectTimeoutLayer {
    fn default() -> Self {
        Self::new(&Timeouts::new())
    }
}

impl<S> Layer<S> for ConnectTimeoutLayer {
    type Service = ConnectTimeout<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ConnectTimeout {
            inner,
            limit: self.limit,
        }
    }
}

// === impl ConnectTimeout ===

impl<S> ConnectTimeout<S> {
    /// Returns the inner connector.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner connector, mutably.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner connector, by value.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, D> Service<D> for ConnectTimeout<S>
where
    S: Service<D>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ConnectTimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, destination: D) -> Self::Future {
        ConnectTimeoutFuture {
            started: Instant::now(),
            inner: Some(self.inner.call(destination)),
            limit: self.limit,
            timer: None,
        }
    }
}

// === impl ConnectTimeoutFuture ===

impl<F, T, E> Future for ConnectTimeoutFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(inner) = this.inner.as_mut().as_pin_mut() {
            if let Poll::Ready(result) = inner.poll(cx) {
                return Poll::Ready(result.map_err(Into::into));
            }
        }
        let Some(limit) = *this.limit else {
            return Poll::Pending;
        };
        // Beyond all clocks is never.
        let Some(end) = this.started.checked_add(limit) else {
            return Poll::Pending;
        };
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        ready!(poll_due(timer.as_mut(), cx));
        this.inner.set(None);
        let elapsed = Elapsed::new(Bound::Connect, limit, Phase::Connecting);
        Poll::Ready(Err(Failure::not_sent(Reason::TimedOut, elapsed).into()))
    }
}

impl<F> fmt::Debug for ConnectTimeoutFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectTimeoutFuture")
            .field("limit", &self.limit)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}
