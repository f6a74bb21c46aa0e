//! The response body.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_outcome_core::{BoxError, Delivery, Failure, Phase};

use super::future::{IfOver, Span};
use crate::{Bound, Elapsed};

pin_project! {
    /// A response body that fails at the deadline of its call.
    ///
    /// Frames, trailers, `size_hint` and `is_end_stream` are those of the inner body. The end of the
    /// body wins over the deadline; data that keeps coming does not.
    #[derive(Debug)]
    pub struct DeadlineBody<B> {
        // `None` once the deadline has struck.
        #[pin]
        inner: Option<B>,
        span: Option<Span>,
        if_over: IfOver,
        timer: Option<Pin<Box<Sleep>>>,
    }
}

// === impl DeadlineBody ===

impl<B> DeadlineBody<B> {
    #[inline]
    pub(super) const fn new(
        inner: B,
        span: Option<Span>,
        if_over: IfOver,
        timer: Option<Pin<Box<Sleep>>>,
    ) -> Self {
        Self {
            inner: Some(inner),
            span,
            if_over,
            timer,
        }
    }
}

impl<B> Body for DeadlineBody<B>
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
        let mut this = self.project();
        let Some(mut inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let polled = inner.as_mut().poll_frame(cx).map_err(Into::into);
        let Some(Span { started, end }) = *this.span else {
            return polled;
        };
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                // Data that comes faster than it is read never lets the timer have its turn.
                if frame.is_trailers() || inner.is_end_stream() || Instant::now() < end {
                    return Poll::Ready(Some(Ok(frame)));
                }
            }
            Poll::Ready(_) => return polled,
            Poll::Pending => {
                let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
                ready!(timer.as_mut().poll(cx));
            }
        }
        this.inner.set(None);
        let limit = end.saturating_duration_since(started);
        let elapsed = Elapsed::new(Bound::Deadline, limit, Phase::ReadingBody);
        let failure = Failure::new(this.if_over.outcome(), Delivery::Answered, elapsed);
        Poll::Ready(Some(Err(failure.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}
