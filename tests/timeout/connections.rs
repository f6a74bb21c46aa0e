//! Bounding the connections of HTTP/1, and not only the requests in flight.
//!
//! The connector takes a permit first thing in its future, and the connection keeps it. hyper-util may
//! want a new connection while an idle one comes back; then the new one waits for a permit until
//! `ConnectTimeoutLayer` ends that.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::join_all;
use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tower::Service;
use tower_outcome::{Bound, Delivery, Timeouts};
use tower_outcome_testkit::{Fault, Point, Venue};

use super::stack::{Protocol, call, full, post, stack, struck};

/// Connects by TCP, and keeps no more than so many connections open.
#[derive(Clone)]
struct Bounded(Arc<Semaphore>);

/// A connection with the permit to be one.
struct Permitted {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<TokioIo<Permitted>>> + Send>>;

// === impl Bounded ===

impl Service<Uri> for Bounded {
    type Response = TokioIo<Permitted>;
    type Error = io::Error;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let permits = Arc::clone(&self.0);
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let authority = uri.authority().expect("an absolute URI").as_str();
            Ok(TokioIo::new(Permitted {
                stream: TcpStream::connect(authority).await?,
                _permit: permit,
            }))
        })
    }
}

// === impl Permitted ===

impl Connection for Permitted {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl AsyncRead for Permitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Permitted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn there_are_never_more_connections_than_permits() {
    const LIMIT: usize = 3;
    let latency = Duration::from_millis(2);
    let venue = Venue::builder().latency(latency).start().unwrap();
    let permits = Arc::new(Semaphore::new(LIMIT));
    let connector = Bounded(Arc::clone(&permits));
    let timeouts = Timeouts::new();
    let stack = stack(&timeouts, Protocol::Http1, LIMIT, connector);
    let url = venue.url("/orders");
    let calls = (0..60).map(|_| call(&stack, post(&url, full("buy 100"))));
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    // None was closed, so all that there ever were are still open.
    let connections = venue.ledger().connections();
    assert!((1..=LIMIT as u64).contains(&connections), "{connections}");
}

#[tokio::test]
async fn a_connection_that_dies_gives_its_permit_back() {
    let venue = Venue::start().unwrap();
    let connector = Bounded(Arc::new(Semaphore::new(1)));
    let timeouts = Timeouts::new();
    let stack = stack(&timeouts, Protocol::Http1, 1, connector);
    let fault = Fault::Close { at: Point::Applied };
    for _ in 0..5 {
        let mut request = post(&venue.url("/orders"), full("buy 100"));
        let value = fault.header_value();
        request.headers_mut().insert(Fault::HEADER, value);
        assert!(call(&stack, request).await.is_err());
    }
    assert_eq!(venue.ledger().connections(), 5);
}

#[tokio::test]
async fn who_gets_no_permit_in_time_was_not_sent() {
    let venue = Venue::start().unwrap();
    let connector = Bounded(Arc::new(Semaphore::new(0)));
    let timeouts = Timeouts::builder()
        .connect(Duration::from_millis(50))
        .build()
        .unwrap();
    let stack = stack(&timeouts, Protocol::Http1, 1, connector);
    let struck = struck(&stack, post(&venue.url("/orders"), full(""))).await;
    assert_eq!(struck.bound, Bound::Connect);
    assert_eq!(struck.delivery, Delivery::NotSent);
    assert_eq!(venue.ledger().connections(), 0);
}
