//! The response future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_outcome_core::{BoxError, CallContext, Deadline, Failure, Hold, Phase, Reason, Stage};
use tower_service::Service;

use super::{
    ConnectionLimitBody,
    slots::{Queue, Slot},
};
use crate::{Bound, Elapsed, timer::poll_due};

pin_project! {
    /// The response future of [`ConnectionLimit`](crate::ConnectionLimit).
    ///
    /// Dropping it gives back the slot, or the place in the queue.
    // `F` is the future of `S`; see the same at Retry for why it is not spelt `S::Future`.
    pub struct ConnectionLimitFuture<F, S, B> {
        #[pin]
        state: State<F, S, B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, S, B> {
        // Waiting for a slot, then making the inner service ready.
        Waiting { waiting: Option<Box<Waiting<S, B>>> },
        // The request is handed down.
        Sending { #[pin] future: F, slot: Option<Slot> },
        // The stack cannot work, and nothing is sent.
        Refused { error: Option<BoxError> },
        Done,
    }
}

/// What is held of a request that is not handed down yet.
struct Waiting<S, B> {
    request: Request<B>,
    service: S,
    queue: Queue,
    slot: Option<Slot>,
    end: Option<(Instant, Bound, Duration)>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The promise to a deadline above that nothing was sent.
    hold: Option<Hold>,
}

/// The name under which the call's context knows this layer.
const NAME: &str = "connection_limit";

// === impl ConnectionLimitFuture ===

impl<F, S, B> ConnectionLimitFuture<F, S, B> {
    pub(super) fn new(
        service: S,
        request: Request<B>,
        queue: Queue,
        acquire: Option<Duration>,
    ) -> Self {
        let now = Instant::now();
        let acquire =
            acquire.and_then(|limit| Some((now.checked_add(limit)?, Bound::Acquire, limit)));
        let deadline = Deadline::of(request.extensions()).map(|deadline| {
            let limit = deadline.remaining(now);
            (deadline.instant(), Bound::Deadline, limit)
        });
        let end = [acquire, deadline]
            .into_iter()
            .flatten()
            .min_by_key(|(at, ..)| *at);
        if let Err(error) = Stage::ConnectionLimit.check(request.extensions()) {
            return Self {
                state: State::Refused { error: Some(error) },
            };
        }
        let context = CallContext::of(request.extensions());
        let hold = context.map(|context| context.hold(NAME, Phase::Queued));
        Self {
            state: State::Waiting {
                waiting: Some(Box::new(Waiting {
                    request,
                    service,
                    queue,
                    slot: None,
                    end,
                    timer: None,
                    hold,
                })),
            },
        }
    }
}

impl<F, S, B, RB> Future for ConnectionLimitFuture<F, S, B>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F>,
    S::Error: Into<BoxError>,
    RB: Body,
{
    type Output = Result<Response<ConnectionLimitBody<RB>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                // ## Waiting => (Waiting | Sending | Done)
                StateProj::Waiting { waiting } => {
                    let Some(mut held) = waiting.take() else {
                        return Poll::Pending;
                    };
                    let readied = match held.poll_ready(cx) {
                        Poll::Ready(readied) => readied,
                        Poll::Pending => {
                            *waiting = Some(held);
                            return Poll::Pending;
                        }
                    };
                    if let Err(error) = readied {
                        state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                    let Waiting {
                        request,
                        mut service,
                        slot,
                        hold,
                        ..
                    } = *held;
                    // Before the call, which may send the request.
                    if let Some(Err(error)) = hold.map(Hold::let_go) {
                        state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                    let future = service.call(request);
                    state.set(State::Sending { future, slot });
                }
                // ## Sending => Done
                StateProj::Sending { future, slot } => {
                    let result = ready!(future.poll(cx));
                    let slot = slot.take();
                    state.set(State::Done);
                    return Poll::Ready(match result {
                        Ok(response) => {
                            Ok(response.map(|body| ConnectionLimitBody::new(body, slot)))
                        }
                        Err(error) => Err(error.into()),
                    });
                }
                // ## Refused => Done
                StateProj::Refused { error } => {
                    let Some(error) = error.take() else {
                        return Poll::Pending;
                    };
                    state.set(State::Done);
                    return Poll::Ready(Err(error));
                }
                // Polled after completion, which the contract of futures leaves open.
                StateProj::Done => return Poll::Pending,
            }
        }
    }
}

// === impl Waiting ===

impl<S, B> Waiting<S, B> {
    /// Waits for the slot and for the inner service; nothing is sent before both are there.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>
    where
        S: Service<Request<B>>,
        S::Error: Into<BoxError>,
    {
        if self.slot.is_none() {
            if let Poll::Ready(slot) = self.queue.poll(cx) {
                self.slot = Some(slot);
            }
        }
        if self.slot.is_some() {
            if let Poll::Ready(readied) = self.service.poll_ready(cx) {
                return Poll::Ready(match (readied, self.overdue()) {
                    (Err(error), _) => Err(error.into()),
                    (Ok(()), Some(failure)) => Err(failure.into()),
                    (Ok(()), None) => Ok(()),
                });
            }
        }
        let Some((end, bound, limit)) = self.end else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        ready!(poll_due(timer.as_mut(), cx));
        let elapsed = Elapsed::new(bound, limit, Phase::Queued);
        let failure = Failure::not_sent(Reason::LocalLimit, elapsed);
        Poll::Ready(Err(failure.into()))
    }

    /// What becomes of a request whose call has no time left, although its turn has come.
    fn overdue(&self) -> Option<Failure> {
        let deadline = Deadline::of(self.request.extensions())?;
        if !deadline.is_over(Instant::now()) {
            return None;
        }
        let limit = self.end.map_or(Duration::ZERO, |(.., limit)| limit);
        let elapsed = Elapsed::new(Bound::Deadline, limit, Phase::Queued);
        Some(Failure::not_sent(Reason::LocalLimit, elapsed))
    }
}

impl<F, S, B> fmt::Debug for ConnectionLimitFuture<F, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Waiting { .. } => "waiting",
            State::Sending { .. } => "sending",
            State::Refused { .. } => "refused",
            State::Done => "done",
        };
        f.debug_struct("ConnectionLimitFuture")
            .field("state", &state)
            .finish()
    }
}
