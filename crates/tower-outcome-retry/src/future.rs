//! The response future of Retry.

use std::{
    fmt,
    future::Future,
    mem::take,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response, response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_outcome_core::{
    Attempt, BoxError, CallReport, Classify, Decision, NotReady, NotRetried, Outcome, Replay,
    Verdict,
    peek::{Inspect, Peek, PeekBody},
};
use tower_service::Service;

use crate::course::{Course, LastResult, Output, Step, Trail, Waiting};

pin_project! {
    /// The response future of [`Retry`](crate::Retry).
    ///
    /// Dropping it drops the attempt that is under way or the wait before the next one, and gives
    /// back what it took from the budget.
    // `F` is the future of `S`. Spelt `S::Future`, it would have to be looked up whenever somebody
    // asks whether an async block that holds this future is `Send`, and the compiler forgets
    // lifetimes there: a body with a `dyn` inside would fail the look-up.
    pub struct ResponseFuture<F, S, B, C, RB>
    where
        C: Classify,
    {
        #[pin]
        state: State<F, RB>,
        course: Course<S, B, C>,
    }
}

pin_project! {
    // All but the hot state are boxed, so that the future stays small.
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<F, RB> {
        // The first attempt is under way.
        Sending { #[pin] future: F },
        // A later one is.
        Resending { #[pin] future: F, trail: Box<Trail> },
        // Its response is here, and the classifier wants to see the body.
        Peeking { peeking: Box<Peeking<RB>> },
        // Waiting before the next attempt, then making the inner service ready for it. Nothing of
        // the inner service is held during the wait.
        Waiting { waiting: Box<Waiting<RB>> },
        // The stack cannot work, and nothing is sent.
        Refused { error: Option<BoxError> },
        Done,
    }
}

/// A response whose body is being looked at.
struct Peeking<RB> {
    trail: Trail,
    inspect: Inspect<RB>,
}

/// What an attempt came to.
enum Heard<RB> {
    Response(response::Parts, RB, Verdict),
    Error(BoxError),
}

// === impl ResponseFuture ===

impl<F, S, B, C, RB> ResponseFuture<F, S, B, C, RB>
where
    C: Classify,
{
    pub(crate) fn new(future: F, course: Course<S, B, C>) -> Self {
        Self {
            state: State::Sending { future },
            course,
        }
    }

    pub(crate) fn refused(error: BoxError, course: Course<S, B, C>) -> Self {
        Self {
            state: State::Refused { error: Some(error) },
            course,
        }
    }
}

impl<F, S, B, C, RB> Future for ResponseFuture<F, S, B, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F>,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Output = Output<RB>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        let result = match this.state.project() {
            StateProj::Sending { future } => ready!(future.poll(cx)),
            _ => return self.drive(cx, None),
        };
        let response = match result {
            Ok(response) => response,
            Err(error) => return self.drive(cx, Some(Heard::Error(error.into()))),
        };
        let (head, body) = response.into_parts();
        this.course.stamped.answered();
        let course = &*this.course;
        let classifier = &course.config.classifier;
        let verdict = classifier.response(&course.call, Attempt::FIRST, &head);
        let Verdict::Decided(Decision {
            outcome: Outcome::Success,
            ..
        }) = verdict
        else {
            return self.drive(cx, Some(Heard::Response(head, body, verdict)));
        };
        // ## Sending => Done, for nearly every call. Nothing was kept that has to be given back.
        let if_broken = course.succeed();
        Poll::Ready(Ok(Response::from_parts(
            head,
            PeekBody::new(body).with_error_map(if_broken),
        )))
    }
}

impl<F, S, B, C, RB> ResponseFuture<F, S, B, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F>,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    /// Takes the call as far as it gets, beginning with what was heard of the attempt under way.
    ///
    /// Apart from `poll`, so that a success costs neither the stack nor the moves of all this.
    #[cold]
    fn drive(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut heard: Option<Heard<RB>>,
    ) -> Poll<Output<RB>> {
        let mut this = self.project();
        let course = this.course;
        let mut trail = Trail::default();
        loop {
            let step = match (heard.take(), this.state.as_mut().project()) {
                // ## (Sending | Resending) => (Done | Waiting)
                (Some(Heard::Error(error)), _) => {
                    let classifier = &course.config.classifier;
                    let decision = classifier.error(&course.call, trail.attempt, &*error);
                    course.conclude(take(&mut trail), LastResult::Error(error), decision)
                }
                (Some(Heard::Response(head, body, Verdict::Decided(decision))), _) => {
                    let decision = settled(&head).unwrap_or(decision);
                    let peek = Peek::new(body, course.config.drain_limit);
                    let result = LastResult::Response(head, peek);
                    course.conclude(take(&mut trail), result, decision)
                }
                // ## (Sending | Resending) => Peeking
                (Some(Heard::Response(head, body, verdict)), _) => {
                    if let Some(decision) = settled(&head) {
                        heard = Some(Heard::Response(head, body, Verdict::Decided(decision)));
                        continue;
                    }
                    let trail = take(&mut trail);
                    let inspect = Inspect::new(head, body, verdict);
                    this.state.set(State::Peeking {
                        peeking: Box::new(Peeking { trail, inspect }),
                    });
                    continue;
                }
                // Never: the first attempt is polled by `poll` itself, which comes here with its end.
                (None, StateProj::Sending { .. }) => return Poll::Pending,
                (
                    None,
                    StateProj::Resending {
                        future,
                        trail: kept,
                    },
                ) => {
                    let result = ready!(future.poll(cx));
                    trail = take(kept);
                    heard = Some(match result {
                        Ok(response) => {
                            let (head, body) = response.into_parts();
                            let classifier = &course.config.classifier;
                            let verdict = classifier.response(&course.call, trail.attempt, &head);
                            Heard::Response(head, body, verdict)
                        }
                        Err(error) => Heard::Error(error.into()),
                    });
                    continue;
                }
                // ## Peeking => (Done | Waiting)
                (None, StateProj::Peeking { peeking }) => {
                    let Peeking { trail, inspect } = &mut **peeking;
                    let classifier = &course.config.classifier;
                    let decision =
                        ready!(inspect.poll_decision(cx, classifier, &course.call, trail.attempt));
                    let StateOwned::Peeking { peeking } =
                        this.state.as_mut().project_replace(State::Done)
                    else {
                        unreachable!("it was peeking a line above");
                    };
                    let Peeking { trail, inspect } = *peeking;
                    let (head, body) = inspect.into_parts();
                    let peek = body.peek(course.config.drain_limit);
                    course.conclude(trail, LastResult::Response(head, peek), decision)
                }
                // ## Waiting => (Waiting | Resending | Done)
                (None, StateProj::Waiting { waiting }) => {
                    waiting.read_ahead(cx);
                    if waiting.poll_settled(cx).is_pending() {
                        if let Some(sleep) = &mut waiting.sleep {
                            ready!(sleep.as_mut().poll(cx));
                        }
                    }
                    waiting.sleep = None;
                    let resent = match poll_resend(cx, course, waiting) {
                        Poll::Ready(resent) => resent,
                        // The service may never become ready; the call has its limits.
                        Poll::Pending => {
                            let limit = course.limit();
                            Err(ready!(poll_overdue(cx, &mut waiting.expiry, limit)))
                        }
                    };
                    match resent {
                        Ok(future) => {
                            let trail = Box::new(take(&mut waiting.trail));
                            this.state.set(State::Resending { future, trail });
                            continue;
                        }
                        Err(why) => {
                            let StateOwned::Waiting { waiting } =
                                this.state.as_mut().project_replace(State::Done)
                            else {
                                unreachable!("it was waiting a line above");
                            };
                            let Waiting { trail, last, .. } = *waiting;
                            Step::Return(course.finish(&trail, last, Some(why)))
                        }
                    }
                }
                // ## Refused => Done
                (None, StateProj::Refused { error }) => match error.take() {
                    Some(error) => Step::Return(Err(error)),
                    None => return Poll::Pending,
                },
                // Polled after completion, which the contract of futures leaves open.
                (None, StateProj::Done) => return Poll::Pending,
            };
            match step {
                Step::Return(output) => {
                    this.state.set(State::Done);
                    return Poll::Ready(output);
                }
                // The attempt's future goes, and with it whatever it held of the inner service.
                Step::Wait(waiting) => this.state.set(State::Waiting { waiting }),
            }
        }
    }
}

/// What a layer below has found out about a response, which then has nothing for a rule to look at.
fn settled(head: &response::Parts) -> Option<Decision> {
    CallReport::of(&head.extensions).and_then(CallReport::settled)
}

/// Waits until nothing is left of the call's time, for a call that waits for something else.
fn poll_overdue(
    cx: &mut Context<'_>,
    expiry: &mut Option<Pin<Box<Sleep>>>,
    limit: Option<(Instant, NotRetried)>,
) -> Poll<NotRetried> {
    let Some((instant, why)) = limit else {
        return Poll::Pending;
    };
    let expiry = expiry.get_or_insert_with(|| Box::pin(sleep_until(instant)));
    expiry.as_mut().poll(cx).map(|()| why)
}

/// Makes the inner service ready and sends the request again, or says why not.
fn poll_resend<S, B, C, RB>(
    cx: &mut Context<'_>,
    course: &mut Course<S, B, C>,
    waiting: &mut Waiting<RB>,
) -> Poll<Result<S::Future, NotRetried>>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
{
    let spare = match &mut course.spare {
        Ok(spare) => spare,
        Err(why) => return Poll::Ready(Err(why.clone())),
    };
    if let Err(error) = ready!(spare.service.poll_ready(cx)) {
        let why = NotReady::new(error.into());
        return Poll::Ready(Err(NotRetried::NotReady(why)));
    }
    // Becoming ready may have taken its time.
    let deadline = spare.head.deadline();
    let is_over = deadline.is_some_and(|deadline| deadline.is_over(Instant::now()));
    if is_over && !waiting.settled {
        return Poll::Ready(Err(NotRetried::Deadline));
    }
    let request = spare
        .body
        .replay()
        .and_then(|body| spare.head.restore(body));
    let Some(mut request) = request else {
        return Poll::Ready(Err(NotRetried::BodyNotReplayable));
    };
    let trail = &mut waiting.trail;
    if !waiting.settled {
        let maybe_applied = !waiting.last.decision.delivery.proves_not_applied();
        trail.attempt = trail.attempt.next(maybe_applied);
        trail.reservation = waiting.reservation.take();
    }
    if trail.attempt != Attempt::FIRST {
        request.extensions_mut().insert(trail.attempt);
    }
    if let Some(context) = &course.context {
        context.begin_attempt();
    }
    Poll::Ready(Ok(spare.service.call(request)))
}

impl<F, S, B, C, RB> fmt::Debug for ResponseFuture<F, S, B, C, RB>
where
    C: Classify,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Sending { .. } | State::Resending { .. } => "sending",
            State::Peeking { .. } => "peeking",
            State::Waiting { .. } => "waiting",
            State::Refused { .. } => "refused",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .field("call", &self.course.call)
            .finish_non_exhaustive()
    }
}

// === impl Waiting ===

impl<RB> Waiting<RB>
where
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    /// Asks whether a layer below knows by now what became of the last attempt. Then nothing is sent
    /// again, and what was taken from the budget for that goes back.
    fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(settling) = &self.settling else {
            return Poll::Pending;
        };
        if !self.settled {
            ready!(settling.poll_settled(cx));
            self.settled = true;
            self.reservation = None;
            if let Some(sleep) = &self.sleep {
                let left = sleep.deadline().saturating_duration_since(Instant::now());
                self.trail.waited = self.trail.waited.saturating_sub(left);
            }
        }
        Poll::Ready(())
    }

    /// Reads the response that is about to be discarded, so that its connection can be used again.
    /// What was read is kept, in case the response is returned after all.
    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        if let LastResult::Response(_, peek) = &mut self.last.result {
            // The wait goes on either way.
            let _ = peek.poll_peek(cx);
        }
    }
}
