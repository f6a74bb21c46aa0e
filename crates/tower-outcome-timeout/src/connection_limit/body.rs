//! The response body, which keeps the slot.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::slots::Slot;

pin_project! {
    /// A response body that keeps the slot of its request until it has ended, failed or was dropped.
    ///
    /// Frames, trailers, `size_hint` and `is_end_stream` are those of the inner body.
    #[derive(Debug)]
    pub struct ConnectionLimitBody<B> {
        // Before the slot, so that the connection is back when the slot is free.
        #[pin]
        inner: B,
        slot: Option<Slot>,
    }
}

// === impl ConnectionLimitBody ===

impl<B: Body> ConnectionLimitBody<B> {
    pub(super) fn new(inner: B, slot: Option<Slot>) -> Self {
        // A response without a body is over with its head, even if somebody keeps it.
        let slot = slot.filter(|_| !inner.is_end_stream());
        Self { inner, slot }
    }
}

impl<B: Body> Body for ConnectionLimitBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.inner.as_mut().poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || this.inner.is_end_stream() {
            *this.slot = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
