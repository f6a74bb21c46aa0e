//! The request body, as the transport gets it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_outcome_core::{BoxError, WitnessBody};

use super::pace::Pace;

pin_project! {
    /// A request body that tells [`Timeout`](crate::Timeout) how much of it the transport has taken.
    ///
    /// Frames, trailers, `size_hint` and `is_end_stream` are those of the inner body, so a body of
    /// known length keeps its content-length on the wire.
    #[derive(Debug)]
    pub struct SentBody<B> {
        #[pin]
        inner: WitnessBody<B>,
        pace: Option<Arc<Pace>>,
    }
}

// === impl SentBody ===

impl<B> SentBody<B> {
    pub(super) const fn new(inner: WitnessBody<B>, pace: Option<Arc<Pace>>) -> Self {
        Self { inner, pace }
    }
}

impl<B: Body> SentBody<B> {
    /// Returns the body that the caller made.
    pub fn get_ref(&self) -> &B {
        self.inner.get_ref()
    }

    /// Returns the body that the caller made, by value.
    pub fn into_inner(self) -> B {
        self.inner.into_inner()
    }
}

impl<B> Body for SentBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        let frame = this.inner.poll_frame(cx);
        if let Some(pace) = this.pace {
            match frame {
                Poll::Ready(_) => pace.took(),
                Poll::Pending => pace.starved(),
            }
        }
        frame
    }

    // NOTE: a transport may learn from either hint that there is nothing to ask for; see
    // `WitnessBody`, which is told the same way.
    fn is_end_stream(&self) -> bool {
        let ended = self.inner.is_end_stream();
        if let Some(pace) = &self.pace {
            pace.looked_at();
        }
        ended
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.inner.size_hint();
        if let Some(pace) = &self.pace {
            pace.looked_at();
        }
        hint
    }
}
