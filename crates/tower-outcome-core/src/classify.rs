//! Deciding what became of a call.

use std::{error::Error, fmt};

use http::{HeaderMap, request, response};

use crate::{Answer, Attempt, Delivery, Outcome, Reason, Repeatable, RetryAfter};

mod grpc;
mod http_status;
mod rule;

#[cfg(feature = "tonic")]
pub(crate) use self::grpc::{grpc_status, http_to_grpc};
pub use self::{
    grpc::{GrpcCall, GrpcClassifier, GrpcClassifierBuilder},
    http_status::{HttpCall, HttpClassifier, HttpClassifierBuilder, RepeatableMethods},
    rule::{BodyRule, HeadRule, Judged},
};

/// Decides what became of a call.
///
/// It sees the request before it is sent, then either the response head or the error, and may ask
/// for the body once. All layers of the family share one classifier, so that they agree.
///
/// [`HttpClassifier`] and [`GrpcClassifier`] are ready to use and configurable; implement the trait
/// for an API whose rules fit neither.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not classify calls",
    note = "use `HttpClassifier` or `GrpcClassifier`, or implement `Classify`"
)]
pub trait Classify {
    /// What is remembered of a request while it is on its way: small, and no header map.
    type Call: Clone + fmt::Debug + Send + Sync + 'static;

    /// Looks at a request before it is sent.
    fn call(&self, request: &request::Parts) -> Self::Call;

    /// Looks at a request of which only the answer is going to be understood, and not whether it may
    /// be sent again: by default in the same way.
    ///
    /// For layers that want to know what a server said and nothing else, at a lower price: what
    /// [`repeatable`](Self::repeatable) returns of such a call means nothing.
    fn glance(&self, request: &request::Parts) -> Self::Call {
        self.call(request)
    }

    /// Says whether sending that request twice is harmless.
    fn repeatable(&self, call: &Self::Call) -> Repeatable;

    /// Decides by the response head, or asks for (a part of) the body.
    fn response(&self, call: &Self::Call, attempt: Attempt, head: &response::Parts) -> Verdict;

    /// Decides by the head and what could be read of the body.
    fn body(
        &self,
        call: &Self::Call,
        attempt: Attempt,
        head: &response::Parts,
        body: BodySeen<'_>,
    ) -> Decision;

    /// Decides by the error of the service future. No response head has arrived.
    fn error(&self, call: &Self::Call, attempt: Attempt, error: &(dyn Error + 'static))
    -> Decision;

    /// Decides for a call whose response head was a success, but whose response body failed.
    ///
    /// The server has probably applied the request, and the answer is lost: by default retryable
    /// where repeating is harmless, else unknown.
    fn broken_body(&self, call: &Self::Call, attempt: Attempt) -> Outcome {
        Answer::Unclear {
            reason: Reason::ResponseBody,
            after: None,
            transient: true,
        }
        .outcome(self.repeatable(call), attempt)
    }
}

/// What became of an attempt, and how far it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// What became of it.
    pub outcome: Outcome,
    /// How far it got.
    pub delivery: Delivery,
    /// How long the server asked to be left alone, whatever became of this request: a refusal that
    /// is final, or an answer that says nothing about this request, may still close a gate.
    pub after: Option<RetryAfter>,
}

/// What a response head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The head is enough.
    Decided(Decision),
    /// The whole body is needed, as long as it has at most this many bytes.
    NeedsBody {
        /// The largest body that is read, in bytes.
        limit: usize,
    },
    /// The first frame of the body is needed: data or trailers.
    NeedsFirstFrame,
}

/// What could be read of a response body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum BodySeen<'a> {
    /// The whole body, and the trailers if there were any.
    Whole {
        /// The bytes.
        body: &'a [u8],
        /// The trailers.
        trailers: Option<&'a HeaderMap>,
    },
    /// The body began with data; asked for by [`Verdict::NeedsFirstFrame`].
    Began,
    /// The body is larger than was asked for.
    TooLarge,
    /// The body failed before enough of it was read.
    Failed,
}

// === impl Decision ===

impl Decision {
    /// The server did what was asked.
    pub const SUCCESS: Self = Self::new(Outcome::Success, Delivery::Answered);

    /// Creates a decision; the wait is that of the outcome, if it has one.
    #[must_use]
    pub const fn new(outcome: Outcome, delivery: Delivery) -> Self {
        Self {
            outcome,
            delivery,
            after: outcome.after(),
        }
    }

    /// Sets how long the server asked to be left alone.
    #[must_use]
    pub const fn with_after(mut self, after: Option<RetryAfter>) -> Self {
        self.after = after;
        self
    }
}
