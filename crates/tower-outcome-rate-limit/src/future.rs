//! The response future.

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response, request};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_outcome_core::{
    Attempt, BoxError, CallContext, CallReport, Classify, Delivery, Failure, HintForm, Hold,
    NotRetried, Outcome, Reason, Repeatable, Resent, RetryAfter, Stamped, Verdict,
    delivery::Proof,
    peek::{Inspect, PeekBody},
};
use tower_service::Service;

use crate::{
    Acquire, Budget, Refused,
    feedback::{self, Notes},
    layer::Config,
    leave::Leave,
};

pin_project! {
    /// The response future of [`RateLimit`](crate::RateLimit).
    ///
    /// Dropping it leaves the queue, or gives back what was granted, as long as nothing was sent.
    /// Once the inner service has been called, the request counts.
    // `F` is the future of `S`; see the response future of Retry for why it is a parameter.
    pub struct ResponseFuture<F, S, B, C, RB>
    where
        C: Classify,
    {
        #[pin]
        state: State<F, Unsent<S, B>, C::Call, RB>,
        // A deadline above that strikes meanwhile knows that nothing was sent.
        hold: Option<Hold>,
        stamped: Stamped,
        // The attempts of the call when it was sent: there are more of them in the end where a layer below
        // has sent it again.
        before: Option<(CallContext, u32)>,
        leave: Leave,
        notes: Option<Box<Notes>>,
        config: Arc<Config<C>>,
    }
}

pin_project! {
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<F, U, T, RB> {
        // So many of the budgets have let it through, the narrowest first. When all have, the inner
        // service is made ready. The request lies where its future will: what layers move is not twice as
        // large.
        Asking { unsent: Option<U>, passed: usize },
        // Waiting for the next one. Nothing of the inner service is held meanwhile.
        Waiting { unsent: Option<U>, acquire: Box<Acquire>, passed: usize },
        // The stack cannot work, and nothing is sent.
        Refused { error: Option<BoxError> },
        // It has been sent.
        Sending { #[pin] future: F, call: T },
        // The head is here, and the classifier wants to see the body.
        Inspecting { inspect: Box<Inspect<RB>>, call: T },
        Done,
    }
}

/// A request that has not been sent, and the service to send it with.
pub(crate) struct Unsent<S, B> {
    pub(crate) service: S,
    pub(crate) head: request::Parts,
    pub(crate) body: B,
}

// === impl ResponseFuture ===

impl<F, S, B, C, RB> ResponseFuture<F, S, B, C, RB>
where
    C: Classify,
{
    #[inline]
    pub(crate) fn new(
        unsent: Unsent<S, B>,
        hold: Option<Hold>,
        stamped: Stamped,
        config: Arc<Config<C>>,
    ) -> Self {
        Self {
            state: State::Asking {
                unsent: Some(unsent),
                passed: 0,
            },
            hold,
            stamped,
            before: None,
            leave: Leave::default(),
            notes: None,
            config,
        }
    }

    #[cold]
    pub(crate) fn refused(error: BoxError, config: Arc<Config<C>>) -> Self {
        Self {
            state: State::Refused { error: Some(error) },
            hold: None,
            stamped: Stamped::default(),
            before: None,
            leave: Leave::default(),
            notes: None,
            config,
        }
    }
}

impl<F, S, B, C, RB> Future for ResponseFuture<F, S, B, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F>,
    S::Error: Into<BoxError>,
    C: Classify,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Output = Result<Response<PeekBody<RB>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let config = &**this.config;
        loop {
            match this.state.as_mut().project() {
                // ## Asking => (Waiting | Sending | Done)
                StateProj::Asking {
                    unsent: kept,
                    passed,
                } => {
                    let Some(unsent) = kept.as_mut() else {
                        return Poll::Pending;
                    };
                    if let Some(acquire) = ask(config, &unsent.head, passed, this.leave) {
                        let waiting = State::Waiting {
                            unsent: kept.take(),
                            acquire: Box::new(acquire),
                            passed: *passed,
                        };
                        this.state.set(waiting);
                        continue;
                    }
                    if let Err(error) = ready!(unsent.service.poll_ready(cx)) {
                        this.leave.refund();
                        this.state.set(State::Done);
                        return Poll::Ready(Err(error.into()));
                    }
                    let Some(Unsent {
                        mut service,
                        head,
                        body,
                    }) = kept.take()
                    else {
                        return Poll::Pending;
                    };
                    if config.learns || this.leave.budgets().any(Budget::is_aligned) {
                        *this.notes = Some(Notes::take(this.leave));
                    }
                    if let Some(hold) = this.hold.take() {
                        let context = hold.context().clone();
                        if let Err(error) = hold.let_go() {
                            this.leave.refund();
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                        let attempts = context.attempts();
                        *this.before = Some((context, attempts));
                    }
                    this.leave.send();
                    let call = config.classifier.glance(&head);
                    let future = service.call(Request::from_parts(head, body));
                    this.state.set(State::Sending { future, call });
                }
                // ## Waiting => (Asking | Done)
                StateProj::Waiting {
                    unsent,
                    acquire,
                    passed,
                } => match ready!(Pin::new(&mut **acquire).poll(cx)) {
                    Ok(permit) => {
                        this.leave.add(permit);
                        let (unsent, passed) = (unsent.take(), *passed + 1);
                        this.state.set(State::Asking { unsent, passed });
                    }
                    Err(refused) => {
                        this.leave.refund();
                        this.state.set(State::Done);
                        return Poll::Ready(Err(give_up(refused)));
                    }
                },
                // ## Refused => Done
                StateProj::Refused { error } => {
                    let Some(error) = error.take() else {
                        return Poll::Pending;
                    };
                    this.state.set(State::Done);
                    return Poll::Ready(Err(error));
                }
                // ## Sending => (Inspecting | Done)
                StateProj::Sending { future, call } => {
                    let result = ready!(future.poll(cx));
                    let response = match result {
                        Ok(response) => response,
                        Err(error) => {
                            let error = error.into();
                            let resent = this.before.take().map_or(0, |(context, attempts)| {
                                context.attempts().saturating_sub(attempts)
                            });
                            if resent > 0 {
                                this.leave.charge(resent);
                            }
                            conclude(config, call, this.leave, &*error);
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                    };
                    this.stamped.answered();
                    let (head, body) = response.into_parts();
                    let resent = Resent::times(&head.extensions);
                    if resent > 0 {
                        // Before what the venue says it has counted is looked at.
                        this.leave.charge(resent);
                    }
                    if let Some(notes) = this.notes {
                        feedback::learn(config, this.leave, notes, &head);
                    }
                    this.leave.respond();
                    if config.closes_gate {
                        match config.classifier.response(call, Attempt::FIRST, &head) {
                            Verdict::Decided(decision) => {
                                feedback::heed(config, this.leave, &head, decision);
                            }
                            verdict => {
                                let call = call.clone();
                                let inspect = Box::new(Inspect::new(head, body, verdict));
                                this.state.set(State::Inspecting { inspect, call });
                                continue;
                            }
                        }
                    }
                    // Nothing is left that has to be given back: what remains of it is dropped with this.
                    return Poll::Ready(Ok(Response::from_parts(head, PeekBody::new(body))));
                }
                // ## Inspecting => Done
                StateProj::Inspecting { inspect, call } => {
                    let decision =
                        ready!(inspect.poll_decision(cx, &config.classifier, call, Attempt::FIRST));
                    let StateOwned::Inspecting { inspect, .. } =
                        this.state.as_mut().project_replace(State::Done)
                    else {
                        unreachable!("it was inspecting a line above");
                    };
                    let (head, body) = inspect.into_parts();
                    feedback::heed(config, this.leave, &head, decision);
                    return Poll::Ready(Ok(Response::from_parts(head, body)));
                }
                // Polled after completion, which the contract of futures leaves open.
                StateProj::Done => return Poll::Pending,
            }
        }
    }
}

/// Asks the budgets that have not let the request through yet, and says which one it has to wait
/// for.
#[inline]
fn ask<C>(
    config: &Config<C>,
    head: &request::Parts,
    passed: &mut usize,
    leave: &mut Leave,
) -> Option<Acquire> {
    while let Some(scope) = config.scopes.get(*passed) {
        let budget = scope.budget(head);
        let ticket = scope.ticket(head);
        match budget.pass(&ticket) {
            Some(permit) => leave.add(permit),
            None => return Some(budget.acquire(ticket)),
        }
        *passed += 1;
    }
    None
}

/// The inner service has failed: what was granted is given back if nothing was sent.
#[cold]
fn conclude<C: Classify>(
    config: &Config<C>,
    call: &C::Call,
    leave: &mut Leave,
    error: &(dyn Error + 'static),
) {
    let delivery = match Failure::of(error) {
        Some(failure) => failure.delivery(),
        None => Proof::of(error).delivery,
    };
    match delivery {
        Delivery::NotSent => leave.refund(),
        Delivery::Refused | Delivery::Answered => leave.respond(),
        // It may still arrive.
        _ => leave.give_up(),
    }
    if config.closes_gate {
        let decision = config.classifier.error(call, Attempt::FIRST, error);
        feedback::heed_error(leave, decision);
    }
}

/// What the caller gets who was not let through. A Retry above does not try again: it would only
/// stand in line once more, and at the end.
#[cold]
fn give_up(refused: Refused) -> BoxError {
    let reason = Reason::LocalLimit;
    let outcome = if refused.is_final() {
        Outcome::Permanent { reason }
    } else {
        let after = refused.retry_after(Instant::now());
        Outcome::Retryable {
            reason,
            after: after.map(|delay| RetryAfter::new(delay, HintForm::Custom)),
        }
    };
    let report = CallReport::new(outcome, Delivery::NotSent, Repeatable::No)
        .with_attempts(0, Duration::ZERO)
        .with_after(outcome.after())
        .with_not_retried(Some(NotRetried::LocalLimit));
    Failure::new(outcome, Delivery::NotSent, refused)
        .with_report(report)
        .into()
}

impl<F, S, B, C, RB> fmt::Debug for ResponseFuture<F, S, B, C, RB>
where
    C: Classify,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Asking { .. } => "asking",
            State::Waiting { .. } => "waiting",
            State::Sending { .. } => "sending",
            State::Inspecting { .. } => "inspecting",
            State::Refused { .. } => "refused",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
