//! The response body.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// A response body of which the first frame may have been looked at.
    ///
    /// It yields that frame and then what follows; `size_hint` and `is_end_stream` speak of both.
    pub struct GrpcStatusBody<B: Body> {
        // Not pinned: it is moved out.
        first: Option<Frame<B::Data>>,
        #[pin]
        rest: B,
    }
}

// === impl GrpcStatusBody ===

impl<B: Body> GrpcStatusBody<B> {
    pub(super) const fn new(first: Option<Frame<B::Data>>, rest: B) -> Self {
        Self { first, rest }
    }
}

impl<B: Body> Body for GrpcStatusBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        match this.first.take() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => this.rest.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
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
