//! A body of which some frames may have been read already.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{CutShort, MapBodyError, Peek};
use crate::BoxError;

pin_project! {
    /// Yields what was peeked of a body, then the rest of it.
    ///
    /// Frames, trailers and the error come in the order and with the boundaries they had. A body
    /// that ends before the length it announced fails with [`CutShort`]. The
    /// size hint is that of the rest of the body plus what is held here. Until something is
    /// peeked this is the body and a few bytes beside it: nothing is allocated, and every call
    /// goes straight to the body. Data that is not `Bytes` is copied once.
    ///
    /// `M` wraps the error of the body on its way to the caller; without one (`()`) the error
    /// passes as it is.
    pub struct PeekBody<B, M = ()> {
        #[pin]
        inner: B,
        pub(super) held: Option<Box<Held>>,
        // `None` once it was asked.
        map: Option<M>,
    }
}

/// What was read ahead.
#[derive(Debug, Default)]
pub(super) struct Held {
    frames: VecDeque<Frame<Bytes>>,
    /// Bytes of data in `frames`.
    size: usize,
    /// The body failed after `frames`.
    error: Option<BoxError>,
    /// The body ended after `frames`.
    ended: bool,
    /// What the body said of its size before it ended or failed.
    last: SizeHint,
}

/// What reading one frame ahead came to.
#[derive(Debug)]
pub(super) enum Read {
    Frame,
    End,
    Failed,
}

// === impl PeekBody ===

impl<B> PeekBody<B> {
    /// Wraps a body of which nothing is peeked yet.
    #[must_use]
    pub const fn new(inner: B) -> Self {
        Self {
            inner,
            held: None,
            map: Some(()),
        }
    }
}

impl<B, M> PeekBody<B, M> {
    /// Passes the error of the body through `map`, in the place of the present `M`.
    #[must_use]
    pub fn with_error_map<N>(self, map: N) -> PeekBody<B, N> {
        PeekBody {
            inner: self.inner,
            held: self.held,
            map: Some(map),
        }
    }

    /// Drops the body, and yields `rest` after what was peeked of it.
    ///
    /// For a response that has to give its connection back before it is known whether anybody reads it.
    /// Where the peek met the end or the error of the body, that comes in its place as before.
    #[must_use]
    pub fn with_rest<N>(self, rest: N) -> PeekBody<N, M> {
        PeekBody {
            inner: rest,
            held: self.held,
            map: self.map,
        }
    }

    /// Peeks at no more than `limit` bytes of the data.
    ///
    /// What an earlier peek has read is looked at again, and counts.
    pub fn peek(self, limit: usize) -> Peek<B, M> {
        Peek::of(self, limit)
    }

    /// Returns a reference to the inner body, which is past the frames that were peeked.
    #[must_use]
    pub fn get_ref(&self) -> &B {
        &self.inner
    }

    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame<Bytes>> {
        self.held.iter().flat_map(|held| &held.frames)
    }

    pub(super) fn held_frames(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.frames.len())
    }

    pub(super) fn held_size(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.size)
    }

    pub(super) fn held_trailers(&self) -> Option<&HeaderMap> {
        self.frames().find_map(Frame::trailers_ref)
    }

    pub(super) fn held_error(&self) -> Option<&BoxError> {
        self.held.as_ref()?.error.as_ref()
    }

    /// Returns the data that is held, in one piece.
    pub(super) fn held_data(&self) -> Bytes {
        let mut chunks = self
            .frames()
            .filter_map(Frame::data_ref)
            .filter(|data| !data.is_empty());
        let Some(first) = chunks.next() else {
            return Bytes::new();
        };
        let Some(second) = chunks.next() else {
            return first.clone();
        };
        let mut whole = BytesMut::with_capacity(self.held_size());
        whole.extend_from_slice(first);
        whole.extend_from_slice(second);
        chunks.for_each(|data| whole.extend_from_slice(data));
        whole.freeze()
    }
}

impl<B: Body, M> PeekBody<B, M> {
    /// Returns the least number of bytes that the whole will come to.
    pub(super) fn least_size(&self) -> u64 {
        let rest = match &self.held {
            Some(held) if held.ended => 0,
            _ => self.inner.size_hint().lower(),
        };
        rest.saturating_add(self.held_size() as u64)
    }
}

impl<B, M> PeekBody<B, M>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    /// Reads one frame ahead and holds it.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        match &self.held {
            Some(held) if held.error.is_some() => return Poll::Ready(Read::Failed),
            Some(held) if held.ended => return Poll::Ready(Read::End),
            _ if self.inner.is_end_stream() => return Poll::Ready(Read::End),
            _ => {}
        }
        let before = self.inner.size_hint();
        let polled = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        let held = self.held.get_or_insert_default();
        held.last = before;
        Poll::Ready(match polled {
            None => match CutShort::check(&self.inner) {
                Ok(()) => {
                    held.ended = true;
                    Read::End
                }
                Err(error) => {
                    held.error = Some(error.into());
                    Read::Failed
                }
            },
            Some(Err(error)) => {
                held.error = Some(error.into());
                Read::Failed
            }
            Some(Ok(frame)) => {
                held.push(in_bytes(frame));
                Read::Frame
            }
        })
    }
}

impl<B, M> Body for PeekBody<B, M>
where
    B: Body,
    B::Error: Into<BoxError>,
    M: MapBodyError,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        let mut error = None;
        if let Some(held) = this.held {
            if let Some(frame) = held.pop() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if held.ended {
                return Poll::Ready(None);
            }
            error = held.error.take();
            *this.held = None;
        }
        let error = match error {
            Some(error) => error,
            None => match ready!(this.inner.as_mut().poll_frame(cx)) {
                None => match CutShort::check(&*this.inner) {
                    Ok(()) => return Poll::Ready(None),
                    Err(error) => error.into(),
                },
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(in_bytes(frame)))),
                Some(Err(error)) => error.into(),
            },
        };
        Poll::Ready(Some(Err(match this.map.take() {
            Some(map) => map.map(error),
            None => error,
        })))
    }

    fn is_end_stream(&self) -> bool {
        match &self.held {
            Some(held) if !held.frames.is_empty() || held.error.is_some() => false,
            Some(held) if held.ended => true,
            _ => self.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let Some(held) = &self.held else {
            return self.inner.size_hint();
        };
        let inner;
        let rest = if held.ended || held.error.is_some() {
            &held.last
        } else {
            inner = self.inner.size_hint();
            &inner
        };
        let held = held.size as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(held)) {
            hint.set_upper(upper);
        }
        hint
    }
}

impl<B: fmt::Debug, M> fmt::Debug for PeekBody<B, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeekBody")
            .field("inner", &self.inner)
            .field("held", &self.held_size())
            .finish_non_exhaustive()
    }
}

// === impl Held ===

impl Held {
    fn push(&mut self, frame: Frame<Bytes>) {
        let size = frame.data_ref().map_or(0, Bytes::len);
        self.size = self.size.saturating_add(size);
        self.frames.push_back(frame);
    }

    fn pop(&mut self) -> Option<Frame<Bytes>> {
        let frame = self.frames.pop_front()?;
        let size = frame.data_ref().map_or(0, Bytes::len);
        self.size = self.size.saturating_sub(size);
        Some(frame)
    }
}

/// Turns the data of a frame into `Bytes`, which costs nothing if it is that already.
fn in_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}
