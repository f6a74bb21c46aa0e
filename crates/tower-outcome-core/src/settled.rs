//! Outcomes that became known after the fact.

use std::{
    fmt,
    task::{Context, Poll},
};

/// By what an outcome became known that an attempt had left open.
///
/// A layer that finds out notes it in the [`CallReport`](crate::CallReport) of the result. Layers above
/// that classify then take the outcome of that report for the last word: an answer that was made of a
/// record, or of no answer at all, has nothing for a rule to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SettledBy {
    /// The server was asked.
    Inquiry,
    /// Somebody told, such as a stream of the server's events.
    Signal,
}

/// Tells a layer that is about to send again that it need not: what became of the call is known by now.
///
/// It travels in the [`CallReport`](crate::CallReport) of an attempt that may have been applied. A layer
/// that waits before it sends again watches it; once it is settled, the layer hands the request down at
/// once, and the layer that gave the watch answers it without sending anything. What is told counts from
/// when the watch is first asked, which is when the wait begins. The watch has to be alive until the request
/// is handed down, and dropping it gives back what is held for it.
pub trait Settling: fmt::Debug + Send + Sync {
    /// Returns whether the outcome is known, or has the task woken when it is. Only the task that asked
    /// last is woken.
    fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<()>;
}

// === impl SettledBy ===

impl SettledBy {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Inquiry => "inquiry",
            Self::Signal => "signal",
        }
    }
}

impl fmt::Display for SettledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
