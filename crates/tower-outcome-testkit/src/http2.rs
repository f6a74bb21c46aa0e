//! HTTP/2 with prior knowledge, at frame level.

use std::sync::Arc;

use tokio::net::TcpStream;

use crate::desk::{Desk, Open};
pub(crate) use crate::raw::frame::PREFACE;

/// Serves one connection until it ends.
pub(crate) async fn serve(stream: TcpStream, desk: Arc<Desk>, open: Open) {
    let _busy = desk.busy();
    drop((stream, open));
}
