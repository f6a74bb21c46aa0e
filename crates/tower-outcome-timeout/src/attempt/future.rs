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
use tower_outcome_core::{BoxError, Failure, Phase, Reason, Stamped, witness::give_up};

use super::{
    TimeoutBody,
    limits::{Due, Limits},
    pace::Pace,
};
use crate::{Bound, Elapsed, timer::poll_due};

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
        // Whether the transport knows the deadline.
        announced: bool,
        read_idle: Option<Duration>,
        stamped: Stamped,
        // Made when the first poll did not end the attempt.
        #[pin]
        timer: Option<Sleep>,
    }
}

// === impl TimeoutFuture ===

impl<F> TimeoutFuture<F> {
    #[inline]
    pub(super) const fn new(
        inner: Option<F>,
        pace: Option<Arc<Pace>>,
        limits: Limits,
        // Whether the transport knows the deadline.
        announced: bool,
        read_idle: Option<Duration>,
        stamped: Stamped,
    ) -> Self {
        Self {
            begun: inner.is_some(),
            inner,
            pace,
            limits,
            announced,
            read_idle,
            stamped,
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
                let idle = *this.read_idle;
                return Poll::Ready(match result {
                    Ok(response) => {
                        this.stamped.answered();
                        Ok(response.map(|body| TimeoutBody::new(body, idle)))
                    }
                    Err(error) if *this.announced => Err(named(error.into(), this.limits)),
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
        if !*this.begun {
            return Poll::Ready(not_begun());
        }
        let (bound, limit) = match this.pace {
            Some(pace) => ready!(poll_pace(cx, this.timer, this.limits, pace)),
            None => {
                // Only the end counts, and it does not move.
                let Some((end, bound, limit)) = this.limits.end() else {
                    return Poll::Pending;
                };
                ready!(poll_timer(cx, this.timer, end));
                (bound, limit)
            }
        };
        // What is left of the attempt goes at once, and says how far it got.
        let words = give_up(|| this.inner.set(None));
        let elapsed = Elapsed::new(bound, limit, words.phase);
        Poll::Ready(words.failure(Reason::TimedOut, elapsed))
    }
}

/// Waits for the first of bounds that depend on how the transport gets on.
fn poll_pace(
    cx: &mut Context<'_>,
    mut timer: Pin<&mut Option<Sleep>>,
    limits: &Limits,
    pace: &Pace,
) -> Poll<(Bound, Duration)> {
    loop {
        match limits.due(Instant::now(), pace.progress()) {
            Due::Never => return Poll::Pending,
            Due::Now(bound, limit) => return Poll::Ready((bound, limit)),
            Due::At(at) => {
                // A timer that is early only makes it reckon once more.
                if let Some(timer) = timer.as_mut().as_pin_mut() {
                    if timer.is_elapsed() || at < timer.deadline() {
                        timer.reset(at);
                    }
                }
                ready!(poll_timer(cx, timer.as_mut(), at));
            }
        }
    }
}

fn poll_timer(cx: &mut Context<'_>, mut timer: Pin<&mut Option<Sleep>>, at: Instant) -> Poll<()> {
    if timer.is_none() {
        timer.set(Some(sleep_until(at)));
    }
    match timer.as_pin_mut() {
        Some(timer) => poll_due(timer, cx),
        None => Poll::Pending,
    }
}

/// A transport that was told of the deadline may strike by itself, as tonic's channel does. It does so a
/// moment earlier, since what it was told is rounded down; which bound that was it cannot say.
#[cold]
fn named(error: BoxError, limits: &Limits) -> BoxError {
    /// What a timer is exact to.
    const TICK: Duration = Duration::from_millis(1);
    let Some((end, bound @ Bound::Deadline, limit)) = limits.end() else {
        return error;
    };
    let Some(failure) = Failure::of(&*error) else {
        return error;
    };
    let timed_out = failure.outcome().reason() == Some(Reason::TimedOut);
    if !timed_out || end.saturating_duration_since(Instant::now()) > TICK {
        return error;
    }
    let phase = if failure.delivery().proves_not_applied() {
        Phase::Connecting
    } else {
        Phase::AwaitingHead
    };
    let elapsed = Elapsed::new(bound, limit, phase);
    Failure::new(failure.outcome(), failure.delivery(), elapsed)
        .with_proven_by(failure.proven_by())
        .into()
}

/// What becomes of an attempt for which no time is left.
fn not_begun() -> Failure {
    let elapsed = Elapsed::new(Bound::Deadline, Duration::ZERO, Phase::Queued);
    Failure::not_sent(Reason::LocalLimit, elapsed)
}

impl<F> fmt::Debug for TimeoutFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutFuture")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
