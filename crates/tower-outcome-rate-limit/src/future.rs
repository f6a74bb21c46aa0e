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
    Attempt, BoxError, CallContext, CallReport, Classify, Delivery, Failure, HintForm, NotRetried,
    Outcome, Phase, Reason, Repeatable, RetryAfter, Verdict,
    delivery::Proof,
    peek::{Inspect, PeekBody},
};
use tower_service::Service;

use crate::{
    Acquire, Refused,
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
        state: State<F, RB>,
        unsent: Option<Unsent<S, B>>,
        leave: Leave,
        wider: Vec<Acquire>,
        call: C::Call,
        context: Option<CallContext>,
        notes: Option<Box<Notes>>,
        config: Arc<Config<C>>,
    }
}

pin_project! {
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<F, RB> {
        // Waiting for a budget: the narrowest first, then each wider one. Nothing of the inner
        // service is held meanwhile.
        Acquiring { acquire: Option<Acquire> },
        // Every budget has let it through; the inner service is made ready.
        Readying,
        // It has been sent.
        Sending { #[pin] future: F },
        // The head is here, and the classifier wants to see the body.
        Inspecting { inspect: Box<Inspect<RB>> },
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
    pub(crate) fn new(
        first: Option<Acquire>,
        wider: Vec<Acquire>,
        unsent: Unsent<S, B>,
        call: C::Call,
        context: Option<CallContext>,
        config: Arc<Config<C>>,
    ) -> Self {
        Self {
            state: State::Acquiring { acquire: first },
            unsent: Some(unsent),
            leave: Leave::default(),
            wider,
            call,
            context,
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
        loop {
            match this.state.as_mut().project() {
                // ## Acquiring => (Acquiring | Readying | Done)
                StateProj::Acquiring { acquire } => {
                    if let Some(acquire) = acquire {
                        let Poll::Ready(result) = Pin::new(acquire).poll(cx) else {
                            if let Some(context) = this.context {
                                context.enter(Phase::Queued);
                            }
                            return Poll::Pending;
                        };
                        match result {
                            Ok(permit) => this.leave.add(permit),
                            Err(refused) => {
                                this.leave.refund();
                                this.state.set(State::Done);
                                return Poll::Ready(Err(give_up(refused)));
                            }
                        }
                    }
                    let next = this.wider.pop();
                    if next.is_some() {
                        this.state.set(State::Acquiring { acquire: next });
                    } else {
                        this.state.set(State::Readying);
                    }
                }
                // ## Readying => (Sending | Done)
                StateProj::Readying => {
                    let Some(unsent) = this.unsent.as_mut() else {
                        return Poll::Pending;
                    };
                    if let Err(error) = ready!(unsent.service.poll_ready(cx)) {
                        this.leave.refund();
                        this.state.set(State::Done);
                        return Poll::Ready(Err(error.into()));
                    }
                    let Some(Unsent {
                        mut service,
                        head,
                        body,
                    }) = this.unsent.take()
                    else {
                        return Poll::Pending;
                    };
                    if this.config.learns {
                        *this.notes = Some(Notes::take(this.leave));
                    }
                    this.leave.send();
                    let future = service.call(Request::from_parts(head, body));
                    this.state.set(State::Sending { future });
                }
                // ## Sending => (Inspecting | Done)
                StateProj::Sending { future } => {
                    let config = &**this.config;
                    let response = match ready!(future.poll(cx)) {
                        Ok(response) => response,
                        Err(error) => {
                            let error = error.into();
                            this.state.set(State::Done);
                            conclude(config, this.call, this.leave, &*error);
                            return Poll::Ready(Err(error));
                        }
                    };
                    let (head, body) = response.into_parts();
                    if let Some(notes) = this.notes {
                        feedback::learn(config, this.leave, notes, &head);
                    }
                    this.leave.respond();
                    if !config.closes_gate {
                        this.state.set(State::Done);
                        return Poll::Ready(Ok(Response::from_parts(head, PeekBody::new(body))));
                    }
                    match config.classifier.response(this.call, Attempt::FIRST, &head) {
                        Verdict::Decided(decision) => {
                            feedback::heed(config, this.leave, &head, decision);
                            this.state.set(State::Done);
                            let body = PeekBody::new(body);
                            return Poll::Ready(Ok(Response::from_parts(head, body)));
                        }
                        verdict => {
                            let inspect = Box::new(Inspect::new(head, body, verdict));
                            this.state.set(State::Inspecting { inspect });
                        }
                    }
                }
                // ## Inspecting => Done
                StateProj::Inspecting { inspect } => {
                    let config = &**this.config;
                    let decision = ready!(inspect.poll_decision(
                        cx,
                        &config.classifier,
                        this.call,
                        Attempt::FIRST
                    ));
                    let StateOwned::Inspecting { inspect } =
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
            State::Acquiring { .. } => "acquiring",
            State::Readying => "readying",
            State::Sending { .. } => "sending",
            State::Inspecting { .. } => "inspecting",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
