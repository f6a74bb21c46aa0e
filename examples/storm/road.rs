//! The way to the venue, on which some connections get lost.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::net::{TcpListener, TcpSocket};
use tower::Service;

/// One connection of so many gets lost.
const LOST_OF: usize = 12;

/// A connector that now and then connects to nobody: the same connections, counted, for every
/// strategy.
#[derive(Clone)]
pub(crate) struct Road {
    connector: HttpConnector,
    black_hole: Arc<BlackHole>,
    connections: Arc<AtomicUsize>,
}

/// An address that answers nobody: its queue is full.
struct BlackHole {
    uri: Uri,
    _listener: TcpListener,
    _first: TcpStream,
}

// === impl Road ===

impl Road {
    /// Needs a tokio runtime around it.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            connector: HttpConnector::new(),
            black_hole: Arc::new(BlackHole::open()?),
            connections: Arc::default(),
        })
    }
}

impl Service<Uri> for Road {
    type Response = <HttpConnector as Service<Uri>>::Response;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = <HttpConnector as Service<Uri>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(cx)
    }

    fn call(&mut self, venue: Uri) -> Self::Future {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let is_lost = number % LOST_OF == LOST_OF - 1;
        self.connector.call(if is_lost {
            self.black_hole.uri.clone()
        } else {
            venue
        })
    }
}

// === impl BlackHole ===

impl BlackHole {
    fn open() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(0)?;
        let address = listener.local_addr()?;
        // The queue has room for one; whoever comes next gets no answer at all.
        let first = TcpStream::connect(address)?;
        let uri = format!("http://{address}").parse();
        Ok(Self {
            uri: uri.map_err(io::Error::other)?,
            _listener: listener,
            _first: first,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use tower_outcome_testkit::Venue;

    use super::*;

    #[tokio::test]
    async fn every_twelfth_connection_is_never_there() {
        let venue = Venue::start().unwrap();
        let uri: Uri = venue.url("/").parse().unwrap();
        let mut road = Road::new().unwrap();
        for number in 1..=2 * LOST_OF {
            let connecting = road.call(uri.clone());
            if number % LOST_OF == 0 {
                let bound = Duration::from_millis(50);
                assert!(timeout(bound, connecting).await.is_err());
            } else {
                connecting.await.unwrap();
            }
        }
    }
}
