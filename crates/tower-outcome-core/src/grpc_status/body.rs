//! The response body.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tonic::Status;

use super::{code, judge::Judge};
use crate::BoxError;

pin_project! {
    /// A response body that ends with a [`tonic::Status`] where the call fails, with what is known of the
    /// call in it.
    ///
    /// Messages and the trailers of a success pass untouched, but for details that are no base64, at which
    /// tonic panics; `size_hint` and `is_end_stream` are those of
    /// the inner body.
    pub struct GrpcStatusBody<B: Body> {
        // A frame that was looked at. Not pinned: it is moved out.
        first: Option<Frame<B::Data>>,
        #[pin]
        rest: B,
        // `None` once the answer is over.
        judge: Option<Judge>,
    }
}

// === impl GrpcStatusBody ===

impl<B: Body> GrpcStatusBody<B> {
    pub(super) const fn new(first: Option<Frame<B::Data>>, rest: B, judge: Option<Judge>) -> Self {
        Self { first, rest, judge }
    }
}

impl<B> Body for GrpcStatusBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        if let Some(frame) = this.first.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(mut frame) = ready!(this.rest.poll_frame(cx)) else {
            // Once: the next time there is nobody to ask.
            let judge = this.judge.take();
            let failed = judge.and_then(|judge| judge.of_end());
            return Poll::Ready(failed.map(Err));
        };
        let failed = match frame.as_mut().ok().and_then(Frame::trailers_mut) {
            Some(trailers) => {
                code::drop_unreadable(trailers);
                this.judge
                    .as_ref()
                    .and_then(|judge| judge.of_trailers(trailers))
            }
            None => None,
        };
        Poll::Ready(Some(match (failed, frame) {
            (Some(status), _) => {
                *this.judge = None;
                Err(status)
            }
            (None, Ok(frame)) => {
                if frame.is_trailers() {
                    *this.judge = None;
                }
                Ok(frame)
            }
            (None, Err(error)) => {
                *this.judge = None;
                Err(code::of_error(error.into()))
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        // Where no status has come there is one to be told yet.
        self.first.is_none() && self.judge.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        use bytes::Buf;

        let rest = self.rest.size_hint();
        let first = self.first.as_ref().and_then(Frame::data_ref);
        let Some(first) = first.map(|data| data.remaining() as u64) else {
            return rest;
        };
        let mut both = SizeHint::new();
        both.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(first)) {
            both.set_upper(upper);
        }
        both
    }
}

impl<B: Body + fmt::Debug> fmt::Debug for GrpcStatusBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcStatusBody")
            .field("peeked", &self.first.is_some())
            .field("rest", &self.rest)
            .finish()
    }
}
