//! The response future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_outcome_core::{
    Attempt, BoxError, Classify, Deadline, Decision, NotRetried, Replay, Verdict,
    peek::{Inspect, PeekBody},
};
use tower_service::Service;

use crate::{
    UnavailableKind,
    course::{self, Course, Output, Trail},
    flight::Want,
    held::Held,
    obtain::Obtain,
};

mod step;

use self::step::{
    Inspecting, Next, Renewing, Returning, judged, poll_overdue, poll_resend, ready_to_send,
};

pin_project! {
    /// The response future of [`AuthRefresh`](crate::AuthRefresh).
    ///
    /// Dropping it drops what is under way of this call. A refresh that it waited for goes on, for the
    /// others and the next.
    // `F` is the future of `S`; see the response future of Retry for why it is a parameter.
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
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<F, RB> {
        // Nothing is sent: the request is part of a refresh, and would wait for itself, or the stack cannot
        // work.
        Refused { error: Option<BoxError> },
        // Waiting for a credential. Nothing of the inner service is held meanwhile.
        Obtaining { obtain: Obtain },
        // Making the inner service ready, which may have taken its time already.
        Readying { waited: bool },
        // It has been sent.
        Sending { #[pin] future: F },
        // It has been sent again.
        Resending { #[pin] future: F, trail: Box<Trail> },
        // The head is here, and the classifier wants to see the body.
        Inspecting { inspecting: Box<Inspecting<RB>> },
        // The credential was rejected: waiting for another one.
        Renewing { renewing: Box<Renewing<RB>> },
        // There is another one: making the inner service ready once more.
        Returning { returning: Box<Returning<RB>> },
        Done,
    }
}

/// How a call begins.
pub(crate) enum Start {
    /// Without a credential.
    Pass,
    /// With this one.
    Attach(Arc<Held>),
    /// By waiting for one.
    Obtain(Obtain),
    /// Not at all.
    Refuse(BoxError),
}

// === impl ResponseFuture ===

impl<F, S, B, C, RB> ResponseFuture<F, S, B, C, RB>
where
    C: Classify,
{
    #[inline]
    pub(crate) fn new(start: Start, mut course: Course<S, B, C>) -> Self {
        let state = match start {
            Start::Pass => State::Readying { waited: false },
            Start::Attach(held) => {
                course.held = Some(held);
                State::Readying { waited: false }
            }
            Start::Obtain(obtain) => State::Obtaining { obtain },
            Start::Refuse(error) => State::Refused { error: Some(error) },
        };
        Self { state, course }
    }
}

impl<F, S, B, C, RB> Future for ResponseFuture<F, S, B, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F> + Clone,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Output = Output<RB>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        // ## Readying => Sending => Done, for nearly every call.
        if let StateProj::Readying { waited: false } = this.state.as_mut().project() {
            match ready_to_send(cx, this.course) {
                Poll::Ready(Ok(future)) => this.state.set(State::Sending { future }),
                Poll::Ready(Err(error)) => {
                    this.state.set(State::Done);
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => {
                    this.state.set(State::Readying { waited: true });
                    return Poll::Pending;
                }
            }
        }
        let StateProj::Sending { future } = this.state.as_mut().project() else {
            return self.drive(cx);
        };
        let response = match ready!(future.poll(cx)) {
            Ok(response) => response,
            Err(error) => {
                this.state.set(State::Done);
                return Poll::Ready(Err(error.into()));
            }
        };
        let (head, body) = response.into_parts();
        let course = this.course;
        course.stamped.answered();
        let (Some(call), Some(held)) = (&course.call, &course.held) else {
            // It passed without a credential.
            this.state.set(State::Done);
            return Poll::Ready(Ok(Response::from_parts(head, PeekBody::new(body))));
        };
        let classifier = &course.config.classifier;
        match classifier.response(call, Attempt::FIRST, &head) {
            Verdict::Decided(decision) if !Course::<S, B, C>::is_rejection(decision) => {
                held.accept();
                course.settle();
                this.state.set(State::Done);
                return Poll::Ready(Ok(Response::from_parts(head, PeekBody::new(body))));
            }
            // ## Sending => Renewing
            Verdict::Decided(decision) => {
                match judged(course, head, PeekBody::new(body), decision) {
                    Next::Return(output) => {
                        this.state.set(State::Done);
                        return Poll::Ready(output);
                    }
                    Next::Renew(renewing) => this.state.set(State::Renewing { renewing }),
                }
            }
            // ## Sending => Inspecting
            verdict => {
                let inspect = Inspect::new(head, body, verdict);
                let trail = None;
                let inspecting = Box::new(Inspecting { inspect, trail });
                this.state.set(State::Inspecting { inspecting });
            }
        }
        self.drive(cx)
    }
}

impl<F, S, B, C, RB> ResponseFuture<F, S, B, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F> + Clone,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    /// Takes the call as far as it gets, where there is anything to wait for.
    ///
    /// Apart from `poll`, so that a success costs neither the stack nor the moves of all this.
    #[cold]
    fn drive(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output<RB>> {
        let mut this = self.as_mut().project();
        let course = this.course;
        loop {
            match this.state.as_mut().project() {
                // ## Refused => Done
                StateProj::Refused { error } => {
                    let Some(error) = error.take() else {
                        return Poll::Pending;
                    };
                    this.state.set(State::Done);
                    return Poll::Ready(Err(error));
                }
                // ## Obtaining => (Readying | Done)
                StateProj::Obtaining { obtain } => match ready!(obtain.as_mut().poll(cx)) {
                    Ok(held) => {
                        let unsent = course.unsent.as_ref();
                        let is_own = unsent.is_some_and(|unsent| held.is_in(&unsent.head.headers));
                        // A request that brings a credential of its own passes with that.
                        course.held = (!is_own).then_some(held);
                        this.state.set(State::Readying { waited: false });
                    }
                    Err(refusal) => {
                        this.state.set(State::Done);
                        return Poll::Ready(Err(course::not_sent(refusal)));
                    }
                },
                // ## Readying => (Sending | Obtaining | Done)
                StateProj::Readying { waited } => {
                    if *waited && course.held.is_some() {
                        // What there was when the wait began may be over.
                        if let Err(error) = ready!(course.service.poll_ready(cx)) {
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error.into()));
                        }
                        let head = course.unsent.as_ref().map(|unsent| &unsent.head);
                        let deadline = head.and_then(|head| Deadline::of(&head.extensions));
                        if deadline.is_some_and(|deadline| deadline.is_over(Instant::now())) {
                            let refusal = course.shared().too_late();
                            this.state.set(State::Done);
                            return Poll::Ready(Err(course::not_sent(refusal)));
                        }
                        match course.shared().servable() {
                            Some(held) => course.held = Some(held),
                            None => {
                                let obtain = course.shared().obtain(Want::Any, deadline);
                                course.held = None;
                                // The ready one is let go of, so that others can have its place.
                                course.service = course.service.clone();
                                this.state.set(State::Obtaining { obtain });
                                continue;
                            }
                        }
                    }
                    match ready_to_send(cx, course) {
                        Poll::Ready(Ok(future)) => this.state.set(State::Sending { future }),
                        Poll::Ready(Err(error)) => {
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                        Poll::Pending => {
                            *waited = true;
                            return Poll::Pending;
                        }
                    }
                }
                // Its answer is looked at where nearly every call ends.
                StateProj::Sending { .. } => return self.poll(cx),
                // ## Resending => (Inspecting | Done)
                StateProj::Resending { future, trail } => {
                    let result = ready!(future.poll(cx));
                    let trail = trail.clone();
                    let response = match result {
                        Ok(response) => response,
                        Err(error) => {
                            this.state.set(State::Done);
                            return Poll::Ready(Err(course.fail(&trail, error.into())));
                        }
                    };
                    let (mut head, body) = response.into_parts();
                    let verdict = course.call.as_ref().map(|call| {
                        let classifier = &course.config.classifier;
                        classifier.response(call, trail.attempt(), &head)
                    });
                    match verdict.unwrap_or(Verdict::Decided(Decision::SUCCESS)) {
                        Verdict::Decided(decision) => {
                            course.conclude(&trail, decision, &mut head);
                            this.state.set(State::Done);
                            let response = Response::from_parts(head, PeekBody::new(body));
                            return Poll::Ready(Ok(response));
                        }
                        verdict => {
                            let inspect = Inspect::new(head, body, verdict);
                            let trail = Some(trail);
                            let inspecting = Box::new(Inspecting { inspect, trail });
                            this.state.set(State::Inspecting { inspecting });
                        }
                    }
                }
                // ## Inspecting => (Renewing | Done)
                StateProj::Inspecting { inspecting } => {
                    let Inspecting { inspect, trail } = &mut **inspecting;
                    let attempt = trail
                        .as_ref()
                        .map_or(Attempt::FIRST, |trail| trail.attempt());
                    let decision = match &course.call {
                        Some(call) => {
                            let classifier = &course.config.classifier;
                            ready!(inspect.poll_decision(cx, classifier, call, attempt))
                        }
                        None => Decision::SUCCESS,
                    };
                    let StateOwned::Inspecting { inspecting } =
                        this.state.as_mut().project_replace(State::Done)
                    else {
                        unreachable!("it was inspecting a line above");
                    };
                    let Inspecting { inspect, trail } = *inspecting;
                    let (mut head, body) = inspect.into_parts();
                    if let Some(trail) = trail {
                        course.conclude(&trail, decision, &mut head);
                        return Poll::Ready(Ok(Response::from_parts(head, body)));
                    }
                    match judged(course, head, body, decision) {
                        Next::Return(output) => return Poll::Ready(output),
                        Next::Renew(renewing) => this.state.set(State::Renewing { renewing }),
                    }
                }
                // ## Renewing => (Returning | Done)
                StateProj::Renewing { renewing } => {
                    let Renewing {
                        obtain, rejection, ..
                    } = &mut **renewing;
                    // The wait goes on either way.
                    let _ = rejection.peek.poll_peek(cx);
                    let obtained = ready!(obtain.as_mut().poll(cx));
                    let StateOwned::Renewing { renewing } =
                        this.state.as_mut().project_replace(State::Done)
                    else {
                        unreachable!("it was renewing a line above");
                    };
                    let Renewing {
                        rejection,
                        mut trail,
                        deadline,
                        began,
                        ..
                    } = *renewing;
                    trail.waited = began.elapsed();
                    match obtained {
                        // The same once more would be rejected once more.
                        Ok(held) if course.is_the_same(&held) => {
                            course.shared().lock().doubt(held.generation);
                            let report = Course::<S, B, C>::rejected_report(
                                course.repeatable(),
                                NotRetried::Outcome,
                            );
                            let output = Course::<S, B, C>::give_back(rejection, Some(report));
                            return Poll::Ready(output);
                        }
                        Ok(held) => {
                            let returning = Box::new(Returning {
                                held,
                                rejection,
                                trail,
                                deadline,
                                expiry: None,
                            });
                            this.state.set(State::Returning { returning });
                        }
                        // Nothing can be had soon: the rejection is all there is to say.
                        Err(refusal) if refusal.why.kind() == UnavailableKind::Paused => {
                            let report = Course::<S, B, C>::rejected_report(
                                course.repeatable(),
                                NotRetried::Outcome,
                            );
                            let output = Course::<S, B, C>::give_back(rejection, Some(report));
                            return Poll::Ready(output);
                        }
                        Err(refusal) => {
                            let error =
                                Course::<S, B, C>::not_renewed(refusal, course.repeatable());
                            return Poll::Ready(Err(error));
                        }
                    }
                }
                // ## Returning => (Resending | Done)
                StateProj::Returning { returning } => {
                    let resent = match poll_resend(cx, course, returning) {
                        Poll::Ready(resent) => resent,
                        // The service may never become ready; the call has its deadline.
                        Poll::Pending => {
                            ready!(poll_overdue(cx, returning));
                            Err(NotRetried::Deadline)
                        }
                    };
                    let StateOwned::Returning { returning } =
                        this.state.as_mut().project_replace(State::Done)
                    else {
                        unreachable!("it was returning a line above");
                    };
                    let Returning {
                        rejection, trail, ..
                    } = *returning;
                    match resent {
                        Ok(Ok(future)) => {
                            let trail = Box::new(trail);
                            this.state.set(State::Resending { future, trail });
                        }
                        Ok(Err(error)) => return Poll::Ready(Err(error)),
                        Err(why) => {
                            let report =
                                Course::<S, B, C>::rejected_report(course.repeatable(), why);
                            let output = Course::<S, B, C>::give_back(rejection, Some(report));
                            return Poll::Ready(output);
                        }
                    }
                }
                // Polled after completion, which the contract of futures leaves open.
                StateProj::Done => return Poll::Pending,
            }
        }
    }
}

impl<F, S, B, C, RB> fmt::Debug for ResponseFuture<F, S, B, C, RB>
where
    C: Classify,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Refused { .. } => "refused",
            State::Obtaining { .. } => "obtaining",
            State::Readying { .. } => "readying",
            State::Sending { .. } => "sending",
            State::Resending { .. } => "resending",
            State::Inspecting { .. } => "inspecting",
            State::Renewing { .. } => "renewing",
            State::Returning { .. } => "returning",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
