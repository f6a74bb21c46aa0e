//! The running server.

use std::{io, net::SocketAddr, sync::Arc};

use tokio::{net::TcpListener, task::JoinHandle};
use tonic::transport::{Server, server::TcpIncoming};

use crate::{
    ledger::{Ledger, Seen, Trouble},
    orders::orders_server::OrdersServer,
    service::Service,
};

/// A desk that takes orders on loopback, and keeps a ledger of them.
///
/// It is served by a task of the runtime that it was opened on, and closes when it is dropped.
#[derive(Debug)]
pub struct Desk {
    addr: SocketAddr,
    ledger: Arc<Ledger>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

// === impl Desk ===

impl Desk {
    /// Opens a desk on a free port.
    ///
    /// # Errors
    ///
    /// If there is no port to be had on loopback.
    pub async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let ledger = Arc::new(Ledger::new());
        let service = OrdersServer::new(Service::new(&ledger));
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming),
        );
        Ok(Self {
            addr,
            ledger,
            serving,
        })
    }

    /// Returns the address, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Tells what goes wrong with the next call of a method; said twice, with the one after it too.
    pub fn next(&self, method: &'static str, trouble: Trouble) {
        self.ledger.tell(method, trouble);
    }

    /// Returns how often an order was placed.
    #[must_use]
    pub fn times_placed(&self, id: &str) -> usize {
        self.ledger.times_placed(id)
    }

    /// Returns the calls of a method, in the order in which they came.
    #[must_use]
    pub fn seen(&self, method: &str) -> Vec<Seen> {
        self.ledger.seen(method)
    }

    /// Waits until so many orders were placed in all.
    pub async fn orders(&self, count: usize) {
        self.ledger.orders(count).await;
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
