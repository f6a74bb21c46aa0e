//! The request body, as the transport gets it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::pace::Pace;

pin_project! {
    /// A request body that tells [`Timeout`](crate::Timeout) how much of it the transport has taken.
    ///
    /// Frames, trailers, `size_hint` and `is_end_stream` are those of the inner body, so a body of
    /// known length keeps its content-length on the wire.
    #[derive(Debug)]
    pub struct SentBody<B> {
        #[pin]
        inner: B,
        pace: Option<Arc<Pace>>,
    }

    impl<B> PinnedDrop for SentBody<B> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(pace) = this.project().pace {
                pace.dropped();
            }
        }
    }
}

// === impl SentBody ===

impl<B> SentBody<B> {
    pub(super) const fn new(inner: B, pace: Option<Arc<Pace>>) -> Self {
        Self { inner, pace }
    }
}

impl<B> SentBody<B> {
    /// Returns the inner body.
    pub const fn get_ref(&self) -> &B {
        &self.inner
    }
}

impl<B: Body> Body for SentBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let frame = this.inner.as_mut().poll_frame(cx);
        if let Some(pace) = this.pace {
            match &frame {
                Poll::Ready(frame) => pace.took(frame.as_ref(), this.inner.is_end_stream()),
                Poll::Pending => pace.starved(),
            }
        }
        frame
    }

    // NOTE: a transport may learn from either hint that nothing more comes, and end the request
    // without asking for another frame.
    fn is_end_stream(&self) -> bool {
        let ended = self.inner.is_end_stream();
        if let Some(pace) = &self.pace {
            pace.looked_at(ended);
        }
        ended
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.inner.size_hint();
        if let Some(pace) = &self.pace {
            pace.looked_at(hint.exact() == Some(0));
        }
        hint
    }
}
