//! Threads with a reactor of their own, and sockets that die in a chosen way.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Runs a future on a thread with a runtime of its own until it ends or `stopped` is dropped.
pub(crate) fn spawn(
    name: &str,
    stopped: oneshot::Receiver<()>,
    future: impl Future<Output = ()> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = stopped => {}
                    () = future => {}
                }
            });
            // Dropping the runtime here drops all tasks and so all their sockets.
        })
}

/// Closes a socket by RST, whatever is still in its buffers.
pub(crate) fn reset(stream: TcpStream) {
    // On failure the drop below is a plain close.
    let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    drop(stream);
}

/// Waits until the client has closed or reset the connection, without reading from it.
pub(crate) async fn gone(stream: &TcpStream) {
    loop {
        match stream.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => {
                // Unread bytes keep the socket ready, so there is no event to wait for.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            _ => return,
        }
    }
}
