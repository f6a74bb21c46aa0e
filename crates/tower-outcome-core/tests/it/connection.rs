//! Whether a connection accepted a byte since the attempt began, in memory.

use std::{
    future::Ready,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connect, Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::mpsc,
};
use tower_layer::Layer;
use tower_outcome_core::{
    BoxError, Delivery, Failure, WitnessBody, WitnessConnector, WitnessLayer, Witnessed,
    witness::Witness,
};
use tower_service::Service;

/// What the next writes are allowed.
#[derive(Clone, Debug)]
struct Valve(Arc<AtomicUsize>);

/// Connects to the test itself.
#[derive(Clone, Debug)]
struct Memory {
    valve: Valve,
    accept: mpsc::UnboundedSender<DuplexStream>,
}

/// A connection that accepts as many bytes as its valve says, and then breaks.
#[derive(Debug)]
struct Pipe {
    io: TokioIo<DuplexStream>,
    valve: Valve,
}

const OPEN: usize = usize::MAX;
/// Accepts writes of no bytes.
const ZERO: usize = usize::MAX - 1;

// === impl Valve ===

impl Valve {
    fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::SeqCst);
    }

    /// How much of a write of that many bytes is let through.
    fn admit(&self, wanted: usize) -> io::Result<usize> {
        match self.0.load(Ordering::SeqCst) {
            OPEN => Ok(wanted),
            ZERO => Ok(0),
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            left => {
                let admitted = left.min(wanted);
                self.set(left - admitted);
                Ok(admitted)
            }
        }
    }
}

// === impl Memory ===

impl Service<Uri> for Memory {
    type Response = Pipe;
    type Error = io::Error;
    type Future = Ready<io::Result<Pipe>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (client, server) = tokio::io::duplex(1024);
        self.accept.send(server).unwrap();
        std::future::ready(Ok(Pipe {
            io: TokioIo::new(client),
            valve: self.valve.clone(),
        }))
    }
}

// === impl Pipe ===

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let admitted = self.valve.admit(bytes.len())?;
        if admitted == 0 {
            return Poll::Ready(Ok(0));
        }
        Pin::new(&mut self.io).poll_write(cx, &bytes[..admitted])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

// ## One client, one server

type Answered = Result<Response<Incoming>, BoxError>;

struct Pair<C> {
    client: Witness<Client<C, WitnessBody<Full<Bytes>>>>,
    valve: Valve,
    accept: mpsc::UnboundedReceiver<DuplexStream>,
}

fn memory() -> (Memory, Valve, mpsc::UnboundedReceiver<DuplexStream>) {
    let valve = Valve(Arc::new(AtomicUsize::new(OPEN)));
    let (accept, accepted) = mpsc::unbounded_channel();
    let memory = Memory {
        valve: valve.clone(),
        accept,
    };
    (memory, valve, accepted)
}

fn client<C>(connector: C) -> Witness<Client<C, WitnessBody<Full<Bytes>>>>
where
    C: Connect + Clone,
{
    let client = Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .build(connector);
    WitnessLayer::new().layer(client)
}

fn order() -> Request<Full<Bytes>> {
    Request::post("http://venue.test/orders")
        .body(Full::from("buy 100"))
        .unwrap()
}

async fn read_order(server: &mut DuplexStream) {
    let mut read = Vec::new();
    while !read.ends_with(b"buy 100") {
        assert_ne!(server.read_buf(&mut read).await.unwrap(), 0);
    }
}

fn failure(answered: Answered) -> Failure {
    *answered.unwrap_err().downcast::<Failure>().unwrap()
}

/// A watched connection that has carried one request and its answer.
async fn used() -> (Pair<WitnessConnector<Memory>>, DuplexStream) {
    let (memory, valve, accept) = memory();
    let mut pair = Pair {
        client: client(WitnessConnector::new(memory)),
        valve,
        accept,
    };
    let call = tokio::spawn(pair.client.call(order()));
    let mut server = pair.accept.recv().await.unwrap();
    read_order(&mut server).await;
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    server.write_all(answer).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    // The connection is in the pool once its task has run.
    tokio::task::yield_now().await;
    (pair, server)
}

#[tokio::test]
async fn a_connection_that_accepts_nothing_more_carried_nothing_of_the_next_request() {
    for broken in [0, ZERO] {
        let (mut pair, _server) = used().await;
        pair.valve.set(broken);
        let failure = failure(pair.client.call(order()).await);
        assert_eq!(failure.delivery(), Delivery::NotSent, "{failure:?}");
        assert!(failure.outcome().is_retryable());
        assert_eq!(failure.proven_by(), Some(Witnessed::Connection));
        assert!(
            pair.accept.try_recv().is_err(),
            "it was the same connection"
        );
    }
}

#[tokio::test]
async fn one_byte_that_was_accepted_may_be_the_whole_request() {
    // The connection cannot tell, so neither can its witness.
    let (mut pair, _server) = used().await;
    pair.valve.set(1);
    let failure = failure(pair.client.call(order()).await);
    assert_eq!(failure.delivery(), Delivery::MaybeSent, "{failure:?}");
    assert!(failure.outcome().is_unknown());
    assert_eq!(failure.proven_by(), None);
}

#[tokio::test]
async fn a_request_that_the_server_has_read_may_have_been_applied() {
    let (mut pair, mut server) = used().await;
    let call = tokio::spawn(pair.client.call(order()));
    read_order(&mut server).await;
    drop(server);
    let failure = failure(call.await.unwrap());
    assert_eq!(failure.delivery(), Delivery::MaybeSent, "{failure:?}");
    assert_eq!(failure.proven_by(), None);
}

#[tokio::test]
async fn a_young_connection_that_accepts_nothing_carried_nothing() {
    let (memory, valve, _accept) = memory();
    valve.set(0);
    let mut watched = client(WitnessConnector::new(memory));
    let failure = failure(watched.call(order()).await);
    assert_eq!(failure.delivery(), Delivery::NotSent, "{failure:?}");
}

#[tokio::test]
async fn without_the_connector_a_broken_write_proves_nothing() {
    let (memory, valve, _accept) = memory();
    valve.set(0);
    let mut unwatched = client(memory);
    let failure = failure(unwatched.call(order()).await);
    assert_eq!(failure.delivery(), Delivery::MaybeSent, "{failure:?}");
    assert_eq!(failure.proven_by(), None);
}

#[tokio::test]
async fn the_bytes_of_an_earlier_attempt_are_not_those_of_a_later_one() {
    // Attempts are told apart by order alone, however fast they follow each other.
    let (mut pair, mut server) = used().await;
    for _ in 0..20 {
        let call = tokio::spawn(pair.client.call(order()));
        read_order(&mut server).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        server.write_all(answer).await.unwrap();
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
        tokio::task::yield_now().await;
    }
    pair.valve.set(0);
    let failure = failure(pair.client.call(order()).await);
    assert_eq!(failure.proven_by(), Some(Witnessed::Connection));
}

#[test]
fn the_connector_gives_back_what_it_was_given() {
    let mut connector = WitnessConnector::new(7);
    *connector.get_mut() += 1;
    assert_eq!(*connector.get_ref(), 8);
    assert_eq!(connector.into_inner(), 8);
}
