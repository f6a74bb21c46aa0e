//! The report of a call, and the labels that end up in spans and metrics.

use std::{collections::HashSet, time::Duration};

use http::Response;
use tower_outcome_core::{
    BoxError, CallReport, Delivery, Failure, HintForm, NotReady, NotRetried, Outcome, Phase,
    Reason, Repeatable, RetryAfter,
};

use crate::support::*;

fn report(outcome: Outcome) -> CallReport {
    CallReport::new(outcome, Delivery::Answered, Repeatable::No)
}

fn carrying(report: CallReport) -> Result<Response<()>, BoxError> {
    let mut response = Response::new(());
    response.extensions_mut().insert(report);
    Ok(response)
}

#[test]
fn the_outcome_of_a_response_is_that_of_its_report_and_else_a_success() {
    let plain = Ok(Response::new(()));
    assert_eq!(CallReport::outcome_of(&plain), Outcome::Success);
    assert!(CallReport::in_result(&plain).is_none());
    let result = carrying(report(unknown(Reason::TimedOut)));
    assert_eq!(CallReport::outcome_of(&result), unknown(Reason::TimedOut));
    let found = CallReport::in_result(&result).unwrap();
    assert_eq!(found.outcome(), unknown(Reason::TimedOut));
}

#[test]
fn a_failure_that_nobody_has_judged_is_unknown() {
    for status in statuses() {
        let mut response = Response::new(());
        *response.status_mut() = status;
        let outcome = CallReport::outcome_of(&Ok(response));
        let expected = if status.as_u16() < 400 {
            Outcome::Success
        } else {
            unknown(Reason::Unrecognized)
        };
        assert_eq!(outcome, expected, "{status}");
    }
}

#[test]
fn the_outcome_of_an_error_is_that_of_its_failure_and_else_unknown() {
    let stranger: Result<Response<()>, BoxError> = Err(Stranger.into());
    let nobody_knows = unknown(Reason::Unrecognized);
    assert_eq!(CallReport::outcome_of(&stranger), nobody_knows);
    assert!(CallReport::in_result(&stranger).is_none());

    let failure = || Failure::not_sent(Reason::LocalLimit, Stranger);
    let bare: Result<Response<()>, BoxError> = Err(Wrapper(failure().into()).into());
    assert_eq!(CallReport::outcome_of(&bare), retryable(Reason::LocalLimit));
    assert!(CallReport::in_result(&bare).is_none());

    let failure = failure().with_report(report(permanent(Reason::Rejected)));
    let reported: Result<Response<()>, BoxError> = Err(Wrapper(failure.into()).into());
    let found = CallReport::in_result(&reported).unwrap();
    assert_eq!(found.outcome(), permanent(Reason::Rejected));
    // The failure is what the caller holds, so its word counts.
    let outcome = CallReport::outcome_of(&reported);
    assert_eq!(outcome, retryable(Reason::LocalLimit));
}

#[test]
fn a_report_begins_with_one_attempt_and_keeps_what_it_is_told() {
    let report = report(unknown(Reason::TimedOut));
    assert_eq!(report.attempts(), 1);
    assert_eq!(report.waited(), Duration::ZERO);
    assert_eq!(report.delivery(), Delivery::Answered);
    assert_eq!(report.repeatable(), Repeatable::No);
    assert!(report.after().is_none() && report.not_retried().is_none());
    let after = RetryAfter::new(Duration::from_secs(9), HintForm::Custom);
    let report = report
        .with_attempts(3, Duration::from_millis(150))
        .with_after(Some(after))
        .with_not_retried(Some(NotRetried::Exhausted));
    assert_eq!(report.attempts(), 3);
    assert_eq!(report.waited(), Duration::from_millis(150));
    assert_eq!(report.after(), Some(after));
    assert_eq!(report.not_retried().unwrap().label(), "exhausted");
}

/// Every reason for not going on, its label, and whether a layer above should not start over.
#[test]
fn each_reason_for_not_going_on_has_its_label() {
    let not_ready = || NotRetried::NotReady(NotReady::new(Stranger.into()));
    for (why, label, is_giving_up) in [
        (NotRetried::AlreadyGivenUp, "already_given_up", true),
        (NotRetried::BodyNotReplayable, "body_not_replayable", true),
        (NotRetried::BudgetSpent, "budget_spent", true),
        (NotRetried::Deadline, "deadline", true),
        (NotRetried::Elapsed, "elapsed", true),
        (NotRetried::Exhausted, "exhausted", true),
        (NotRetried::HintTooLong, "hint_too_long", true),
        (not_ready(), "not_ready", true),
        (NotRetried::Outcome, "outcome", false),
        (NotRetried::SwitchedOff, "switched_off", false),
    ] {
        assert_eq!(why.label(), label);
        assert_eq!(why.to_string(), label);
        assert_eq!(why.is_giving_up(), is_giving_up, "{label}");
    }
    let NotRetried::NotReady(kept) = not_ready() else {
        panic!("made as such");
    };
    assert!(kept.error().is::<Stranger>());
}

fn are_labels(labels: &[&str]) {
    let distinct: HashSet<_> = labels.iter().collect();
    assert_eq!(distinct.len(), labels.len(), "{labels:?}");
    for label in labels {
        let words = label.split('_');
        let lower = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
        assert!(words.into_iter().all(lower), "{label}");
    }
}

#[test]
fn labels_are_distinct_and_in_snake_case() {
    are_labels(&REASONS.map(Reason::label));
    are_labels(&REPEATABLE.map(Repeatable::label));
    let phases = [
        Phase::Queued,
        Phase::AwaitingToken,
        Phase::BackingOff,
        Phase::Connecting,
        Phase::Sending,
        Phase::AwaitingHead,
        Phase::ReadingBody,
    ];
    are_labels(&phases.map(Phase::label));
}

#[test]
fn the_labels_of_reasons_are_those_that_dashboards_know() {
    let labels = [
        "auth_rejected",
        "auth_unavailable",
        "clock_skew",
        "duplicate",
        "invalid_nonce",
        "invalid_request",
        "local_limit",
        "overloaded",
        "rate_limited",
        "rejected",
        "request_body",
        "response_body",
        "server_error",
        "timed_out",
        "transport",
        "unrecognized",
        "wrong_order",
    ];
    assert_eq!(REASONS.map(Reason::label), labels);
    assert_eq!(REASONS.map(|reason| reason.to_string()), labels);
    let throttling = REASONS.into_iter().filter(|reason| reason.is_throttling());
    assert_eq!(throttling.collect::<Vec<_>>(), [Reason::RateLimited]);
}

#[test]
fn an_outcome_prints_its_word_and_its_reason() {
    let after = retryable_after(Reason::RateLimited, 3, HintForm::Seconds);
    for (outcome, word, text) in [
        (Outcome::Success, "success", "success"),
        (after, "retryable", "retryable (rate_limited)"),
        (
            permanent(Reason::Rejected),
            "permanent",
            "permanent (rejected)",
        ),
        (unknown(Reason::TimedOut), "unknown", "unknown (timed_out)"),
    ] {
        assert_eq!(outcome.label(), word);
        assert_eq!(outcome.to_string(), text);
        let is = [
            outcome.is_success(),
            outcome.is_retryable(),
            outcome.is_permanent(),
            outcome.is_unknown(),
        ];
        assert_eq!(is.into_iter().filter(|&is| is).count(), 1);
        assert_eq!(outcome.after().is_some(), word == "retryable");
        assert_eq!(outcome.reason().is_some(), word != "success");
    }
}
