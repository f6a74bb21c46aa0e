//! Requests, answers, and a layer that does no more than ask the classifier.

use std::{error::Error, fmt, time::Duration};

use http::{Method, Request, Response, StatusCode, request, response};
use tower_outcome_core::{
    Attempt, BodySeen, BoxError, Classify, Decision, HintForm, Outcome, Reason, Repeatable,
    RepeatableBecause, RetryAfter, Verdict,
};

/// Every way in which a request is repeatable or not.
pub(crate) const REPEATABLE: [Repeatable; 5] = [
    Repeatable::Yes(RepeatableBecause::SafeMethod),
    Repeatable::Yes(RepeatableBecause::IdempotentMethod),
    Repeatable::Yes(RepeatableBecause::IdempotencyKey),
    Repeatable::Yes(RepeatableBecause::Marked),
    Repeatable::No,
];

/// Every reason there is.
pub(crate) const REASONS: [Reason; 17] = [
    Reason::AuthRejected,
    Reason::AuthUnavailable,
    Reason::ClockSkew,
    Reason::Duplicate,
    Reason::InvalidNonce,
    Reason::InvalidRequest,
    Reason::LocalLimit,
    Reason::Overloaded,
    Reason::RateLimited,
    Reason::Rejected,
    Reason::RequestBody,
    Reason::ResponseBody,
    Reason::ServerError,
    Reason::TimedOut,
    Reason::Transport,
    Reason::Unrecognized,
    Reason::WrongOrder,
];

/// An error that only passes on what is below it, as middleware everywhere has.
#[derive(Debug)]
pub(crate) struct Wrapper(pub(crate) BoxError);

/// An error of a type that nobody knows.
#[derive(Debug)]
pub(crate) struct Stranger;

pub(crate) fn request(method: Method) -> request::Parts {
    let request = Request::builder()
        .method(method)
        .uri("https://venue.test/orders")
        .body(());
    request.unwrap().into_parts().0
}

pub(crate) fn get() -> request::Parts {
    request(Method::GET)
}

pub(crate) fn post() -> request::Parts {
    request(Method::POST)
}

pub(crate) fn keyed_post() -> request::Parts {
    let mut post = post();
    let key = "order-1".parse().unwrap();
    post.headers.insert("idempotency-key", key);
    post
}

pub(crate) fn marked(mut request: request::Parts, mark: Repeatable) -> request::Parts {
    request.extensions.insert(mark);
    request
}

/// A request that is repeatable in exactly this way, by the defaults.
pub(crate) fn such(repeatable: Repeatable) -> request::Parts {
    match repeatable {
        Repeatable::Yes(RepeatableBecause::SafeMethod) => get(),
        Repeatable::Yes(RepeatableBecause::IdempotentMethod) => request(Method::PUT),
        Repeatable::Yes(RepeatableBecause::IdempotencyKey) => keyed_post(),
        Repeatable::Yes(_) => marked(post(), repeatable),
        Repeatable::No => post(),
    }
}

pub(crate) fn statuses() -> impl Iterator<Item = StatusCode> {
    (100..=999).map(|code| StatusCode::from_u16(code).unwrap())
}

pub(crate) fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap()
}

pub(crate) fn answer(code: u16, headers: &[(&str, &str)], body: &str) -> Response<Vec<u8>> {
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

pub(crate) fn head(code: u16) -> response::Parts {
    answer(code, &[], "").into_parts().0
}

/// The second attempt, after one that may have been applied.
pub(crate) fn after_maybe_applied() -> Attempt {
    Attempt::FIRST.next(true)
}

/// Asks the classifier as a layer does: about the head, and then the body if it wants to see it.
pub(crate) fn decide<C: Classify>(
    classifier: &C,
    request: &request::Parts,
    attempt: Attempt,
    response: Response<Vec<u8>>,
) -> Decision {
    let call = classifier.call(request);
    let (head, body) = response.into_parts();
    match classifier.response(&call, attempt, &head) {
        Verdict::Decided(decision) => decision,
        Verdict::NeedsBody { limit } => {
            let seen = if body.len() > limit {
                BodySeen::TooLarge
            } else {
                BodySeen::Whole {
                    body: &body,
                    trailers: None,
                }
            };
            classifier.body(&call, attempt, &head, seen)
        }
        other => panic!("{other:?} is not for HTTP"),
    }
}

/// The same on the first attempt, for who cares about the outcome alone.
pub(crate) fn outcome<C: Classify>(
    classifier: &C,
    request: &request::Parts,
    response: Response<Vec<u8>>,
) -> Outcome {
    decide(classifier, request, Attempt::FIRST, response).outcome
}

pub(crate) fn by_error<C: Classify>(
    classifier: &C,
    request: &request::Parts,
    error: &(dyn Error + 'static),
) -> Decision {
    classifier.error(&classifier.call(request), Attempt::FIRST, error)
}

pub(crate) fn retryable(reason: Reason) -> Outcome {
    Outcome::Retryable {
        reason,
        after: None,
    }
}

pub(crate) fn retryable_after(reason: Reason, seconds: u64, form: HintForm) -> Outcome {
    Outcome::Retryable {
        reason,
        after: Some(RetryAfter::new(Duration::from_secs(seconds), form)),
    }
}

pub(crate) fn permanent(reason: Reason) -> Outcome {
    Outcome::Permanent { reason }
}

pub(crate) const fn unknown(reason: Reason) -> Outcome {
    Outcome::Unknown { reason }
}

// === impl Wrapper ===

impl fmt::Display for Wrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("something below failed")
    }
}

impl Error for Wrapper {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

// === impl Stranger ===

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody knows")
    }
}

impl Error for Stranger {}
