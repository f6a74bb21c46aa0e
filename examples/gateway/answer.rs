//! From what became of a call to what its caller is told.
//!
//! Every proxied answer says in `x-outcome` what became of the call: `success`, `retryable`, `permanent` or
//! `unknown`; with `x-outcome-reason`, `x-outcome-delivery`, `x-outcome-attempts` and, where nothing more was
//! tried, `x-outcome-not-retried`.
//!
//! | what became of the call | status | body |
//! |---|---|---|
//! | the upstream answered, and it is not Unknown | the upstream's | the upstream's |
//! | the upstream answered, **Unknown** (a 5xx, 429, 408 or 101 to a POST) | 504 where the upstream's is 504, and else 502; the upstream's in `upstream_status` | problem `unknown` |
//! | no answer, **Unknown**, a bound struck | 504 | problem `unknown` |
//! | no answer, **Unknown**, otherwise | 502 | problem `unknown` |
//! | not let through by a limit on this side | 503, with `Retry-After` where that is known | problem `local-limit` |
//! | no slot among those in flight | 503 | problem `local-limit` |
//! | no credential for the upstream | 503, or 502 if only a human can help | problem `no-credential` |
//! | a bound struck; proven not acted on, or harmless to repeat | 504 | problem `timed-out` |
//! | the caller's body broke off, or the request cannot be signed or sent as it is; proven not acted on | 400, or 413 for a body that is too large to be signed | problem `bad-request` |
//! | no connection; refused; broken, but harmless to repeat; or a change of protocol that nobody asked for | 502 | problem `not-done` |
//! | not sent: no upstream has the path, or the request asks for something that cannot be understood | 404, 400 | problem `no-upstream`, `bad-request` |
//! | anything else of this gateway's own making | 500 | problem `gateway` |
//!
//! So a call that may have been applied never looks like a 4xx or a 503, which say "not done" and "come back",
//! nor like a success. An Unknown carries no `Retry-After`: sending it again is what must not be done.

use std::{error::Error, sync::Arc, time::Duration};

use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::Instant;
use tower_outcome::{
    Bound, BoxError, CallReport, Delivery, Elapsed, Failure, NotRetried, OutboundBody, Outcome,
    Reason, Refused, SignError, Unavailable, sign::SignErrorKind,
};

use super::{counters::Open, headers, problem::Problem, upstream::Upstream};

const OUTCOME: HeaderName = HeaderName::from_static("x-outcome");
const REASON: HeaderName = HeaderName::from_static("x-outcome-reason");
const DELIVERY: HeaderName = HeaderName::from_static("x-outcome-delivery");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-outcome-attempts");
const NOT_RETRIED: HeaderName = HeaderName::from_static("x-outcome-not-retried");

/// Of the problem `not-done`.
const NOT_ANSWERED: &str = "The upstream did not answer; it was not done, or may be sent again";

/// What is told of a call besides the answer itself.
struct Told {
    outcome: Outcome,
    delivery: Delivery,
    attempts: u32,
    not_retried: Option<NotRetried>,
}

/// Makes the answer for the caller, and counts it.
pub(crate) fn make(
    result: Result<Response<OutboundBody>, BoxError>,
    upstream: &Upstream,
    open: Open,
    what: &str,
) -> Response<Body> {
    let told = Told::of(&result);
    upstream.counters.answered(&told.outcome);
    if !told.outcome.is_success() {
        eprintln!("{what}: {told}");
    }
    let mut answer = match result {
        Ok(response) if told.outcome.is_unknown() => {
            let theirs = response.status();
            let status = match theirs {
                StatusCode::GATEWAY_TIMEOUT => theirs,
                _ => StatusCode::BAD_GATEWAY,
            };
            told.unknown(status, upstream)
                .with("upstream_status", theirs.as_u16())
                .into_response()
        }
        // It would be the end of HTTP on the caller's connection.
        Ok(response) if response.status().is_informational() => told
            .problem(StatusCode::BAD_GATEWAY, "not-done", NOT_ANSWERED, upstream)
            .with("upstream_status", response.status().as_u16())
            .into_response(),
        Ok(response) => passed_on(response, upstream, open, what),
        Err(error) => {
            eprintln!("{what}: {:#}", Shown(&*error));
            told.failed(&*error, upstream)
        }
    };
    told.put(answer.headers_mut());
    answer
}

/// Makes the answer to a request that was not sent, since there is something wrong with it.
pub(crate) fn refuse(problem: Problem) -> Response<Body> {
    let told = Told {
        outcome: Outcome::Permanent {
            reason: Reason::InvalidRequest,
        },
        delivery: Delivery::NotSent,
        attempts: 0,
        not_retried: None,
    };
    let mut answer = problem.into_response();
    told.put(answer.headers_mut());
    answer
}

/// The upstream's answer, without what was for this hop, and without what only this gateway says.
fn passed_on(
    response: Response<OutboundBody>,
    upstream: &Upstream,
    open: Open,
    what: &str,
) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    head.extensions.clear();
    headers::remove_hop_by_hop(&mut head.headers);
    for name in [OUTCOME, REASON, DELIVERY, ATTEMPTS, NOT_RETRIED] {
        head.headers.remove(name);
    }
    // The head is on its way already. All that can be done is not to end the body as if it were whole.
    let (counters, what) = (Arc::clone(&upstream.counters), what.to_owned());
    let body = body.map_err(move |error| {
        // The call is under way for as long as this is.
        let _ = &open;
        counters.cut_short();
        eprintln!("{what}: {:#}", Shown(&*error));
        error
    });
    Response::from_parts(head, Body::new(body))
}

// === impl Told ===

impl Told {
    fn of<B>(result: &Result<Response<B>, BoxError>) -> Self {
        let outcome = CallReport::outcome_of(result);
        let report = CallReport::in_result(result);
        let delivery = match result {
            Ok(_) => report.map_or(Delivery::Answered, CallReport::delivery),
            Err(error) => Failure::of(&**error).map_or(Delivery::MaybeSent, Failure::delivery),
        };
        Self {
            outcome,
            delivery,
            attempts: report.map_or(1, CallReport::attempts),
            not_retried: report.and_then(CallReport::not_retried).cloned(),
        }
    }

    fn put(&self, headers: &mut HeaderMap) {
        let text = HeaderValue::from_static;
        headers.insert(OUTCOME, text(self.outcome.label()));
        if let Some(reason) = self.outcome.reason() {
            headers.insert(REASON, text(reason.label()));
        }
        headers.insert(DELIVERY, text(self.delivery.label()));
        headers.insert(ATTEMPTS, HeaderValue::from(self.attempts));
        if let Some(why) = &self.not_retried {
            headers.insert(NOT_RETRIED, text(why.label()));
        }
    }

    /// Starts a problem with what is the same for all.
    fn problem(&self, status: StatusCode, kind: &str, title: &str, upstream: &Upstream) -> Problem {
        Problem::new(status, kind, title)
            .with("upstream", upstream.name.as_str())
            .with("outcome", self.outcome.label())
            .with("reason", json!(self.outcome.reason().map(Reason::label)))
            .with("delivery", self.delivery.label())
            .with("attempts", self.attempts)
            .with(
                "not_retried",
                json!(self.not_retried.as_ref().map(NotRetried::label)),
            )
    }

    fn unknown(&self, status: StatusCode, upstream: &Upstream) -> Problem {
        let title = "The request may have been applied; ask before sending it again";
        self.problem(status, "unknown", title, upstream)
    }

    /// The answer to a call that the upstream has not answered.
    fn failed(&self, error: &(dyn Error + 'static), upstream: &Upstream) -> Response<Body> {
        let struck = Elapsed::of(error).map(Elapsed::bound);
        let (problem, after) = if self.outcome.is_unknown() {
            let status = match struck {
                Some(_) => StatusCode::GATEWAY_TIMEOUT,
                None => StatusCode::BAD_GATEWAY,
            };
            (self.unknown(status, upstream), None)
        } else {
            let (status, kind, title, after) = self.not_done(error, struck);
            (self.problem(status, kind, title, upstream), after)
        };
        let problem = match struck {
            Some(bound) => problem.with("bound", bound.label()),
            None => problem,
        };
        // Where this side made the key, only with it can the same operation be sent again.
        let key = Failure::of(error).and_then(Failure::idempotency_key);
        let problem = match key.and_then(|key| key.to_str().ok()) {
            Some(key) => problem.with("idempotency_key", key),
            None => problem,
        };
        let mut answer = problem.into_response();
        if let Some(after) = after {
            answer
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds(after));
        }
        answer
    }

    /// What is answered where nobody acted, or where it is harmless to repeat.
    fn not_done(
        &self,
        error: &(dyn Error + 'static),
        struck: Option<Bound>,
    ) -> (StatusCode, &'static str, &'static str, Option<Duration>) {
        const LIMIT: &str = "Not sent: a limit on this side did not let it through";
        if let Some(refused) = cause::<Refused>(error) {
            return match refused.is_final() {
                true => (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "gateway",
                    "Not sent: it costs more than there is of a limit",
                    None,
                ),
                false => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "local-limit",
                    LIMIT,
                    refused.retry_after(Instant::now()),
                ),
            };
        }
        if let Some(unavailable) = cause::<Unavailable>(error) {
            let title = "Not sent: there is no credential for the upstream";
            let status = match unavailable.is_dead() {
                true => StatusCode::BAD_GATEWAY,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            return (status, "no-credential", title, unavailable.after());
        }
        match (struck, self.outcome.reason()) {
            (Some(Bound::Acquire), _) => {
                (StatusCode::SERVICE_UNAVAILABLE, "local-limit", LIMIT, None)
            }
            (Some(_), _) => (
                StatusCode::GATEWAY_TIMEOUT,
                "timed-out",
                "Time ran out; it was not done, or may be sent again",
                None,
            ),
            (None, Some(Reason::InvalidRequest)) if too_large(error) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "bad-request",
                "Not sent: the body is larger than what is signed",
                None,
            ),
            (None, Some(Reason::RequestBody | Reason::InvalidRequest))
                if self.delivery.proves_not_applied() =>
            {
                (
                    StatusCode::BAD_REQUEST,
                    "bad-request",
                    "The request cannot be sent as it is",
                    None,
                )
            }
            (None, Some(Reason::WrongOrder | Reason::LocalLimit)) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "gateway",
                "Not sent: this gateway could not",
                None,
            ),
            (None, _) => (StatusCode::BAD_GATEWAY, "not-done", NOT_ANSWERED, None),
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (outcome, delivery, attempts) = (self.outcome, self.delivery.label(), self.attempts);
        write!(f, "{outcome}, {delivery}, attempts: {attempts}")?;
        match &self.not_retried {
            Some(why) => write!(f, ", not retried: {why}"),
            None => Ok(()),
        }
    }
}

/// An error with its causes.
struct Shown<'a>(&'a (dyn Error + 'static));

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, error) in chain(self.0).enumerate() {
            let between = if place == 0 { "" } else { ": " };
            write!(f, "{between}{error}")?;
        }
        Ok(())
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(<dyn Error>::downcast_ref)
}

fn too_large(error: &(dyn Error + 'static)) -> bool {
    let kind = SignError::of(error).map(SignError::kind);
    matches!(kind, Some(SignErrorKind::BodyTooLarge { .. }))
}

/// Whole seconds, rounded up, and never "at once" (RFC 9110, section 10.2.3).
fn seconds(after: Duration) -> HeaderValue {
    let whole = after.as_secs();
    HeaderValue::from(
        whole
            .saturating_add(u64::from(after.subsec_nanos() > 0))
            .max(1),
    )
}
