//! What budgets learn from answers.

use http::{StatusCode, header, response};
use tokio::time::Instant;
use tower_outcome_core::{Decision, Reason, RetryAfter};

use crate::{Departure, layer::Config, leave::Leave};

/// What has to be known of a request to make sense of what its response says about the limits.
#[derive(Debug)]
pub(crate) struct Notes {
    sent: Instant,
    /// By scope.
    departures: Vec<Departure>,
}

// === impl Notes ===

impl Notes {
    /// Takes notes of a request that is about to be sent.
    #[cold]
    pub(crate) fn take(leave: &Leave) -> Box<Self> {
        Box::new(Self {
            sent: Instant::now(),
            departures: leave.budgets().map(crate::Budget::departure).collect(),
        })
    }
}

/// Tells the budgets what a response says about their limits and about the venue's clock.
#[cold]
pub(crate) fn learn<C>(config: &Config<C>, leave: &Leave, notes: &Notes, head: &response::Parts) {
    let date = date(head);
    let received = Instant::now();
    let scopes = config.scopes.iter().zip(leave.budgets());
    for ((scope, budget), departure) in scopes.zip(&notes.departures) {
        if let (true, Some(date)) = (budget.is_aligned(), date) {
            budget.observe_date(notes.sent, received, date);
        }
        for (limit, headers) in &scope.usage {
            if let Some(reported) = headers.read(&head.headers, config.clock.now()) {
                budget.report(*limit, &reported, departure);
            }
        }
    }
}

/// The seconds since the Unix epoch of a `Date`, unless it is not the venue's: that of a cache, or of a
/// gateway that got no answer from the venue, or none that made sense (RFC 9110, section 15.6); or there are
/// several.
fn date(head: &response::Parts) -> Option<u64> {
    let status = head.status;
    if status == StatusCode::BAD_GATEWAY || status == StatusCode::GATEWAY_TIMEOUT {
        return None;
    }
    let headers = &head.headers;
    if headers.get(header::AGE).is_some_and(|age| age != "0") {
        return None;
    }
    let mut dates = headers.get_all(header::DATE).iter();
    let date = dates.next()?.to_str().ok()?;
    if dates.next().is_some() {
        return None;
    }
    let date = httpdate::parse_http_date(date).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

/// Closes the gate of the budgets whose limits a response says were exceeded.
#[inline]
pub(crate) fn heed<C>(
    config: &Config<C>,
    leave: &Leave,
    head: &response::Parts,
    decision: Decision,
) {
    if decision.outcome.reason().is_some_and(Reason::is_throttling) {
        close(config, leave, head, decision.after);
    }
}

#[cold]
fn close<C>(config: &Config<C>, leave: &Leave, head: &response::Parts, after: Option<RetryAfter>) {
    let hint = after.map(|after| after.delay());
    for (place, (scope, budget)) in config.scopes.iter().zip(leave.budgets()).enumerate() {
        if scope.is_closed_by(head, place) {
            if head.status == StatusCode::IM_A_TEAPOT {
                budget.banned(hint);
            } else {
                budget.throttled(hint);
            }
        }
    }
}

/// The same where the inner service made an error of the refusal. Without a head nobody can say
/// whose limit it was, and it is taken for the narrowest.
pub(crate) fn heed_error(leave: &Leave, decision: Decision) {
    if decision.outcome.reason().is_some_and(Reason::is_throttling) {
        if let Some(budget) = leave.budgets().next() {
            budget.throttled(decision.after.map(|after| after.delay()));
        }
    }
}
