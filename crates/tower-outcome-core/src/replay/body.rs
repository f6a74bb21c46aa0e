//! A stream that remembers what it sent.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::{
    Replay, ReplayLayer,
    error::{NotReplayable, Superseded},
    shared::{Shared, Turn},
};
use crate::BoxError;

/// Makes a streaming body replayable, within a bound.
///
/// Nothing is read ahead: the first attempt streams as it would without this, and each frame is
/// kept as it passes, `Bytes` by reference, any other buffer copied once. [`replay`](Replay::replay)
/// makes a handle on the same body that starts over: it yields the kept frames with their
/// boundaries and trailers, then goes on reading the stream where the earlier attempt stopped.
/// At every position, `size_hint` and `is_end_stream` are what the body itself said there, so an
/// attempt that is repeated frames its request like the first (a wrapper that loses the length
/// turns a POST into a chunked one).
///
/// # One attempt at a time
///
/// The handle that was made last and polled is the active one. From its first poll on, all older
/// handles fail with [`Superseded`], even when they were waiting, so an attempt that was given up
/// but still lingers in a connection cannot take frames. A handle that is never polled changes
/// nothing.
///
/// # Over the bound
///
/// When the frame that crosses the bound passes, the recording is dropped and the active attempt
/// goes on untouched. From then on `replay` returns `None`, and a handle that was made earlier
/// but was not read yet fails with [`NotReplayable`] rather than to send a part of the body. Data
/// and trailers count by their bytes; a body in more than 1024 frames and one per 16 bytes of the
/// bound is over it too, so that empty frames cannot pile up.
///
/// # Errors
///
/// An error of the body reaches the active attempt as it is (boxed). It ends the recording, and
/// [`failed`](Replay::failed) is true on every handle. A body that panics counts as failed; what
/// is read after that fails with [`NotReplayable`].
///
/// # Cancellation
///
/// Dropping a handle at any point loses no frame. The body is dropped when it has ended, else
/// with the last handle.
pub struct ReplayBody<B> {
    shared: Arc<Shared<B>>,
    id: u64,
    /// Steps of the body (frames, then the end) that this handle has yielded.
    position: usize,
}

// === impl ReplayBody ===

impl<B> ReplayBody<B> {
    /// Returns the bound, in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.shared.limit()
    }

    /// Returns how many bytes are kept for a replay at this moment.
    #[must_use]
    pub fn recorded(&self) -> usize {
        self.shared.recorded()
    }
}

impl<B: Body> ReplayBody<B> {
    /// Wraps a body that may be replayed up to [`ReplayLayer::DEFAULT_LIMIT`], 64 KiB.
    #[must_use]
    pub fn new(body: B) -> Self {
        Self::with_limit(body, ReplayLayer::DEFAULT_LIMIT)
    }

    /// Wraps a body that may be replayed up to `bytes` bytes.
    ///
    /// With 0 nothing is ever kept, and not even an empty body can be replayed.
    #[must_use]
    pub fn with_limit(body: B, bytes: usize) -> Self {
        Self {
            shared: Arc::new(Shared::new(body, bytes)),
            id: Shared::<B>::FIRST,
            position: 0,
        }
    }
}

impl<B> Replay for ReplayBody<B> {
    fn replay(&self) -> Option<Self> {
        Some(Self {
            id: self.shared.another()?,
            shared: Arc::clone(&self.shared),
            position: 0,
        })
    }

    fn failed(&self) -> bool {
        self.shared.is_failed()
    }
}

impl<B> Body for ReplayBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let step = match this.shared.turn(this.id, this.position, cx.waker()) {
            Turn::Take(step) => step,
            Turn::Poll(lease) => match ready!(lease.poll(cx)) {
                Ok(step) => step,
                Err(superseded) => return Poll::Ready(Some(Err(superseded.into()))),
            },
            Turn::Wait => return Poll::Pending,
            Turn::Over => return Poll::Ready(None),
            Turn::Superseded => return Poll::Ready(Some(Err(Superseded::new().into()))),
            Turn::NotReplayable => return Poll::Ready(Some(Err(NotReplayable::new().into()))),
        };
        this.position += 1;
        Poll::Ready(step.into_frame())
    }

    fn is_end_stream(&self) -> bool {
        self.shared.is_end_stream(self.position)
    }

    fn size_hint(&self) -> SizeHint {
        self.shared.size_hint(self.position)
    }
}

impl<B> Drop for ReplayBody<B> {
    fn drop(&mut self) {
        self.shared.leave(self.id);
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody")
            .field("attempt", &self.id)
            .field("position", &self.position)
            .field("recorded", &self.recorded())
            .field("limit", &self.limit())
            .finish_non_exhaustive()
    }
}
