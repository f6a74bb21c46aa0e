//! The response body.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_outcome_core::{BoxError, Delivery, Failure, Outcome, Phase, Reason};

use crate::{Bound, Elapsed};

pin_project! {
    /// A response body that fails when nothing of it comes for too long.
    ///
    /// The time counts while somebody waits for a frame: a reader who takes his time is not the
    /// server's fault. Frames, trailers, `size_hint` and `is_end_stream` are those of the inner body.
    #[derive(Debug)]
    pub struct TimeoutBody<B> {
        // `None` once the bound has struck.
        #[pin]
        inner: Option<B>,
        idle: Option<Duration>,
        // Since when somebody waits for the next frame.
        since: Option<Instant>,
        // Made when somebody has to wait; boxed, so that the body stays `Unpin`.
        timer: Option<Pin<Box<Sleep>>>,
    }
}

// === impl TimeoutBody ===

impl<B> TimeoutBody<B> {
    #[inline]
    pub(super) const fn new(inner: B, idle: Option<Duration>) -> Self {
        Self {
            inner: Some(inner),
            idle,
            since: None,
            timer: None,
        }
    }
}

impl<B> Body for TimeoutBody<B>
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
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = inner.poll_frame(cx) {
            *this.since = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(idle) = *this.idle else {
            return Poll::Pending;
        };
        let since = *this.since.get_or_insert_with(Instant::now);
        // Beyond all clocks is never.
        let Some(end) = since.checked_add(idle) else {
            return Poll::Pending;
        };
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        // A timer of an earlier gap is left alone until it is over: most gaps are short.
        while Instant::now() < end {
            if timer.is_elapsed() || timer.deadline() > end {
                timer.as_mut().reset(end);
            }
            ready!(timer.as_mut().poll(cx));
        }
        this.inner.set(None);
        let elapsed = Elapsed::new(Bound::ReadIdle, idle, Phase::ReadingBody);
        let outcome = Outcome::Unknown {
            reason: Reason::TimedOut,
        };
        let failure = Failure::new(outcome, Delivery::Answered, elapsed);
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
