//! The server that hands connections to closures.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::Connection;
use crate::socket;

type Handler = Box<dyn Fn(Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A server on loopback whose connections are handled by closures, on a thread of its own.
///
/// When it is dropped its thread ends and all its sockets are closed.
///
/// See the [module docs](super) for an example.
pub struct Server {
    addr: SocketAddr,
    counts: Arc<Counts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Lists what becomes of the connections of a [`Server`], in order of accept.
#[must_use = "a script does nothing until it is started"]
#[derive(Default)]
pub struct Script {
    handlers: Vec<Handler>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) connections: AtomicUsize,
    pub(super) requests: AtomicUsize,
}

// === impl Server ===

impl Server {
    /// Starts a server that handles every connection in the same way.
    ///
    /// # Errors
    ///
    /// When there is no free port on 127.0.0.1 or no thread.
    pub fn start<F, Fut>(handler: F) -> io::Result<Self>
    where
        F: Fn(Connection) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::script().connection(handler).start()
    }

    /// Lists what becomes of the connections.
    pub fn script() -> Script {
        Script::default()
    }

    /// Returns the address it listens on, a free port of 127.0.0.1.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("http://{}{slash}{path}", self.addr)
    }

    /// Returns how many connections were accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Returns how many request heads were read, on HTTP/2 how many HEADERS frames.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic on that thread has nobody to go to any more.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addr", &self.addr)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

// === impl Script ===

impl Script {
    /// Says what becomes of the next connection, and of all later ones if it is the last.
    ///
    /// The connection is closed when the future is done, unless it was moved elsewhere. An error
    /// it returns is dropped; it is there so that `?` may be used.
    pub fn connection<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Connection) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        self.handlers.push(Box::new(move |connection| {
            let handled = handler(connection);
            Box::pin(async move { drop(handled.await) })
        }));
        self
    }

    /// Starts the server. Without a handler every connection is closed at accept.
    ///
    /// # Errors
    ///
    /// When there is no free port on 127.0.0.1 or no thread.
    pub fn start(self) -> io::Result<Server> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let (stop, stopped) = oneshot::channel();
        let thread = socket::spawn("raw-server", stopped, {
            let counts = Arc::clone(&counts);
            async move { self.serve(listener, counts).await }
        })?;
        Ok(Server {
            addr,
            counts,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    async fn serve(self, listener: std::net::TcpListener, counts: Arc<Counts>) {
        // Fails only without a reactor, and this runs in one.
        let Ok(listener) = TcpListener::from_std(listener) else {
            return;
        };
        let last = self.handlers.len().saturating_sub(1);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let number = counts.connections.fetch_add(1, Ordering::SeqCst);
            if let Some(handler) = self.handlers.get(number.min(last)) {
                let connection = Connection::new(stream, Arc::clone(&counts));
                tokio::spawn(handler(connection));
            }
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("handlers", &self.handlers.len())
            .finish()
    }
}
