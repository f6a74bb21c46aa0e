//! The response future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::Response;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_outcome_core::{BoxError, Failure, Phase, Reason, witness::give_up};

use super::{
    TimeoutBody,
    limits::{Due, Limits},
    pace::{Pace, Progress},
};
use crate::{Bound, Elapsed};

pin_project! {
    /// The response future of [`Timeout`](crate::Timeout).
    ///
    /// A response that is ready wins over a bound that has struck. Dropping it drops the attempt.
    pub struct TimeoutFuture<F> {
        // `None` if nothing was left to begin with, and once a bound has struck.
        #[pin]
        inner: Option<F>,
        begun: bool,
        pace: Option<Arc<Pace>>,
        limits: Limits,
        read_idle: Option<Duration>,
        // Made when the first poll did not end the attempt, and handed on to the body.
        timer: Option<Pin<Box<Sleep>>>,
    }
}

// === impl TimeoutFuture ===

impl<F> TimeoutFuture<F> {
    #[inline]
    pub(super) const fn new(
        inner: Option<F>,
        pace: Option<Arc<Pace>>,
        limits: Limits,
        read_idle: Option<Duration>,
    ) -> Self {
        Self {
            begun: inner.is_some(),
            inner,
            pace,
            limits,
            read_idle,
            timer: None,
        }
    }
}

impl<F, RB, E> Future for TimeoutFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<TimeoutBody<RB>>, BoxError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        if let Some(inner) = this.inner.as_pin_mut() {
            if let Poll::Ready(result) = inner.poll(cx) {
                let (idle, timer) = (*this.read_idle, this.timer.take());
                return Poll::Ready(match result {
                    Ok(response) => Ok(response.map(|body| TimeoutBody::new(body, idle, timer))),
                    Err(error) => Err(error.into()),
                });
            }
        }
        let failure = ready!(self.poll_bounds(cx));
        Poll::Ready(Err(failure.into()))
    }
}

impl<F> TimeoutFuture<F> {
    /// Waits until a bound strikes.
    #[inline(never)]
    fn poll_bounds(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Failure> {
        let mut this = self.project();
        loop {
            let progress = this
                .pace
                .as_ref()
                .map_or(Progress::Untouched, |pace| pace.progress());
            match this.limits.due(Instant::now(), progress) {
                Due::Never => return Poll::Pending,
                Due::At(at) => {
                    let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
                    // A timer that is early only makes it reckon once more.
                    if timer.is_elapsed() || at < timer.deadline() {
                        timer.as_mut().reset(at);
                    }
                    ready!(timer.as_mut().poll(cx));
                }
                Due::Now(bound, limit) => {
                    if !*this.begun {
                        return Poll::Ready(not_begun(bound));
                    }
                    // What is left of the attempt goes at once, and says how far it got.
                    let words = give_up(|| this.inner.set(None));
                    let elapsed = Elapsed::new(bound, limit, words.phase);
                    let failure = words.failure(Reason::TimedOut, elapsed);
                    return Poll::Ready(failure);
                }
            }
        }
    }
}

/// What becomes of an attempt for which no time is left.
fn not_begun(bound: Bound) -> Failure {
    let elapsed = Elapsed::new(bound, Duration::ZERO, Phase::Queued);
    Failure::not_sent(Reason::LocalLimit, elapsed)
}

impl<F> fmt::Debug for TimeoutFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutFuture")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
