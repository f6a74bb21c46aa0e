//! What the caller gets.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Response, response};
use http_body::Body;
use tower_outcome_core::{
    BoxError, CallReport, Decision, Delivery, Failure, NotRetried, Outcome, Reason, Repeatable,
    Settling,
    peek::{Peek, PeekBody, Peeked},
};

use crate::{AfterInquiry, ReconcileBody, Reconciled, body::Rest, course::Ended, evidence::Known};

/// What an answer ends with that was not read to its end.
const LET_GO: &str = "the rest of the answer was let go while the server was asked";

pub(crate) type Output<RB> = Result<Response<ReconcileBody<RB>>, BoxError>;

/// The result of the attempt, which is the caller's if nothing better is found.
pub(crate) enum Original<RB> {
    Response(response::Parts, Page<RB>),
    Error(BoxError),
}

/// The body of an answer that leaves it open.
pub(crate) enum Page<RB> {
    /// It is read until the first question, and kept.
    Read(Peek<RB>),
    /// What was read of it. Nothing of the connection is held any more.
    Kept(PeekBody<Rest>),
}

/// An attempt of which something had to be found out.
pub(crate) struct Open<RB> {
    pub(crate) original: Original<RB>,
    pub(crate) decision: Decision,
    /// What would have become of it if there had been no attempt before.
    pub(crate) by_itself: Decision,
    pub(crate) repeatable: Repeatable,
}

// === impl Original ===

impl<RB> Original<RB> {
    /// What a layer below has to say.
    fn report(&self) -> Option<&CallReport> {
        match self {
            Self::Response(head, _) => CallReport::of(&head.extensions),
            Self::Error(error) => Failure::of(&**error).and_then(Failure::report),
        }
    }

    /// Returns it as it was.
    pub(crate) fn into_output(self) -> Output<RB> {
        match self {
            Self::Response(head, page) => Ok(Response::from_parts(head, page.into_body())),
            Self::Error(error) => Err(error),
        }
    }
}

// === impl Page ===

impl<RB> Page<RB> {
    fn into_body(self) -> ReconcileBody<RB> {
        match self {
            Self::Read(peek) => ReconcileBody::passed(peek.into_body()),
            Self::Kept(body) => ReconcileBody::kept(body),
        }
    }
}

// === impl Open ===

impl<RB> Open<RB>
where
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    /// Reads what is here of the answer, and lets its connection go once there is no more, or too much.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>) {
        if let Original::Response(_, Page::Read(peek)) = &mut self.original {
            if let Poll::Ready(peeked) = peek.poll_peek(cx) {
                self.let_go(matches!(peeked, Peeked::Complete(_)));
            }
        }
    }
}

impl<RB> Open<RB> {
    /// Lets the connection of the answer go, and keeps what was read of it.
    pub(crate) fn let_go(&mut self, is_whole: bool) {
        let Original::Response(_, page) = &mut self.original else {
            return;
        };
        let rest = if is_whole {
            Rest::none()
        } else {
            let Decision {
                outcome, delivery, ..
            } = self.decision;
            Rest::let_go(Failure::new(outcome, delivery, LET_GO).into())
        };
        let nothing = Page::Kept(PeekBody::new(Rest::none()));
        *page = match mem::replace(page, nothing) {
            Page::Read(peek) => Page::Kept(peek.into_body().with_rest(rest)),
            kept @ Page::Kept(_) => kept,
        };
    }

    /// Answers with what is known now.
    pub(crate) fn answer(self, ended: Ended) -> Output<RB> {
        let Ended {
            known,
            report,
            after,
        } = ended;
        // A server that has received the request would call it a duplicate the next time.
        let received = Outcome::Permanent {
            reason: Reason::Rejected,
        };
        match known {
            None => self.unresolved(report),
            Some(Known::Applied(_, response)) => {
                let call = self.report(Outcome::Success, Delivery::Answered);
                Ok(found(response, call, report))
            }
            Some(Known::Rejected(_, record)) => {
                Err(self.fail(received, Delivery::Answered, report, Some(record)))
            }
            // The earlier attempts did nothing, so the refusal of this one is final.
            Some(Known::NotApplied(_)) if self.is_refused() => self.refused(report),
            Some(Known::NotApplied(_)) if report.is_received => {
                Err(self.fail(received, Delivery::Answered, report, None))
            }
            Some(Known::NotApplied(_)) => {
                let outcome = Outcome::Retryable {
                    reason: report.reason,
                    after,
                };
                Err(self.fail(outcome, Delivery::Refused, report, None))
            }
        }
    }

    /// Returns the result with a watch for the layer above, which may send the request again.
    pub(crate) fn watched(self, settling: Arc<dyn Settling>) -> Output<RB> {
        let Decision {
            outcome, delivery, ..
        } = self.decision;
        // What a layer below has to say is kept, such as that it has given up.
        let below = self.original.report().cloned();
        let call = below
            .unwrap_or_else(|| self.report(outcome, delivery).with_after(outcome.after()))
            .with_settling(settling);
        match self.original {
            Original::Response(mut head, page) => {
                head.extensions.insert(call);
                Ok(Response::from_parts(head, page.into_body()))
            }
            Original::Error(error) => Err(Failure::wrap(error, |_| (outcome, delivery))
                .with_report(call)
                .into()),
        }
    }

    fn unresolved(self, report: Reconciled) -> Output<RB> {
        let Decision {
            outcome, delivery, ..
        } = self.decision;
        let call = self
            .report(outcome, delivery)
            .with_not_retried(Some(NotRetried::Outcome));
        match self.original {
            Original::Response(mut head, page) => {
                head.extensions.insert(call);
                head.extensions.insert(report);
                Ok(Response::from_parts(head, page.into_body()))
            }
            Original::Error(error) => {
                let failure = Failure::wrap(error, |_| (outcome, delivery));
                Err(with_cause(failure, report).with_report(call).into())
            }
        }
    }

    /// Whether the server refused this attempt, and only an earlier one left anything open.
    fn is_refused(&self) -> bool {
        let outcome = self.by_itself.outcome;
        outcome.is_permanent() && outcome.reason() != Some(Reason::Duplicate)
    }

    fn refused(self, report: Reconciled) -> Output<RB> {
        let Decision {
            outcome, delivery, ..
        } = self.by_itself;
        let call = self
            .report(outcome, delivery)
            .with_settled_by(report.how.map(crate::How::settled_by))
            .with_not_retried(Some(NotRetried::Outcome));
        match self.original {
            Original::Response(mut head, page) => {
                head.extensions.insert(call);
                head.extensions.insert(report);
                Ok(Response::from_parts(head, page.into_body()))
            }
            Original::Error(error) => {
                let failure = Failure::wrap(error, |_| (outcome, delivery));
                let failure = with_cause(failure.with_outcome(outcome), report);
                Err(failure.with_report(call).into())
            }
        }
    }

    /// A failure in the place of the result, which is kept in it.
    fn fail(
        self,
        outcome: Outcome,
        delivery: Delivery,
        report: Reconciled,
        record: Option<Response<Bytes>>,
    ) -> BoxError {
        let call = self
            .report(outcome, delivery)
            .with_after(outcome.after())
            .with_settled_by(report.how.map(crate::How::settled_by));
        let cause = AfterInquiry::new(report).with_record(record);
        let cause = match self.original {
            Original::Response(head, _) => cause.with_answer(Response::from_parts(head, ())),
            Original::Error(error) => cause.with_source(Some(error)),
        };
        Failure::new(outcome, delivery, cause)
            .with_report(call)
            .into()
    }

    /// A report that counts what layers below have sent.
    fn report(&self, outcome: Outcome, delivery: Delivery) -> CallReport {
        let below = self.original.report();
        let attempts = below.map_or(1, CallReport::attempts);
        let waited = below.map_or(Duration::ZERO, CallReport::waited);
        CallReport::new(outcome, delivery, self.repeatable).with_attempts(attempts, waited)
    }
}

/// Answers a call whose attempt has no answer and needs none, or was not sent at all, since somebody has
/// told what became of it.
pub(crate) fn without_answer<RB>(known: Known, repeatable: Repeatable) -> Output<RB> {
    let how = known.how();
    let mut report = Reconciled::new(Reason::Unrecognized);
    report.how = Some(how);
    let (outcome, delivery, record) = match known {
        Known::Applied(_, response) => {
            let call = CallReport::new(Outcome::Success, Delivery::Answered, repeatable);
            return Ok(found(response, call, report));
        }
        Known::Rejected(_, record) => {
            let outcome = Outcome::Permanent {
                reason: Reason::Rejected,
            };
            (outcome, Delivery::Answered, Some(record))
        }
        Known::NotApplied(_) => {
            let outcome = Outcome::Retryable {
                reason: Reason::Rejected,
                after: None,
            };
            (outcome, Delivery::Refused, None)
        }
    };
    let call = CallReport::new(outcome, delivery, repeatable);
    let call = call.with_settled_by(Some(how.settled_by()));
    let cause = AfterInquiry::new(report).with_record(record);
    Err(Failure::new(outcome, delivery, cause)
        .with_report(call)
        .into())
}

fn found<RB>(
    response: Response<Bytes>,
    call: CallReport,
    report: Reconciled,
) -> Response<ReconcileBody<RB>> {
    let mut response = response.map(ReconcileBody::found);
    let extensions = response.extensions_mut();
    extensions.insert(call.with_settled_by(report.how.map(crate::How::settled_by)));
    extensions.insert(report);
    response
}

/// The same failure, with what was asked between it and its cause.
fn with_cause(failure: Failure, report: Reconciled) -> Failure {
    let (outcome, delivery) = (failure.outcome(), failure.delivery());
    let by = failure.proven_by();
    let key = failure.idempotency_key().cloned();
    let cause = AfterInquiry::new(report).with_source(failure.into_source());
    let failure = Failure::new(outcome, delivery, cause).with_proven_by(by);
    match key {
        Some(key) => failure.with_idempotency_key(key),
        None => failure,
    }
}
