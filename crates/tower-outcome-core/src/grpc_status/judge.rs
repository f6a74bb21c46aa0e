//! What a status amounts to that comes after the messages.

use http::{HeaderMap, StatusCode, request, response};
use tonic::{Code, Status};

use super::code;
use crate::{
    Answer, Attempt, CallReport, Classify, Delivery, GrpcCall, GrpcClassifier, Repeatable, Verdict,
};

/// Judges the end of an answer.
#[derive(Clone, Debug)]
pub(super) enum Judge {
    /// It was a success so far.
    Undecided {
        classifier: GrpcClassifier,
        call: GrpcCall,
        /// What the call went through before, if anything.
        report: Option<CallReport>,
    },
    /// A layer below has read it whole, and it was none.
    Failed(CallReport),
}

// === impl Judge ===

impl Judge {
    pub(super) fn new(classifier: &GrpcClassifier, head: &request::Parts) -> Self {
        Self::Undecided {
            call: classifier.call(head),
            classifier: classifier.clone(),
            report: None,
        }
    }

    pub(super) fn with_report(mut self, before: Option<CallReport>) -> Self {
        if let Self::Undecided { report, .. } = &mut self {
            *report = before;
        }
        self
    }

    /// What became of a call whose head says that it has failed.
    pub(super) fn of_head(&self, head: &response::Parts) -> Option<CallReport> {
        let Self::Undecided {
            classifier, call, ..
        } = self
        else {
            return None;
        };
        match classifier.response(call, Attempt::FIRST, head) {
            Verdict::Decided(decision) if !decision.outcome.is_success() => {
                let repeatable = call.repeatable();
                Some(CallReport::new(
                    decision.outcome,
                    decision.delivery,
                    repeatable,
                ))
            }
            // Or what is read of it tells.
            _ => None,
        }
    }

    /// The status of an answer that ends in failure.
    pub(super) fn of_trailers(&self, trailers: &HeaderMap) -> Option<Status> {
        let report = match self {
            Self::Undecided { classifier, .. } => self.judged(classifier.status(trailers))?,
            Self::Failed(report) => return of_failed(trailers, report),
        };
        code::of_server(trailers, &report).or_else(|| Some(code::of_http(StatusCode::OK, &report)))
    }

    /// The status of an answer that ends without any.
    pub(super) fn of_end(&self) -> Option<Status> {
        match self {
            Self::Undecided { .. } => {
                let report = self.judged(None)?;
                Some(code::of_http(StatusCode::OK, &report))
            }
            Self::Failed(report) => Some(code::of_http(StatusCode::OK, report)),
        }
    }

    /// What became of a call whose answer ends so, if it is no success.
    fn judged(&self, answer: Option<Answer>) -> Option<CallReport> {
        let Self::Undecided { call, report, .. } = self else {
            return None;
        };
        if report
            .as_ref()
            .is_some_and(|report| report.settled().is_some())
        {
            // The last word on it. A record of another kind stands in for the answer.
            return None;
        }
        let repeatable: Repeatable = call.repeatable();
        let answer = answer.unwrap_or(GrpcClassifier::LOST);
        let outcome = answer.decide(repeatable, Attempt::FIRST).outcome;
        if outcome.is_success() {
            return None;
        }
        let judged = CallReport::new(outcome, Delivery::Answered, repeatable);
        Some(match report {
            Some(before) => judged.with_attempts(before.attempts(), before.waited()),
            None => judged,
        })
    }
}

/// What the server said. If that is that all is well, whoever called it a failure has done so for reasons
/// of its own, and the caller finds them in the report.
fn of_failed(trailers: &HeaderMap, report: &CallReport) -> Option<Status> {
    match code::of_server(trailers, report) {
        Some(status) if status.code() == Code::Ok => None,
        Some(status) => Some(status),
        None => Some(code::of_http(StatusCode::OK, report)),
    }
}
