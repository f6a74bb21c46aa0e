//! When to stop.

use std::io;

/// Returns a future that is ready when somebody asks this process to stop: by SIGTERM, or by ctrl-c.
///
/// # Errors
///
/// When signals cannot be waited for.
#[cfg(unix)]
pub(crate) fn asked_to() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Returns a future that is ready when somebody asks this process to stop, by ctrl-c.
///
/// # Errors
///
/// When signals cannot be waited for.
#[cfg(not(unix))]
pub(crate) fn asked_to() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
