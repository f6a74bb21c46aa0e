//! The response future.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response, response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_outcome_core::{
    Attempt, BoxError, Classify, Decision, Outcome, Repeatable, Stamped, Verdict,
    peek::{Inspect, Peek, PeekBody},
};
use tower_service::Service;

use crate::{
    ReconcileBody, Reconciler, Told,
    answer::{Open, Original, Output, Page, without_answer},
    config::Config,
    course::{self, Asking},
    evidence::Known,
    kept::Kept,
};

pin_project! {
    /// The response future of [`Reconcile`](crate::Reconcile).
    ///
    /// Dropping it drops the attempt or the inquiry that is under way. Nobody is asked any more, and who
    /// would have told finds nobody.
    // `F` is the future of `S`; see the response future of Retry for why it is a parameter.
    pub struct ResponseFuture<F, S, B, R, C, RB>
    where
        C: Classify,
    {
        #[pin]
        state: State<F, RB>,
        kept: Option<Kept<S, C::Call>>,
        stamped: Stamped,
        config: Arc<Config<R, C>>,
        request: PhantomData<fn(B)>,
    }
}

pin_project! {
    // All but the hot state are boxed, so that the future stays small.
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<F, RB> {
        // It has been sent.
        Sending { #[pin] future: F },
        // The head is here, and the classifier wants to see the body.
        Inspecting { inspect: Box<Inspect<RB>> },
        // Its outcome is unknown, and the server is asked.
        Asking { asked: Box<Asked<RB>> },
        // Nothing is sent: the stack cannot work, or it is known already.
        Answered { output: Option<Box<Output<RB>>> },
        Done,
    }
}

/// A request about which the server is asked.
struct Asked<RB> {
    open: Open<RB>,
    /// How long its answer may hold a connection.
    drain: Option<Pin<Box<Sleep>>>,
    asking: Asking,
}

/// How a call begins.
pub(crate) enum Start<F, S, T> {
    /// The stack cannot work.
    Refuse(BoxError),
    /// What would be sent is known to have become of already.
    Answer(Repeatable, Known),
    /// By being sent.
    Send(F, Option<Kept<S, T>>, Stamped),
}

/// What comes after an attempt.
enum Next<RB> {
    Return(Output<RB>),
    Ask(Box<Asked<RB>>),
}

// === impl ResponseFuture ===

impl<F, S, B, R, C, RB> ResponseFuture<F, S, B, R, C, RB>
where
    C: Classify,
{
    #[inline]
    pub(crate) fn new(start: Start<F, S, C::Call>, config: &Arc<Config<R, C>>) -> Self {
        let (state, kept, stamped) = match start {
            Start::Send(future, kept, stamped) => (State::Sending { future }, kept, stamped),
            Start::Refuse(error) => (answered(Err(error)), None, Stamped::default()),
            Start::Answer(repeatable, known) => {
                let output = without_answer(known, repeatable);
                (answered(output), None, Stamped::default())
            }
        };
        Self {
            state,
            kept,
            stamped,
            config: Arc::clone(config),
            request: PhantomData,
        }
    }
}

#[cold]
fn answered<F, RB>(output: Output<RB>) -> State<F, RB> {
    State::Answered {
        output: Some(Box::new(output)),
    }
}

impl<F, S, B, R, C, RB> Future for ResponseFuture<F, S, B, R, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    R: Reconciler<S, B>,
    B: 'static,
    C: Classify + Send + Sync + 'static,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Output = Output<RB>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        let StateProj::Sending { future } = this.state.as_mut().project() else {
            return self.drive(cx);
        };
        let result = match future.poll(cx) {
            Poll::Ready(result) => result,
            Poll::Pending => match &*this.kept {
                Some(Kept {
                    registration: Some(_),
                    ..
                }) => return self.told(cx),
                _ => return Poll::Pending,
            },
        };
        if result.is_ok() {
            this.stamped.answered();
        }
        let Some(kept) = &*this.kept else {
            // ## Sending => Done, for whatever cannot end unknown.
            this.state.set(State::Done);
            return Poll::Ready(match result {
                Ok(response) => Ok(response.map(|body| ReconcileBody::passed(PeekBody::new(body)))),
                Err(error) => Err(error.into()),
            });
        };
        let response = match result {
            Ok(response) => response,
            Err(error) => return self.fail(cx, error.into()),
        };
        let (head, body) = response.into_parts();
        let verdict = this
            .config
            .classifier
            .response(&kept.call, kept.attempt, &head);
        match verdict {
            // ## Sending => Done, for nearly every call.
            Verdict::Decided(decision) if decision.outcome.is_success() => {
                this.state.set(State::Done);
                *this.kept = None;
                let body = ReconcileBody::passed(PeekBody::new(body));
                Poll::Ready(Ok(Response::from_parts(head, body)))
            }
            Verdict::Decided(decision) => self.judged(cx, head, body, decision),
            // ## Sending => Inspecting
            verdict => {
                let inspect = Box::new(Inspect::new(head, body, verdict));
                this.state.set(State::Inspecting { inspect });
                self.drive(cx)
            }
        }
    }
}

impl<F, S, B, R, C, RB> ResponseFuture<F, S, B, R, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<B>, Response = Response<RB>, Future = F> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    R: Reconciler<S, B>,
    B: 'static,
    C: Classify + Send + Sync + 'static,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    /// Takes the call as far as it gets, where its first answer was not all.
    #[cold]
    fn drive(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output<RB>> {
        let mut this = self.as_mut().project();
        match this.state.as_mut().project() {
            StateProj::Inspecting { inspect } => {
                let Some(kept) = &*this.kept else {
                    return Poll::Pending;
                };
                let classifier = &this.config.classifier;
                let call = &kept.call;
                let decision = ready!(inspect.poll_decision(cx, classifier, call, kept.attempt));
                // What was read is looked at again, so this does not wait.
                let by_itself = inspect.poll_decision(cx, classifier, call, Attempt::FIRST);
                let StateOwned::Inspecting { inspect } =
                    this.state.as_mut().project_replace(State::Done)
                else {
                    unreachable!("it was inspecting a line above");
                };
                let (head, body) = inspect.into_parts();
                let page = Page::Read(body.peek(this.config.drain_limit));
                let original = Original::Response(head, page);
                let by_itself = match by_itself {
                    Poll::Ready(by_itself) => by_itself,
                    Poll::Pending => decision,
                };
                self.conclude(cx, original, decision, by_itself)
            }
            // ## Asking => Done
            StateProj::Asking { asked } => {
                // The wait goes on either way. At its end nothing is held that a question may need.
                asked.open.drain(cx);
                if let Some(drain) = &mut asked.drain {
                    if drain.as_mut().poll(cx).is_ready() {
                        asked.drain = None;
                        asked.open.let_go(false);
                    }
                }
                let ended = ready!(asked.asking.as_mut().poll(cx));
                let StateOwned::Asking { asked } = this.state.as_mut().project_replace(State::Done)
                else {
                    unreachable!("it was asking a line above");
                };
                Poll::Ready(asked.open.answer(ended))
            }
            // ## Answered => Done
            StateProj::Answered { output } => match output.take() {
                Some(output) => {
                    this.state.set(State::Done);
                    Poll::Ready(*output)
                }
                None => Poll::Pending,
            },
            // Polled after completion, which the contract of futures leaves open; and what is being sent
            // is polled by `poll` itself.
            StateProj::Sending { .. } | StateProj::Done => Poll::Pending,
        }
    }

    /// The attempt is under way: ends it as soon as somebody tells what became of the call.
    #[cold]
    fn told(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output<RB>> {
        let mut this = self.as_mut().project();
        let Some(kept) = &*this.kept else {
            return Poll::Pending;
        };
        let Some(registration) = &kept.registration else {
            return Poll::Pending;
        };
        let known = Known::from(ready!(registration.poll_take(cx)));
        kept.tell(this.config, &known);
        let output = without_answer(known, kept.repeatable(this.config));
        // What is on the wire stays there, and what is not is not sent any more.
        this.state.set(State::Done);
        *this.kept = None;
        Poll::Ready(output)
    }

    /// The attempt was answered, and the head says all.
    #[cold]
    fn judged(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        head: response::Parts,
        body: RB,
        decision: Decision,
    ) -> Poll<Output<RB>> {
        let this = self.as_mut().project();
        let classifier = &this.config.classifier;
        let by_itself = this.kept.as_ref().map(|kept| {
            match classifier.response(&kept.call, Attempt::FIRST, &head) {
                Verdict::Decided(by_itself) => by_itself,
                _ => decision,
            }
        });
        let page = Page::Read(Peek::new(body, this.config.drain_limit));
        let original = Original::Response(head, page);
        self.conclude(cx, original, decision, by_itself.unwrap_or(decision))
    }

    /// The attempt was not answered.
    #[cold]
    fn fail(mut self: Pin<&mut Self>, cx: &mut Context<'_>, error: BoxError) -> Poll<Output<RB>> {
        let this = self.as_mut().project();
        let Some(kept) = &*this.kept else {
            return Poll::Ready(Err(error));
        };
        let classifier = &this.config.classifier;
        let decision = classifier.error(&kept.call, kept.attempt, &*error);
        let by_itself = classifier.error(&kept.call, Attempt::FIRST, &*error);
        self.conclude(cx, Original::Error(error), decision, by_itself)
    }

    /// The attempt has ended: returns its result, or begins to ask.
    fn conclude(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        original: Original<RB>,
        decision: Decision,
        by_itself: Decision,
    ) -> Poll<Output<RB>> {
        let mut this = self.as_mut().project();
        this.state.set(State::Done);
        let Some(mut kept) = this.kept.take() else {
            return Poll::Ready(original.into_output());
        };
        if let Some(registration) = &kept.registration {
            registration.end_attempt();
        }
        let open = Open {
            original,
            decision,
            by_itself,
            repeatable: kept.repeatable(this.config),
        };
        let next = match (decision.outcome, kept.copy.take()) {
            (Outcome::Unknown { .. }, Some(copy)) => {
                let config = Arc::clone(this.config);
                let asking = course::ask::<S, B, R, C, C::Call>(config, kept, copy, decision);
                let asking: Asking = Box::pin(asking);
                let drain = match &open.original {
                    Original::Response(..) => Some(Box::pin(sleep(this.config.first_wait()))),
                    Original::Error(_) => None,
                };
                let asked = Asked {
                    open,
                    drain,
                    asking,
                };
                Next::Ask(Box::new(asked))
            }
            (Outcome::Retryable { .. }, _) => Next::Return(match kept.registration {
                Some(registration) => match registration.take() {
                    Some(resolution) => {
                        let known = Known::from(resolution);
                        let (id, how) = (&kept.id, known.how());
                        this.config.observer.told(&Told { id, how });
                        open.answer(course::told_already(known, decision))
                    }
                    None if decision.delivery.proves_not_applied() => open.original.into_output(),
                    None => open.watched(Arc::new(registration.into_watched())),
                },
                None => open.original.into_output(),
            }),
            _ => Next::Return(open.original.into_output()),
        };
        match next {
            Next::Return(output) => Poll::Ready(output),
            // ## (Sending | Inspecting) => Asking
            Next::Ask(asked) => {
                this.state.set(State::Asking { asked });
                self.drive(cx)
            }
        }
    }
}

impl<F, S, B, R, C, RB> fmt::Debug for ResponseFuture<F, S, B, R, C, RB>
where
    C: Classify,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Sending { .. } => "sending",
            State::Inspecting { .. } => "inspecting",
            State::Asking { .. } => "asking",
            State::Answered { .. } => "answered",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
