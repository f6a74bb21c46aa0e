//! A reconciler made of a question and of how to read the answer.

use std::{fmt, future::poll_fn};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_outcome_core::{
    Attempt, BodySeen, BoxError, Classify, Decision, Delivery, Failure, HttpClassifier, Outcome,
    Reason, Verdict,
    peek::{Peek, Peeked},
};
use tower_service::Service;

use crate::{Finding, Inquiry, Reconciler, Through};

/// Asks through the stack below the layer: makes a request of the inquiry, and reads the answer.
///
/// The answer is read whole, and only if the [classifier](Self::classifier) calls it a success or
/// permanent: a 429, a 503 or a rejected credential is no evidence, and is asked again after the wait
/// that it names.
///
/// What an answer is it decides with a classifier of its own, by default [`HttpClassifier::new`], which is not
/// that of the layer. A stack whose classifier has rules (such as one for a 200 that says "try again later")
/// has to [hand it over](Self::classifier), or what its rules call a refusal to answer is read as an answer.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response, StatusCode};
/// use http_body_util::Full;
/// use tower_outcome_reconcile::{ByQuery, Finding, Inquiry};
///
/// let by_query = ByQuery::new(
///     |inquiry: &Inquiry| {
///         let id = inquiry.id().to_path_segment();
///         Request::get(format!("https://venue.example/orders/{id}")).body(Full::<Bytes>::default())
///     },
///     |_: &Inquiry, answer: Response<Bytes>| match answer.status() {
///         StatusCode::OK => Finding::Applied(answer),
///         StatusCode::NOT_FOUND => Finding::NotFound,
///         _ => Finding::Unclear,
///     },
/// );
/// # let _ = by_query;
/// ```
pub struct ByQuery<M, D, C = HttpClassifier> {
    make: M,
    read: D,
    classifier: C,
    limit: usize,
}

// === impl ByQuery ===

impl<M, D> ByQuery<M, D> {
    /// Creates it from the two closures. No more than 64 KiB of an answer are read.
    #[must_use]
    pub fn new(make: M, read: D) -> Self {
        Self {
            make,
            read,
            classifier: HttpClassifier::new(),
            limit: 64 * 1024,
        }
    }
}

impl<M, D, C> ByQuery<M, D, C> {
    /// Sets what tells an answer from a refusal to answer: share the classifier of the other layers.
    #[must_use]
    pub fn classifier<E>(self, classifier: E) -> ByQuery<M, D, E> {
        ByQuery {
            make: self.make,
            read: self.read,
            classifier,
            limit: self.limit,
        }
    }

    /// Sets how much of an answer is read, in bytes: by default 64 KiB, a long page of a list. A longer
    /// one is no evidence.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }
}

impl<M, D, C, S, B, RB> Reconciler<S, B> for ByQuery<M, D, C>
where
    M: Fn(&Inquiry) -> Result<Request<B>, http::Error> + Send + Sync + 'static,
    D: Fn(&Inquiry, Response<Bytes>) -> Finding + Send + Sync + 'static,
    C: Classify + Send + Sync + 'static,
    S: Service<Request<B>, Response = Response<RB>> + Send,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Send,
    RB: Body + Unpin + Send,
    RB::Error: Into<BoxError>,
{
    async fn ask(&self, inquiry: Inquiry, through: Through<S>) -> Result<Finding, BoxError> {
        let (head, body) = (self.make)(&inquiry)?.into_parts();
        let call = self.classifier.call(&head);
        let response = through.send(Request::from_parts(head, body)).await?;
        let (head, body) = response.into_parts();
        let verdict = self.classifier.response(&call, Attempt::FIRST, &head);
        let mut peek = Peek::new(body, self.limit);
        let peeked = poll_fn(|cx| peek.poll_peek(cx)).await;
        let seen = match &peeked {
            Peeked::Complete(body) => BodySeen::Whole {
                body,
                trailers: peek.trailers(),
            },
            Peeked::TooLarge => BodySeen::TooLarge,
            Peeked::Failed => BodySeen::Failed,
        };
        let decision = match verdict {
            Verdict::Decided(decision) => decision,
            _ => self.classifier.body(&call, Attempt::FIRST, &head, seen),
        };
        let is_answer = match decision.outcome {
            Outcome::Success => true,
            Outcome::Permanent { reason } => reason != Reason::AuthRejected,
            Outcome::Retryable { .. } | Outcome::Unknown { .. } => false,
        };
        match peeked {
            Peeked::Complete(body) if is_answer => {
                Ok((self.read)(&inquiry, Response::from_parts(head, body)))
            }
            _ => Err(no_evidence(decision, &head).into()),
        }
    }
}

/// What is remembered of an answer that says nothing.
fn no_evidence(decision: Decision, head: &http::response::Parts) -> Failure {
    let reason = decision.outcome.reason().unwrap_or(Reason::ResponseBody);
    let outcome = Outcome::Retryable {
        reason,
        after: decision.after,
    };
    let why = format!("the inquiry was answered with {}", head.status);
    Failure::new(outcome, Delivery::Answered, why)
}

impl<M, D, C: fmt::Debug> fmt::Debug for ByQuery<M, D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByQuery")
            .field("classifier", &self.classifier)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
