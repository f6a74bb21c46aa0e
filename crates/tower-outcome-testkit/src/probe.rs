//! A service that checks how it is used.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// Wraps a service, panics when it is used against the contract of tower, and counts.
///
/// An instance may be called only after `poll_ready` of the same instance returned `Ok` since its
/// last call; a clone starts unready. What happened is in the [`ProbeHandle`], shared by clones.
///
/// ```
/// # use tower_outcome_testkit::Probe;
/// # use tower_service::Service;
/// # #[derive(Clone)] struct Inner;
/// # impl Service<()> for Inner {
/// #     type Response = (); type Error = (); type Future = std::future::Ready<Result<(), ()>>;
/// #     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), ()>> { Ok(()).into() }
/// #     fn call(&mut self, (): ()) -> Self::Future { std::future::ready(Ok(())) }
/// # }
/// let (probe, handle) = Probe::new(Inner);
/// let clone = probe.clone();
/// assert_eq!(handle.clones(), 2);
/// # drop((probe, clone));
/// ```
#[derive(Debug)]
pub struct Probe<S> {
    inner: S,
    ready: bool,
    handle: ProbeHandle,
}

/// Wraps services with a [`Probe`] each, all of which share one [`ProbeHandle`].
#[derive(Clone, Debug, Default)]
pub struct ProbeLayer {
    handle: ProbeHandle,
}

/// What a [`Probe`] counted. A cheap handle; clones share.
#[derive(Clone, Default)]
pub struct ProbeHandle {
    counts: Arc<Counts>,
}

/// The future of a [`Probe`].
pub struct ResponseFuture<F> {
    inner: Pin<Box<F>>,
    flight: Flight,
}

#[derive(Default)]
struct Counts {
    clones: AtomicUsize,
    calls: AtomicUsize,
    in_flight: AtomicUsize,
    peak: AtomicUsize,
    dropped: AtomicUsize,
}

/// Counts one call as in flight until it is done or dropped.
struct Flight {
    counts: Arc<Counts>,
    done: bool,
}

// === impl Probe ===

impl<S> Probe<S> {
    /// Wraps a service and returns the handle to what is counted.
    #[must_use]
    pub fn new(inner: S) -> (Self, ProbeHandle) {
        let handle = ProbeHandle::default();
        (Self::counted(inner, handle.clone()), handle)
    }

    fn counted(inner: S, handle: ProbeHandle) -> Self {
        handle.counts.clones.fetch_add(1, Ordering::SeqCst);
        Self {
            inner,
            ready: false,
            handle,
        }
    }
}

impl<S: Clone> Clone for Probe<S> {
    fn clone(&self) -> Self {
        Self::counted(self.inner.clone(), self.handle.clone())
    }
}

impl<S> Drop for Probe<S> {
    fn drop(&mut self) {
        self.handle.counts.clones.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<S, R> Service<R> for Probe<S>
where
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let polled = self.inner.poll_ready(cx);
        self.ready = matches!(polled, Poll::Ready(Ok(())));
        polled
    }

    /// # Panics
    ///
    /// When this instance was not polled ready since its last call.
    #[track_caller]
    fn call(&mut self, request: R) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called an instance that was not polled ready since its last call"
        );
        ResponseFuture {
            flight: Flight::start(&self.handle.counts),
            inner: Box::pin(self.inner.call(request)),
        }
    }
}

// === impl ProbeLayer ===

impl ProbeLayer {
    /// Makes a layer and returns the handle to what its services count.
    #[must_use]
    pub fn new() -> (Self, ProbeHandle) {
        let layer = Self::default();
        let handle = layer.handle.clone();
        (layer, handle)
    }
}

impl<S> Layer<S> for ProbeLayer {
    type Service = Probe<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Probe::counted(inner, self.handle.clone())
    }
}

// === impl ProbeHandle ===

impl ProbeHandle {
    /// Returns how many instances are alive.
    #[must_use]
    pub fn clones(&self) -> usize {
        self.counts.clones.load(Ordering::SeqCst)
    }

    /// Returns how many calls were made.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.counts.calls.load(Ordering::SeqCst)
    }

    /// Returns how many calls are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.counts.in_flight.load(Ordering::SeqCst)
    }

    /// Returns how many calls were in flight at most.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.counts.peak.load(Ordering::SeqCst)
    }

    /// Returns how many calls were dropped before they were done.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.counts.dropped.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for ProbeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeHandle")
            .field("clones", &self.clones())
            .field("calls", &self.calls())
            .field("in_flight", &self.in_flight())
            .field("peak", &self.peak())
            .field("dropped", &self.dropped())
            .finish()
    }
}

// === impl ResponseFuture ===

impl<F: Future> Future for ResponseFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.inner.as_mut().poll(cx);
        self.flight.done |= polled.is_ready();
        polled
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

// === impl Flight ===

impl Flight {
    fn start(counts: &Arc<Counts>) -> Self {
        counts.calls.fetch_add(1, Ordering::SeqCst);
        let flying = counts.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        counts.peak.fetch_max(flying, Ordering::SeqCst);
        Self {
            counts: Arc::clone(counts),
            done: false,
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.counts.in_flight.fetch_sub(1, Ordering::SeqCst);
        if !self.done {
            self.counts.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}
