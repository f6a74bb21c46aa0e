//! Bodies that can be sent again.
//!
//! A layer that resends asks for one thing: [`Replay`]. Every `Clone` body has it for free, so
//! `Full<Bytes>` or `Empty` cost nothing. A stream gets it from [`ReplayBody`], which keeps what
//! the first attempt streams, up to a bound; [`ReplayLayer`] puts it around every request.

mod body;
mod error;
mod head;
mod layer;
#[cfg(test)]
pub(crate) mod script;
mod shared;
mod tape;

pub use body::ReplayBody;
pub use error::{NotReplayable, Superseded};
pub use head::HeadCopy;
pub use layer::{ReplayLayer, ReplayService};
pub(crate) use tape::max_frames;

/// Makes the body of the next attempt.
///
/// Implemented for every `Clone` body, and for [`ReplayBody`].
///
/// A `Clone` body must yield the same bytes as the value it was cloned from would have yielded
/// from its start. A clone that shares a cursor with its original breaks this: the second
/// attempt would send the rest of the body in the place of the whole. Keep such a type from being
/// `Clone`, or put it into a [`ReplayBody`].
pub trait Replay: Sized {
    /// Returns a body that starts from the beginning, or `None` where that is impossible.
    ///
    /// `None` is final for this call: what could not be replayed once never can be later. `Some`
    /// is not: a stream that is still being sent may cross its bound before the returned body is
    /// read, and then that body fails instead of sending less than the whole.
    fn replay(&self) -> Option<Self>;

    /// Returns whether the body itself produced an error.
    ///
    /// Such an error is the caller's, not the transport's, and the next attempt would meet it
    /// too, so the call is not retried. A `Clone` body keeps no account of its clones and answers
    /// `false`.
    fn failed(&self) -> bool {
        false
    }
}

// === impl Replay ===

impl<T: Clone> Replay for T {
    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[cfg(test)]
mod tests;
