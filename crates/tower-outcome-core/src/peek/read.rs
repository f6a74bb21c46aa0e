//! Reading ahead, within a bound.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;

use super::{PeekBody, body::Read};
use crate::{BoxError, replay::max_frames};

/// Empty data frames that may come before the first frame that says something.
///
/// HTTP/2 allows them before anything, and they tell nothing; without a bound a peer could send
/// them for ever.
const EMPTY_FRAMES: usize = 16;

/// Reads a body ahead, as a future or by [`poll_peek`](Self::poll_peek).
///
/// The body is handed on by [`into_body`](Self::into_body), at any time. Polled again after it
/// was ready, it answers the same. Two questions can be asked, also one after the other: what the
/// whole body is, if it is small, and what its first frame is.
///
/// ```
/// # use http_body_util::Full;
/// # use tower_outcome_core::peek::{Peek, Peeked};
/// # async fn classify(body: Full<bytes::Bytes>) {
/// let mut peek = Peek::new(body, 16 * 1024);
/// let rejected = match (&mut peek).await {
///     Peeked::Complete(bytes) => bytes.starts_with(b"ERR"),
///     Peeked::TooLarge | Peeked::Failed => false,
/// };
/// let body = peek.into_body();
/// # drop((rejected, body));
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a peek does nothing unless it is polled"]
pub struct Peek<B, M = ()> {
    body: PeekBody<B, M>,
    limit: usize,
    done: Option<Peeked>,
}

/// What peeking at a whole body came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: a body ends, goes on or fails"
)]
pub enum Peeked {
    /// The whole body is within the bound, and this is its data.
    ///
    /// Its trailers are at [`Peek::trailers`].
    Complete(Bytes),
    /// The body is larger than the bound, or says that it will be.
    ///
    /// Data that arrives in more than 1024 pieces and one per 16 bytes of the bound is too large
    /// as well, since each piece costs memory beside its data.
    TooLarge,
    /// The body failed before it ended.
    ///
    /// The error is at [`Peek::error`], and is yielded by the body that is handed on.
    Failed,
}

/// What the first frame of a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: HTTP knows no other frame of a body"
)]
pub enum FirstFrame<'a> {
    /// Data came first.
    Data,
    /// Trailers came before any data, as in a gRPC answer without a message.
    Trailers(&'a HeaderMap),
    /// The body ended without a frame.
    End,
    /// The body failed before its first frame.
    Failed,
}

// === impl Peek ===

impl<B> Peek<B> {
    /// Peeks at no more than `limit` bytes of the data of `body`.
    ///
    /// With 0 only an empty body is complete.
    pub const fn new(body: B, limit: usize) -> Self {
        Self::of(PeekBody::new(body), limit)
    }
}

impl<B, M> Peek<B, M> {
    pub(super) const fn of(body: PeekBody<B, M>, limit: usize) -> Self {
        Self {
            body,
            limit,
            done: None,
        }
    }

    /// Returns the bound, in bytes.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the trailers, if they were read.
    #[must_use]
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.body.held_trailers()
    }

    /// Returns the error of the body, if it was met.
    #[must_use]
    pub fn error(&self) -> Option<&BoxError> {
        self.body.held_error()
    }

    /// Hands the body on, with all that was read of it.
    #[must_use]
    pub fn into_body(self) -> PeekBody<B, M> {
        self.body
    }
}

impl<B, M> Peek<B, M>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    /// Reads until the body has ended, failed, or crossed the bound.
    ///
    /// The bound is crossed by the frame that makes the data larger than it, or as soon as the
    /// size hint says that it will be; a known length that is too large reads nothing at all. The
    /// bytes of a body that came as one frame are shared, not copied.
    pub fn poll_peek(&mut self, cx: &mut Context<'_>) -> Poll<Peeked> {
        if let Some(done) = &self.done {
            return Poll::Ready(done.clone());
        }
        let done = loop {
            // Before the size, which means little once the body has failed.
            if self.body.held_error().is_some() {
                break Peeked::Failed;
            }
            if self.is_too_large() {
                break Peeked::TooLarge;
            }
            match ready!(self.body.poll_read(cx)) {
                Read::Frame => {}
                Read::End => break Peeked::Complete(self.body.held_data()),
                Read::Failed => break Peeked::Failed,
            }
        };
        Poll::Ready(self.done.insert(done).clone())
    }

    /// Reads until the first frame, the end or an error, whatever the bound in bytes.
    ///
    /// Empty data frames are passed over (and kept), up to 16 of them.
    pub fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<FirstFrame<'_>> {
        loop {
            if self.first().is_some() {
                break;
            }
            match ready!(self.body.poll_read(cx)) {
                Read::Frame => {}
                Read::End => return Poll::Ready(FirstFrame::End),
                Read::Failed => return Poll::Ready(FirstFrame::Failed),
            }
        }
        Poll::Ready(self.first().unwrap_or(FirstFrame::End))
    }

    fn is_too_large(&self) -> bool {
        let limit = u64::try_from(self.limit).unwrap_or(u64::MAX);
        self.body.least_size() > limit || self.body.held_frames() > max_frames(self.limit)
    }

    /// Returns the first frame that is held and says something.
    fn first(&self) -> Option<FirstFrame<'_>> {
        let mut empty = 0;
        for frame in self.body.frames() {
            if let Some(trailers) = frame.trailers_ref() {
                return Some(FirstFrame::Trailers(trailers));
            }
            if frame.data_ref().is_none_or(Bytes::is_empty) {
                empty += 1;
            } else {
                return Some(FirstFrame::Data);
            }
        }
        (empty > EMPTY_FRAMES).then_some(FirstFrame::Data)
    }
}

impl<B, M> Future for Peek<B, M>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Output = Peeked;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Peeked> {
        self.get_mut().poll_peek(cx)
    }
}
