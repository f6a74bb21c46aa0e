//! Who is asked for the server's time.

use std::{fmt, future::Future, pin::Pin, time::Duration, time::SystemTime};

use tower_outcome_core::BoxError;

/// Who is asked for the server's time, and how exactly it is told.
pub(super) struct Source {
    pub(super) resolution: Duration,
    pub(super) ask: Box<dyn Fn() -> Asked + Send + Sync>,
}

/// The server's time, once it is known.
pub(super) type Asked = Pin<Box<dyn Future<Output = Result<SystemTime, BoxError>> + Send>>;

/// Waits until the server's time has been asked for, by whoever.
pub(crate) type Resync = Pin<Box<dyn Future<Output = ()> + Send>>;

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("resolution", &self.resolution)
            .finish_non_exhaustive()
    }
}
