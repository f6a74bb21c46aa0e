//! Connectors that let a test see, or decide, when what happens on a connection.

use std::{
    future::Future,
    io,
    mem::MaybeUninit,
    net::Shutdown,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use socket2::{SockRef, Socket};
use tokio::{
    io::DuplexStream,
    net::TcpStream,
    sync::{Semaphore, mpsc},
};
use tower::Service;

use super::client::within;

/// Connects by TCP, and looks at the sockets behind the client's back.
#[derive(Clone)]
pub(crate) struct Tap {
    shared: Arc<Shared>,
    /// Whether a connection is handed to the client only when something has arrived on it.
    late: bool,
}

/// Connects to the test itself, in memory: what one side does wakes the other and runs nothing.
#[derive(Clone)]
pub(crate) struct Memory(mpsc::UnboundedSender<DuplexStream>);

/// A connection of which a connector of this module keeps track.
pub(crate) struct Tapped<T> {
    inner: TokioIo<T>,
    kept: Option<(Socket, Arc<Shared>)>,
}

struct Shared {
    sockets: Mutex<Vec<Socket>>,
    closed: Semaphore,
}

type Connecting<T> = Pin<Box<dyn Future<Output = io::Result<Tapped<T>>> + Send>>;

// === impl Tap ===

impl Tap {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                sockets: Mutex::default(),
                closed: Semaphore::new(0),
            }),
            late: false,
        }
    }

    /// Hands out a connection only when bytes, an end or a reset have arrived on it.
    pub(crate) fn late() -> Self {
        Self {
            late: true,
            ..Self::new()
        }
    }

    /// Waits until the client has closed one more connection.
    pub(crate) async fn closed(&self) {
        within(self.shared.closed.acquire()).await.unwrap().forget();
    }

    /// Waits, keeping the thread, until bytes or an end have arrived on the last connection.
    pub(crate) fn readable_meanwhile_blocked(&self) {
        let would_block = |socket: &Socket| {
            let peeked = socket.peek(&mut [MaybeUninit::uninit()]);
            peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        self.last_meanwhile_blocked(would_block);
    }

    /// Waits, keeping the thread, until a reset has arrived on the last connection.
    pub(crate) fn reset_meanwhile_blocked(&self) {
        // A socket that was reset has no peer; asking takes nothing from it.
        self.last_meanwhile_blocked(|socket| socket.peer_addr().is_ok());
    }

    fn last_meanwhile_blocked(&self, not_yet: impl Fn(&Socket) -> bool) {
        let sockets = self.shared.sockets.lock().unwrap();
        let socket = sockets.last().expect("a connection was made");
        while not_yet(socket) {
            std::thread::yield_now();
        }
    }
}

impl Service<Uri> for Tap {
    type Response = Tapped<TcpStream>;
    type Error = io::Error;
    type Future = Connecting<TcpStream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { shared, late } = self.clone();
        Box::pin(async move {
            let authority = uri.authority().expect("an absolute URI").as_str();
            let stream = TcpStream::connect(authority).await?;
            stream.set_nodelay(true)?;
            if late {
                stream.readable().await?;
            }
            let socket = SockRef::from(&stream);
            shared.sockets.lock().unwrap().push(socket.try_clone()?);
            Ok(Tapped {
                kept: Some((socket.try_clone()?, shared)),
                inner: TokioIo::new(stream),
            })
        })
    }
}

// === impl Memory ===

impl Memory {
    /// Returns the connector, and where the server's ends come out.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<DuplexStream>) {
        let (ends, servers) = mpsc::unbounded_channel();
        (Self(ends), servers)
    }
}

impl Service<Uri> for Memory {
    type Response = Tapped<DuplexStream>;
    type Error = io::Error;
    type Future = Connecting<DuplexStream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let sent = self.0.send(server);
        Box::pin(async move {
            sent.map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Tapped {
                inner: TokioIo::new(client),
                kept: None,
            })
        })
    }
}

// === impl Tapped ===

impl<T> Connection for Tapped<T> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl<T: tokio::io::AsyncRead + Unpin> Read for Tapped<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: tokio::io::AsyncWrite + Unpin> Write for Tapped<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<T> Drop for Tapped<T> {
    fn drop(&mut self) {
        if let Some((socket, shared)) = &self.kept {
            // The duplicate would keep the connection open. It fails where the peer closed first.
            let _ = socket.shutdown(Shutdown::Both);
            shared.closed.add_permits(1);
        }
    }
}
