//! The course of one call.

use std::{sync::Arc, time::Duration};

use http::{Request, Response, request, response};
use tower_outcome_core::{
    Attempt, BoxError, CallContext, CallReport, Classify, Deadline, Decision, Delivery, Failure,
    HintForm, Hold, NotRetried, Outcome, Phase, Reason, Repeatable, Replay, RetryAfter, Stamped,
    peek::{Peek, PeekBody},
    replay::HeadCopy,
};
use tower_service::Service;

use crate::{
    Rejected, Replayed, Snapshot, Unattachable, Unavailable, UnavailableKind, credentials::Shared,
    held::Held, layer::Config, obtain::Refusal, service::LAYER,
};

/// What one call needs to know.
pub(crate) struct Course<S, B, C: Classify> {
    pub(crate) config: Arc<Config<C>>,
    pub(crate) service: S,
    pub(crate) unsent: Option<Unsent<B>>,
    /// What it is sent with; `None` if it passes without.
    pub(crate) held: Option<Arc<Held>>,
    /// What is remembered of the request, once it is sent.
    pub(crate) call: Option<C::Call>,
    /// What it takes to send the request again.
    pub(crate) spare: Option<Spare<B>>,
    pub(crate) context: Option<CallContext>,
    /// A deadline above that strikes meanwhile knows that nothing is sent.
    pub(crate) hold: Option<Hold>,
    pub(crate) stamped: Stamped,
}

/// A request that has not been sent.
pub(crate) struct Unsent<B> {
    pub(crate) head: request::Parts,
    pub(crate) body: B,
}

/// What it takes to send a request again.
pub(crate) struct Spare<B> {
    head: HeadCopy,
    body: B,
}

/// What a call has been through whose credential was rejected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trail {
    /// Which attempt the replay is.
    attempt: Attempt,
    repeatable: Repeatable,
    /// The generation that was rejected.
    rejected: u64,
    /// How long was waited for another one.
    pub(crate) waited: Duration,
}

/// A rejection, which is the caller's answer if nothing comes of the replay.
pub(crate) struct Rejection<RB> {
    pub(crate) head: response::Parts,
    /// Read meanwhile, so that its connection can be used again.
    pub(crate) peek: Peek<RB>,
}

pub(crate) type Output<RB> = Result<Response<PeekBody<RB>>, BoxError>;

// === impl Course ===

impl<S, B, C: Classify> Course<S, B, C> {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.config.credentials.0
    }

    /// Whether the server has said that it does not take the credential, and did nothing.
    pub(crate) fn is_rejection(decision: Decision) -> bool {
        decision.outcome.reason() == Some(Reason::AuthRejected) && !decision.outcome.is_unknown()
    }

    /// The deadline of the call, if it can be sent again.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.spare.as_ref().and_then(|spare| spare.head.deadline())
    }

    /// Whether another credential is what was rejected, all over again.
    pub(crate) fn is_the_same(&self, held: &Held) -> bool {
        let rejected = self.held.as_ref();
        rejected.is_some_and(|rejected| {
            rejected.headers == held.headers
                // What a signer below makes of it may be all that the server sees.
                && (!self.config.hands_down || rejected.credential.is_as_good_as(&held.credential))
        })
    }

    /// Puts a response together that is not replayed.
    pub(crate) fn give_back<RB>(
        rejection: Rejection<RB>,
        report: Option<CallReport>,
    ) -> Output<RB> {
        let Rejection { mut head, peek } = rejection;
        if let Some(report) = report {
            head.extensions.insert(report);
        }
        Ok(Response::from_parts(head, peek.into_body()))
    }

    /// What is reported of a request whose credential was rejected and which is not sent again.
    pub(crate) fn rejected_report(repeatable: Repeatable, why: NotRetried) -> CallReport {
        let outcome = Outcome::Permanent {
            reason: Reason::AuthRejected,
        };
        CallReport::new(outcome, Delivery::Answered, repeatable).with_not_retried(Some(why))
    }

    /// What the caller gets whose request would go without the credential.
    #[cold]
    fn not_carried(&self) -> BoxError {
        let what = Unattachable::new("every header", "missing, and nothing is handed down");
        not_sent(Refusal {
            why: self.shared().because(UnavailableKind::Unattachable, what),
            after: None,
        })
    }

    /// What the caller gets whose request was rejected, and for which there is no other credential.
    #[cold]
    pub(crate) fn not_renewed(refusal: Refusal, repeatable: Repeatable) -> BoxError {
        failure(refusal, Delivery::Refused, repeatable, 1).into()
    }
}

impl<S, B: Replay, C: Classify> Course<S, B, C> {
    /// Sends the request for the first time. The service is ready.
    #[inline]
    pub(crate) fn send(&mut self, unsent: Unsent<B>) -> Result<S::Future, BoxError>
    where
        S: Service<Request<B>>,
    {
        let Unsent { mut head, body } = unsent;
        if let Some(held) = &self.held {
            if held.headers.is_empty() && !self.config.hands_down {
                return Err(self.not_carried());
            }
            if self.config.replays {
                if let Some(body) = body.replay() {
                    let memory = self.config.credentials.0.memory();
                    let copy = HeadCopy::within(&head, memory);
                    self.spare = copy.map(|head| Spare { head, body });
                }
            }
            self.call = Some(self.config.classifier.glance(&head));
            held.put_on(&mut head.headers);
            if self.config.hands_down {
                head.extensions.insert(Snapshot(Arc::clone(held)));
            }
        }
        if let Some(hold) = self.hold.take() {
            hold.let_go()?;
        }
        Ok(self.service.call(Request::from_parts(head, body)))
    }

    /// The credential was rejected for the first time: returns what is remembered of that, or why the
    /// request is not sent again.
    pub(crate) fn reject(&mut self, held: &Held) -> Result<Trail, NotRetried> {
        let shared = Arc::clone(self.shared());
        shared.observer.rejected(&Rejected {
            name: &shared.name,
            generation: held.generation,
            again: false,
        });
        let Some(spare) = &self.spare else {
            shared.reject(held.generation);
            return Err(if self.config.replays {
                NotRetried::BodyNotReplayable
            } else {
                NotRetried::SwitchedOff
            });
        };
        // A rejection proves that nothing was done.
        let attempt = spare.head.attempt();
        if let Some(context) = &self.context {
            let outcome = Outcome::Retryable {
                reason: Reason::AuthRejected,
                after: None,
            };
            context.end_attempt(outcome, Delivery::Refused);
            self.hold = Some(context.hold(LAYER, Phase::AwaitingToken));
        }
        Ok(Trail {
            attempt: attempt.next(false),
            repeatable: Repeatable::No,
            rejected: held.generation,
            waited: Duration::ZERO,
        })
    }

    /// Whether the request may be repeated, for a report.
    pub(crate) fn repeatable(&self) -> Repeatable {
        let empty = self.spare.as_ref().and_then(|spare| spare.head.restore(()));
        empty.map_or(Repeatable::No, |request| {
            let (head, ()) = request.into_parts();
            let classifier = &self.config.classifier;
            classifier.repeatable(&classifier.call(&head))
        })
    }

    /// The request need not be sent again: its copy leaves its memory to the next.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if let Some(spare) = self.spare.take() {
            self.shared().give_back(spare.head.into_memory());
        }
    }

    /// Makes the request again.
    pub(crate) fn again(&self, trail: &mut Trail) -> Result<Unsent<B>, NotRetried> {
        let again = self.spare.as_ref().and_then(|spare| {
            let body = spare.body.replay()?;
            spare.head.restore(body)
        });
        let (mut head, body) = again.ok_or(NotRetried::BodyNotReplayable)?.into_parts();
        head.extensions.insert(trail.attempt);
        let call = self.config.classifier.call(&head);
        trail.repeatable = self.config.classifier.repeatable(&call);
        Ok(Unsent { head, body })
    }

    /// Sends the request again. The service is ready.
    pub(crate) fn resend(
        &mut self,
        unsent: Unsent<B>,
        trail: &Trail,
        held: Arc<Held>,
    ) -> Result<S::Future, BoxError>
    where
        S: Service<Request<B>>,
    {
        let Unsent { mut head, body } = unsent;
        self.call = Some(self.config.classifier.call(&head));
        if let Some(context) = &self.context {
            context.begin_attempt();
        }
        if let Some(hold) = self.hold.take() {
            hold.let_go()?;
        }
        held.put_on(&mut head.headers);
        if self.config.hands_down {
            head.extensions.insert(Snapshot(Arc::clone(&held)));
        }
        let shared = self.shared();
        shared.observer.replayed(&Replayed {
            name: &shared.name,
            rejected: trail.rejected,
            generation: held.generation,
        });
        self.held = Some(held);
        Ok(self.service.call(Request::from_parts(head, body)))
    }

    /// The replay was answered: this is the caller's answer, whatever it is.
    pub(crate) fn conclude(&self, trail: &Trail, decision: Decision, head: &mut response::Parts) {
        if let Some(held) = &self.held {
            if Self::is_rejection(decision) {
                let shared = self.shared();
                shared.lock().doubt(held.generation);
                shared.observer.rejected(&Rejected {
                    name: &shared.name,
                    generation: held.generation,
                    again: true,
                });
            } else {
                held.accept();
            }
        }
        let not_retried = (!decision.outcome.is_success()).then_some(NotRetried::Outcome);
        // What a layer below has to say about the last attempt is the more exact.
        let below = CallReport::of(&head.extensions).cloned();
        let attempts = below.as_ref().map_or(1, CallReport::attempts);
        let report = below.unwrap_or_else(|| {
            CallReport::new(decision.outcome, decision.delivery, trail.repeatable)
                .with_after(decision.after)
                .with_not_retried(not_retried)
        });
        let waited = report.waited().saturating_add(trail.waited);
        let report = report.with_attempts(attempts.saturating_add(1), waited);
        head.extensions.insert(report);
    }

    /// The replay has failed.
    pub(crate) fn fail(&self, trail: &Trail, error: BoxError) -> BoxError {
        let Some(call) = &self.call else {
            return error;
        };
        let decision = self.config.classifier.error(call, trail.attempt, &*error);
        let Decision {
            outcome, delivery, ..
        } = decision;
        if Failure::of(&*error).is_some_and(|failure| failure.report().is_some()) {
            // A layer below has said all there is to say.
            return error;
        }
        let report = CallReport::new(outcome, delivery, trail.repeatable)
            .with_attempts(2, trail.waited)
            .with_after(decision.after)
            .with_not_retried(Some(NotRetried::Outcome).filter(|_| !outcome.is_retryable()));
        Failure::wrap(error, |_| (outcome, delivery))
            .with_report(report)
            .into()
    }
}

// === impl Trail ===

impl Trail {
    pub(crate) const fn attempt(&self) -> Attempt {
        self.attempt
    }
}

/// What the caller gets whose request was not sent.
#[cold]
pub(crate) fn not_sent(refusal: Refusal) -> BoxError {
    failure(refusal, Delivery::NotSent, Repeatable::No, 0).into()
}

/// Nothing of it looks like an answer of the API.
fn failure(refusal: Refusal, delivery: Delivery, repeatable: Repeatable, attempts: u32) -> Failure {
    let Refusal { why, after } = refusal;
    let outcome = outcome(&why, after);
    let report = CallReport::new(outcome, delivery, repeatable)
        .with_attempts(attempts, Duration::ZERO)
        .with_after(outcome.after());
    Failure::new(outcome, delivery, why).with_report(report)
}

fn outcome(why: &Unavailable, after: Option<Duration>) -> Outcome {
    match why.kind() {
        // Nothing changes by itself.
        UnavailableKind::Dead | UnavailableKind::Recursive | UnavailableKind::NoRuntime => {
            Outcome::Permanent {
                reason: Reason::AuthUnavailable,
            }
        }
        UnavailableKind::Deadline => Outcome::Retryable {
            reason: Reason::TimedOut,
            after: None,
        },
        _ => Outcome::Retryable {
            reason: Reason::AuthUnavailable,
            after: after.map(|after| RetryAfter::new(after, HintForm::Custom)),
        },
    }
}
