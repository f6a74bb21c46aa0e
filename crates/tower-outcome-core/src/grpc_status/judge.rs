//! What a status amounts to that comes after the messages.

use http::{HeaderMap, request};
use tonic::Status;

use super::code;
use crate::{
    Attempt, CallReport, Classify, Delivery, GrpcCall, GrpcClassifier, Outcome, Repeatable,
};

/// Judges the end of an answer that was a success so far.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    classifier: GrpcClassifier,
    call: GrpcCall,
    /// What the call went through before, if anything.
    report: Option<CallReport>,
}

// === impl Judge ===

impl Judge {
    pub(super) fn new(classifier: &GrpcClassifier, head: &request::Parts) -> Self {
        Self {
            call: classifier.call(head),
            classifier: classifier.clone(),
            report: None,
        }
    }

    pub(super) fn with_report(mut self, report: Option<CallReport>) -> Self {
        self.report = report;
        self
    }

    /// The status of an answer that ends in failure.
    pub(super) fn of_trailers(&self, trailers: &HeaderMap) -> Option<Status> {
        let repeatable: Repeatable = self.call.repeatable();
        let answer = self.classifier.status(trailers)?;
        let outcome = answer.decide(repeatable, Attempt::FIRST).outcome;
        if outcome.is_success() {
            return None;
        }
        let report = self.report(outcome, repeatable);
        code::of_server(trailers, &report)
    }

    fn report(&self, outcome: Outcome, repeatable: Repeatable) -> CallReport {
        let report = CallReport::new(outcome, Delivery::Answered, repeatable);
        match &self.report {
            Some(before) => report.with_attempts(before.attempts(), before.waited()),
            None => report,
        }
    }
}
