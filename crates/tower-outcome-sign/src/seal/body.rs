//! A body that is compared, while it is sent, with what was signed.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_outcome_core::BoxError;

use crate::{SignError, SignErrorKind};

pin_project! {
    /// A body that is compared, while it is sent, with what was signed; in release builds it is passed on
    /// as it is.
    ///
    /// A frame that differs is not handed on: the body fails there with a [`SignError`], and the request
    /// never becomes whole.
    pub struct SealedBody<B> {
        #[pin]
        inner: B,
        // What was signed and has not come yet; `None` where nobody signed it.
        left: Option<Bytes>,
    }
}

// === impl SealedBody ===

impl<B> SealedBody<B> {
    #[inline]
    pub(super) const fn new(inner: B, signed: Option<Bytes>) -> Self {
        Self {
            inner,
            left: signed,
        }
    }
}

impl<B> Body for SealedBody<B>
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
        let mut this = self.project();
        let frame = match ready!(this.inner.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame.map_data(|mut data| data.copy_to_bytes(data.remaining())),
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => {
                let end = this.left.take().unwrap_or_default();
                return Poll::Ready((!end.is_empty()).then(|| Err(differs())));
            }
        };
        if let (Some(left), Some(data)) = (&mut *this.left, frame.data_ref()) {
            if !left.starts_with(data) {
                *this.left = None;
                return Poll::Ready(Some(Err(differs())));
            }
            left.advance(data.len());
        }
        // Who asks whether that was the end may not ask for another frame.
        let is_short = this.left.as_ref().is_some_and(|left| !left.is_empty());
        if is_short && this.inner.is_end_stream() {
            *this.left = None;
            return Poll::Ready(Some(Err(differs())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> fmt::Debug for SealedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedBody").finish_non_exhaustive()
    }
}

#[cold]
fn differs() -> BoxError {
    let part = "body".into();
    SignError::from(SignErrorKind::Tampered { part }).into()
}
