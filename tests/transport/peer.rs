//! Scripted servers that keep what they have read.

use std::{
    future::Future,
    io,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{Semaphore, watch};
use tower_outcome_testkit::raw::{self, frame};

use super::client::within;

/// What most HTTP/1 servers here answer.
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What they answer before they close the connection; one that is closed without a word races the
/// next request.
pub(crate) const OK_AND_CLOSE: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// What some servers say before they close an idle connection, although nobody asked.
pub(crate) const TIMED_OUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A scripted server, and what it has read.
pub(crate) struct Peer {
    server: raw::Server,
    shared: Arc<Shared>,
}

/// Lists what becomes of the connections of a [`Peer`], in order of accept; the last entry holds
/// for all that follow.
pub(crate) struct Script {
    script: raw::Script,
    shared: Arc<Shared>,
}

/// One connection of a scripted server.
pub(crate) struct Conn {
    raw: raw::Connection,
    number: usize,
    shared: Arc<Shared>,
}

/// A request that the server has read to its end.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    /// The head, in lower case, a field a line on either protocol.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

struct Shared {
    whole: Mutex<Vec<Whole>>,
    accepted: AtomicUsize,
    ended: watch::Sender<usize>,
    to_test: Semaphore,
    to_server: Semaphore,
}

// === impl Peer ===

impl Peer {
    /// Starts a server that handles every connection in the same way.
    pub(crate) fn start<F, Fut>(handler: F) -> Self
    where
        F: Fn(Conn) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::script().connection(handler).start()
    }

    pub(crate) fn script() -> Script {
        Script {
            script: raw::Server::script(),
            shared: Arc::new(Shared {
                whole: Mutex::default(),
                accepted: AtomicUsize::new(0),
                ended: watch::Sender::new(0),
                to_test: Semaphore::new(0),
                to_server: Semaphore::new(0),
            }),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/orders")
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.server.addr())
    }

    pub(crate) fn connections(&self) -> usize {
        self.server.connections()
    }

    /// Returns the requests that were read to their end.
    pub(crate) fn whole(&self) -> Vec<Whole> {
        self.shared.whole.lock().unwrap().clone()
    }

    /// Waits until the server has done with so many connections, which must be all of them, and
    /// returns how many requests it has read to their end.
    pub(crate) async fn ended(&self, connections: usize) -> usize {
        let mut ended = self.shared.ended.subscribe();
        within(ended.wait_for(|ended| *ended >= connections))
            .await
            .unwrap();
        assert_eq!(self.connections(), connections, "connections");
        self.whole().len()
    }

    /// Waits until the server tells the test to go on.
    pub(crate) async fn told(&self) {
        within(self.shared.to_test.acquire())
            .await
            .unwrap()
            .forget();
    }

    /// Tells the server to go on.
    pub(crate) fn tell(&self) {
        self.shared.to_server.add_permits(1);
    }
}

// === impl Script ===

impl Script {
    pub(crate) fn connection<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(Conn) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let script = self.script.connection(move |raw| {
            let shared = Arc::clone(&shared);
            let handled = handler(Conn {
                raw,
                number: shared.accepted.fetch_add(1, Ordering::SeqCst),
                shared: Arc::clone(&shared),
            });
            async move {
                let result = handled.await;
                shared.ended.send_modify(|ended| *ended += 1);
                result
            }
        });
        Self { script, ..self }
    }

    pub(crate) fn start(self) -> Peer {
        Peer {
            server: self.script.start().unwrap(),
            shared: self.shared,
        }
    }
}

// === impl Conn ===

impl Conn {
    /// Returns which connection of the server this is; the first is 0.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Reads an HTTP/1 request to its end.
    pub(crate) async fn request(&mut self) -> io::Result<()> {
        let (head, body) = self.raw.read_request().await?;
        self.keep(String::from_utf8_lossy(&head).to_ascii_lowercase(), body);
        Ok(())
    }

    /// Reads an HTTP/1 request in chunks to its end; the body is kept as it was on the wire.
    pub(crate) async fn chunked_request(&mut self) -> io::Result<()> {
        let head = self.raw.read_head().await?;
        let mut body = Vec::new();
        let mut in_trailers = false;
        // The last chunk, then trailers if there are any, then an empty line.
        while !(in_trailers && body.ends_with(b"\r\n\r\n")) {
            body.extend(self.raw.read_exact(1).await?);
            in_trailers |= body.ends_with(b"\r\n0\r\n") || body == b"0\r\n";
        }
        self.keep(String::from_utf8_lossy(&head).to_ascii_lowercase(), body);
        Ok(())
    }

    /// Reads an HTTP/2 request to its end and returns its stream.
    pub(crate) async fn stream(&mut self) -> io::Result<u32> {
        let headers = self.headers().await?;
        let body = if headers.end_stream {
            Vec::new()
        } else {
            self.raw.read_body(headers.stream).await?
        };
        self.keep(lines(&headers), body);
        Ok(headers.stream)
    }

    /// Reads an HTTP/2 request that ends with trailers, which are kept in the place of its body.
    pub(crate) async fn stream_with_trailers(&mut self) -> io::Result<u32> {
        let headers = self.headers().await?;
        let trailers = self.headers().await?;
        assert!(trailers.end_stream && trailers.stream == headers.stream);
        self.keep(lines(&headers), lines(&trailers).into_bytes());
        Ok(headers.stream)
    }

    /// Reads the head of an HTTP/2 request and returns its stream.
    pub(crate) async fn stream_head(&mut self) -> io::Result<u32> {
        Ok(self.headers().await?.stream)
    }

    async fn headers(&mut self) -> io::Result<raw::Headers> {
        let headers = self.raw.next_headers().await?;
        headers.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Waits until the client has worked off all that was sent before this.
    pub(crate) async fn ping(&mut self) -> io::Result<()> {
        self.raw.write_all(&frame::ping(*b"in order")).await?;
        loop {
            let Some(frame) = self.raw.read_frame().await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            if frame.kind == frame::PING && frame.flags & frame::ACK != 0 {
                return Ok(());
            }
        }
    }

    /// Closes in order: says that nothing more comes, and waits for the client to do the same.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        self.raw.fin().await?;
        self.raw.drain().await;
        Ok(())
    }

    pub(crate) fn reset(self) -> io::Result<()> {
        self.raw.reset()
    }

    /// Tells the test to go on.
    pub(crate) fn tell(&self) {
        self.shared.to_test.add_permits(1);
    }

    /// Waits until the test tells the server to go on.
    pub(crate) async fn told(&self) {
        if let Ok(permit) = self.shared.to_server.acquire().await {
            permit.forget();
        }
    }

    fn keep(&self, head: String, body: Vec<u8>) {
        self.shared.whole.lock().unwrap().push(Whole { head, body });
    }
}

impl Deref for Conn {
    type Target = raw::Connection;

    fn deref(&self) -> &Self::Target {
        &self.raw
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.raw
    }
}

fn lines(headers: &raw::Headers) -> String {
    let fields = headers.fields.iter();
    fields
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect()
}
