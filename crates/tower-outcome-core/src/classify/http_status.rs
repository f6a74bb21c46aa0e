//! The classifier for HTTP: a table of statuses, and rules for APIs that depart from it.

use std::{error::Error, sync::Arc};

use http::{HeaderMap, HeaderName, Method, StatusCode, request, response};

use super::{BodySeen, Classify, Decision, Verdict, rule::Judged};
use crate::{
    Answer, Attempt, Failure, Outcome, Reason, Repeatable, RepeatableBecause, RetryAfter,
    delivery::Proof,
};

mod builder;
mod status_set;

pub use self::builder::HttpClassifierBuilder;
use self::builder::Table;

/// Classifies HTTP calls by status, with rules for what an API does differently.
///
/// | what happened | repeatable | not repeatable |
/// |---|---|---|
/// | proven not sent, or refused by the peer before acting; 425 | Retryable | Retryable |
/// | 429 | Retryable | Unknown, unless declared to [refuse before acting] |
/// | 408, 500, 502, 503, 504 | Retryable | Unknown |
/// | other 5xx but 501 and 505 | Permanent | Unknown |
/// | 401 | Permanent | Permanent |
/// | other 4xx, 501, 505 | Permanent | Permanent |
/// | below 400 | Success | Success |
/// | reset, incomplete message, time-out after dispatch | Retryable | Unknown |
/// | success head, then the body fails | Retryable | Unknown |
/// | an error type nobody knows | Permanent | Unknown |
///
/// A request is repeatable if the caller marked it ([`Repeatable`] in its extensions), if its method
/// is idempotent (RFC 9110, section 9.2.2), or if it carries an idempotency key.
///
/// After an attempt that may have been applied, a refusal is Unknown for everything but safe
/// methods: see [`Answer`].
///
/// Cloning is cheap; clones share the table.
///
/// ```
/// use http::StatusCode;
/// use tower_outcome_core::{Answer, HttpClassifier, Judged, Reason};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let classifier = HttpClassifier::builder()
///     // This API promises that a request over its limit was not looked at.
///     .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS])
///     // And it reports failures inside a 200.
///     .body_rule(|seen: Judged<'_>| {
///         let ok = seen.head.status == StatusCode::OK;
///         let rejected = ok && seen.body.starts_with(b"{\"error\":");
///         rejected.then_some(Answer::Rejected { reason: Reason::Rejected })
///     })
///     .build()?;
/// # let _ = classifier;
/// # Ok(())
/// # }
/// ```
///
/// [refuse before acting]: HttpClassifierBuilder::refuses_before_acting
#[derive(Clone, Debug)]
pub struct HttpClassifier(Arc<Table>);

/// What [`HttpClassifier`] remembers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpCall {
    repeatable: Repeatable,
    /// Whether a success has a body to look at; that of a `HEAD` or `CONNECT` has none.
    answer_has_body: bool,
}

/// Which methods make a request repeatable by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepeatableMethods {
    /// The idempotent methods of RFC 9110, section 9.2.2: the safe ones, `PUT` and `DELETE`. The
    /// default, since servers promise it by choosing the method.
    #[default]
    Idempotent,
    /// Only the safe methods of RFC 9110, section 9.2.1: `GET`, `HEAD`, `OPTIONS` and `TRACE`. For
    /// APIs in which a `PUT` amends an order or a `DELETE` cancels one.
    Safe,
}

// === impl HttpClassifier ===

impl HttpClassifier {
    /// Creates a classifier with the defaults of the table.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Table::default()))
    }

    /// Starts with the defaults of the table, to change some.
    pub fn builder() -> HttpClassifierBuilder {
        HttpClassifierBuilder::default()
    }

    /// Asks the rules, and then the status.
    #[inline(never)]
    fn judge(&self, call: &HttpCall, attempt: Attempt, head: &response::Parts) -> Verdict {
        let table = &*self.0;
        for rule in &table.head_rules.0 {
            let seen = Judged {
                call,
                attempt,
                head,
                body: &[],
            };
            if let Some(answer) = rule.judge(seen) {
                return Verdict::Decided(self.decide(answer, call, attempt, head));
            }
        }
        if may_have_body(call, head.status)
            && table.body_rules.0.iter().any(|rule| rule.wants(call, head))
        {
            return Verdict::NeedsBody {
                limit: table.body_limit,
            };
        }
        Verdict::Decided(self.decide(self.status(head), call, attempt, head))
    }

    /// Combines what the server said with the request, and with the wait it asked for even where it
    /// refused for good, as with a ban.
    fn decide(
        &self,
        answer: Answer,
        call: &HttpCall,
        attempt: Attempt,
        head: &response::Parts,
    ) -> Decision {
        let decision = answer.decide(call.repeatable, attempt);
        let throttled = decision.outcome.reason().is_some_and(Reason::is_throttling);
        if throttled && decision.after.is_none() {
            decision.with_after(self.after(head))
        } else {
            decision
        }
    }

    /// What the status says, where no rule spoke.
    fn status(&self, head: &response::Parts) -> Answer {
        let table = &*self.0;
        let status = head.status;
        if status.as_u16() < 400 {
            return Answer::Applied;
        }
        let reason = reason(status);
        if status == StatusCode::TOO_EARLY || table.refuses.contains(status) {
            return Answer::NotApplied {
                reason,
                after: self.after(head),
            };
        }
        if table.auth_rejected.contains(status) {
            return Answer::Rejected {
                reason: Reason::AuthRejected,
            };
        }
        let said = table.should_retry(head);
        if said != Some(false) && table.transient.contains(status) || said == Some(true) {
            return Answer::Unclear {
                reason,
                after: self.after(head),
                transient: true,
            };
        }
        let never_acted_on = matches!(
            status,
            StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED
        );
        // Asking again may be no help after these, but they still prove nothing.
        let proves_nothing = matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        );
        let unclear = status.is_server_error() && !never_acted_on
            || proves_nothing
            || table.transient.contains(status)
            || status.as_u16() >= 600;
        if unclear {
            Answer::Unclear {
                reason,
                after: self.after(head),
                transient: false,
            }
        } else {
            Answer::Rejected { reason }
        }
    }

    fn after(&self, head: &response::Parts) -> Option<RetryAfter> {
        self.0.hint(&head.headers)
    }
}

impl Default for HttpClassifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Classify for HttpClassifier {
    type Call = HttpCall;

    #[inline]
    fn call(&self, request: &request::Parts) -> HttpCall {
        HttpCall {
            repeatable: self.0.repeatable(request),
            answer_has_body: !matches!(request.method, Method::HEAD | Method::CONNECT),
        }
    }

    #[inline]
    fn glance(&self, request: &request::Parts) -> HttpCall {
        HttpCall {
            repeatable: Repeatable::No,
            answer_has_body: !matches!(request.method, Method::HEAD | Method::CONNECT),
        }
    }

    fn repeatable(&self, call: &HttpCall) -> Repeatable {
        call.repeatable
    }

    // Inlined into the layers: a success by status alone is what nearly every call ends with.
    #[inline]
    fn response(&self, call: &HttpCall, attempt: Attempt, head: &response::Parts) -> Verdict {
        let table = &*self.0;
        if head.status.as_u16() < 400 && table.head_rules.is_empty() && table.body_rules.is_empty()
        {
            return Verdict::Decided(Decision::SUCCESS);
        }
        self.judge(call, attempt, head)
    }

    fn body(
        &self,
        call: &HttpCall,
        attempt: Attempt,
        head: &response::Parts,
        body: BodySeen<'_>,
    ) -> Decision {
        let by_status = self.status(head);
        let answer = match body {
            BodySeen::Whole { body, .. } => {
                let seen = Judged {
                    call,
                    attempt,
                    head,
                    body,
                };
                self.0
                    .body_rules
                    .0
                    .iter()
                    .filter(|rule| rule.wants(call, head))
                    .find_map(|rule| rule.judge(seen))
                    .unwrap_or(by_status)
            }
            // What the body would have said is lost, and with it whether the server acted. Only a
            // promise about the status itself still holds.
            BodySeen::TooLarge | BodySeen::Began => match by_status {
                Answer::NotApplied { .. } | Answer::Unclear { .. } => by_status,
                _ => unread(by_status, call.repeatable, false),
            },
            BodySeen::Failed => match by_status {
                Answer::NotApplied { .. } | Answer::Unclear { .. } => by_status,
                _ => unread(by_status, call.repeatable, true),
            },
        };
        self.decide(answer, call, attempt, head)
    }

    fn error(&self, call: &HttpCall, attempt: Attempt, error: &(dyn Error + 'static)) -> Decision {
        by_error(call.repeatable, attempt, error)
    }
}

/// Whether there is a body for a rule to look at (RFC 9110, section 6.4.1).
fn may_have_body(call: &HttpCall, status: StatusCode) -> bool {
    let never = matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    );
    call.answer_has_body && !never && !status.is_informational()
}

/// What is left of an answer whose body a rule needed and could not have.
fn unread(by_status: Answer, repeatable: Repeatable, transient: bool) -> Answer {
    match (by_status, repeatable) {
        // A refusal by status stays one where repeating would be harmless anyway.
        (Answer::Rejected { .. }, Repeatable::Yes(_)) => by_status,
        _ => Answer::Unclear {
            reason: Reason::ResponseBody,
            after: None,
            transient,
        },
    }
}

/// Decides by an error, the same for every protocol on top of HTTP.
pub(super) fn by_error(
    repeatable: Repeatable,
    attempt: Attempt,
    error: &(dyn Error + 'static),
) -> Decision {
    let Some(failure) = Failure::of(error) else {
        let proof = Proof::of(error);
        let outcome = proof.answer().outcome(repeatable, attempt);
        return Decision::new(outcome, proof.delivery);
    };
    let delivery = failure.delivery();
    if failure
        .report()
        .is_some_and(|report| report.settled_by().is_some())
    {
        // Somebody below has found out.
        return Decision::new(failure.outcome(), delivery);
    }
    let answer = match failure.outcome() {
        Outcome::Retryable { reason, after } if delivery.proves_not_applied() => {
            Answer::NotApplied { reason, after }
        }
        // It was harmless to repeat in the eyes of a layer below, which may have been looking at
        // another request: the one whose response is the body of this one.
        Outcome::Retryable { reason, after } => Answer::Unclear {
            reason,
            after,
            transient: true,
        },
        Outcome::Permanent { reason } => Answer::Rejected { reason },
        // What a layer below could not know may be harmless to repeat. A body that failed or an
        // error nobody knows will not do better the next time.
        Outcome::Unknown { reason } => Answer::Unclear {
            reason,
            after: None,
            transient: !matches!(reason, Reason::RequestBody | Reason::Unrecognized),
        },
        // A failure that claims success is nobody's proof of anything.
        Outcome::Success => Answer::Unclear {
            reason: Reason::Unrecognized,
            after: None,
            transient: false,
        },
    };
    Decision::new(answer.outcome(repeatable, attempt), delivery)
}

fn reason(status: StatusCode) -> Reason {
    match status {
        StatusCode::UNAUTHORIZED => Reason::AuthRejected,
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => Reason::TimedOut,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::IM_A_TEAPOT => Reason::RateLimited,
        StatusCode::SERVICE_UNAVAILABLE => Reason::Overloaded,
        status if status.is_client_error() => Reason::Rejected,
        _ => Reason::ServerError,
    }
}

// === impl HttpCall ===

impl HttpCall {
    /// Returns whether sending the request twice is harmless, and on whose word.
    #[must_use]
    pub const fn repeatable(&self) -> Repeatable {
        self.repeatable
    }
}

// === impl Table ===

impl Table {
    #[inline]
    fn repeatable(&self, request: &request::Parts) -> Repeatable {
        if let Some(marked) = Repeatable::of(&request.extensions) {
            return marked;
        }
        // Most requests that are looked at closely are a POST: it is asked about once.
        if request.method.is_idempotent() {
            if request.method.is_safe() {
                return Repeatable::Yes(RepeatableBecause::SafeMethod);
            }
            if self.methods == RepeatableMethods::Idempotent {
                return Repeatable::Yes(RepeatableBecause::IdempotentMethod);
            }
        }
        if self.has_key(&request.headers) {
            Repeatable::Yes(RepeatableBecause::IdempotencyKey)
        } else {
            Repeatable::No
        }
    }

    /// Compares names one by one: for the few headers of a request this costs half of computing the
    /// hash of a name that is not a standard one. Out of line, where the walk itself is inlined.
    #[inline(never)]
    fn has_key(&self, headers: &HeaderMap) -> bool {
        let Some(key_header) = &self.key_header else {
            return false;
        };
        headers
            .iter()
            .find(|&(name, _)| name == key_header)
            .is_some_and(|(_, key)| !key.is_empty())
    }

    /// What the API says in a header of its own.
    fn should_retry(&self, head: &response::Parts) -> Option<bool> {
        let name: &HeaderName = self.should_retry_header.as_ref()?;
        let said = head.headers.get(name)?;
        if said.as_bytes().eq_ignore_ascii_case(b"true") {
            Some(true)
        } else if said.as_bytes().eq_ignore_ascii_case(b"false") {
            Some(false)
        } else {
            None
        }
    }
}
