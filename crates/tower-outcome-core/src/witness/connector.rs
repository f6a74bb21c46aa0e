//! Watching what a connection accepts.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use ::hyper::rt::{Read, ReadBufCursor, Write};
use ::hyper_util::client::legacy::connect::{Connected, Connection};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::tick::LastWrite;

/// Wraps a connector, so that each of its connections remembers when it last accepted a byte.
///
/// hyper-util's legacy client attaches the connection to its errors, and
/// [`WitnessLayer`](crate::WitnessLayer) reads it there: if the last accepted byte is older than the
/// attempt, nothing of the attempt was written, whatever the error says. Without that layer the
/// connector does nothing.
///
/// ```no_run
/// use hyper_util::{
///     client::legacy::{Client, connect::HttpConnector},
///     rt::TokioExecutor,
/// };
/// use tower_outcome_core::WitnessConnector;
///
/// # type Body = http_body_util::Full<bytes::Bytes>;
/// let client: Client<_, Body> = Client::builder(TokioExecutor::new())
///     // hyper-util would otherwise resend behind every layer's back.
///     .retry_canceled_requests(false)
///     .build(WitnessConnector::new(HttpConnector::new()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WitnessConnector<C> {
    inner: C,
}

pin_project! {
    /// The future of [`WitnessConnector`].
    #[derive(Debug)]
    pub struct ConnectFuture<F> {
        #[pin]
        inner: F,
    }
}

pin_project! {
    /// A connection that remembers when it last accepted a byte. See [`WitnessConnector`].
    #[derive(Debug)]
    pub struct WitnessIo<T> {
        #[pin]
        inner: T,
        last_write: LastWrite,
    }
}

// === impl WitnessConnector ===

impl<C> WitnessConnector<C> {
    /// Wraps a connector.
    pub const fn new(inner: C) -> Self {
        Self { inner }
    }

    /// Returns the inner connector.
    pub const fn get_ref(&self) -> &C {
        &self.inner
    }

    /// Returns the inner connector, mutably.
    pub const fn get_mut(&mut self) -> &mut C {
        &mut self.inner
    }

    /// Returns the inner connector, by value.
    pub fn into_inner(self) -> C {
        self.inner
    }
}

impl<C, D> Service<D> for WitnessConnector<C>
where
    C: Service<D>,
{
    type Response = WitnessIo<C::Response>;
    type Error = C::Error;
    type Future = ConnectFuture<C::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, destination: D) -> Self::Future {
        ConnectFuture {
            inner: self.inner.call(destination),
        }
    }
}

// === impl ConnectFuture ===

impl<F, T, E> Future for ConnectFuture<F>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<WitnessIo<T>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = ready!(self.project().inner.poll(cx))?;
        Poll::Ready(Ok(WitnessIo {
            inner,
            last_write: LastWrite::default(),
        }))
    }
}

// === impl WitnessIo ===

impl<T> WitnessIo<T> {
    /// Returns the inner connection.
    pub const fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns the inner connection, by value.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: Connection> Connection for WitnessIo<T> {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.last_write.clone())
    }
}

impl<T: Read> Read for WitnessIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buffer)
    }
}

impl<T: Write> Write for WitnessIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        this.last_write.watch(|| this.inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        this.last_write
            .watch(|| this.inner.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}
