//! The order of events, without a clock.

use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "hyper-util")]
use std::{io, sync::Arc, task::Poll};

/// Counts the attempts of this process. Comparing the number at which an attempt began with the
/// number at which a connection last accepted a byte tells which came first, at any resolution.
static NOW: AtomicU64 = AtomicU64::new(1);

/// The place of an attempt in the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u64);

/// When a connection last accepted a byte.
#[cfg(feature = "hyper-util")]
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWrite(Arc<AtomicU64>);

// === impl Tick ===

impl Tick {
    /// Begins an attempt: every write noted from here on is at or after it.
    ///
    /// NOTE: [`LastWrite::watch`] reads the counter after the bytes were accepted. The request
    /// reaches the connection only after this addition, so a write of it cannot read less.
    pub(crate) fn next() -> Self {
        Self(NOW.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

// === impl LastWrite ===

#[cfg(feature = "hyper-util")]
impl LastWrite {
    pub(crate) fn of(extras: &http::Extensions) -> Option<&Self> {
        extras.get::<Self>()
    }

    /// Runs a write of one connection, and notes it if bytes were accepted.
    ///
    /// While the write runs, whoever asks is told that it may belong to any attempt: on HTTP/2 an
    /// attempt can end on another thread before the outcome of the write is noted.
    pub(crate) fn watch(
        &self,
        write: impl FnOnce() -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let before = self.0.swap(u64::MAX, Ordering::SeqCst);
        let accepted = write();
        // See the note at `Tick::next` for why the counter is read here and not above.
        let last = match accepted {
            Poll::Ready(Ok(count)) if count > 0 => NOW.load(Ordering::SeqCst),
            Poll::Ready(_) | Poll::Pending => before,
        };
        self.0.store(last, Ordering::SeqCst);
        accepted
    }

    /// Whether the last accepted byte belongs to something earlier.
    pub(crate) fn is_before(&self, attempt: Tick) -> bool {
        self.0.load(Ordering::SeqCst) < attempt.0
    }
}
