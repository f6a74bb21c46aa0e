//! HTTP/1.1, at socket level.

use std::sync::Arc;

use tokio::net::TcpStream;

use crate::desk::{Desk, Open};

/// Serves one connection until it ends.
pub(crate) async fn serve(stream: TcpStream, desk: Arc<Desk>, open: Open) {
    let _busy = desk.busy();
    drop((stream, open));
}
