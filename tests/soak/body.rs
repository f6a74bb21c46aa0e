//! Request bodies: none, whole, streamed, and ones that fail.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};
use tower_outcome::BoxError;

use crate::call::Payload;

pub(crate) type Body = BoxBody<Bytes, BoxError>;

pub(crate) fn of(payload: &Payload) -> Body {
    match payload {
        Payload::None => Empty::new().map_err(|never| match never {}).boxed(),
        Payload::Full(bytes) => Full::new(bytes.clone())
            .map_err(|never| match never {})
            .boxed(),
        Payload::Stream(chunks, known) => Stream::new(chunks, *known, false).boxed(),
        Payload::Failing(chunks) => Stream::new(chunks, false, true).boxed(),
    }
}

/// Yields chunks, now and then only after it was polled twice.
struct Stream {
    chunks: VecDeque<Bytes>,
    left: u64,
    known: bool,
    fails: bool,
    hesitates: bool,
}

// === impl Stream ===

impl Stream {
    fn new(chunks: &[Bytes], known: bool, fails: bool) -> Self {
        Self {
            chunks: chunks.iter().cloned().collect(),
            left: chunks.iter().map(|chunk| chunk.len() as u64).sum(),
            known,
            fails,
            hesitates: true,
        }
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.hesitates = !self.hesitates;
        if self.hesitates {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.chunks.pop_front() {
            Some(chunk) => {
                self.left -= chunk.len() as u64;
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
            None if self.fails => Poll::Ready(Some(Err("the source of the body is gone".into()))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.known && self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.known {
            SizeHint::with_exact(self.left)
        } else {
            SizeHint::new()
        }
    }
}
