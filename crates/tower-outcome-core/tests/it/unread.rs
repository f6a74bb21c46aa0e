//! A body that a rule needed and could not have.

use tower_outcome_core::{
    Answer, Attempt, BodySeen, Classify, Decision, Delivery, HttpClassifier, Judged, Reason,
    Repeatable,
};

use crate::support::*;

fn classifier() -> HttpClassifier {
    HttpClassifier::builder()
        .refuses_before_acting([status(429)])
        .body_rule(|seen: Judged<'_>| {
            let failed = seen.body.starts_with(b"{\"error\"");
            failed.then_some(Answer::Rejected {
                reason: Reason::ClockSkew,
            })
        })
        .build()
        .unwrap()
}

fn seen(code: u16, repeatable: Repeatable, body: BodySeen<'_>) -> Decision {
    let classifier = classifier();
    let call = classifier.call(&such(repeatable));
    classifier.body(&call, Attempt::FIRST, &head(code), body)
}

#[test]
fn a_whole_body_is_judged_by_the_rule_and_else_by_the_status() {
    let whole = |body| BodySeen::Whole {
        body,
        trailers: None,
    };
    for repeatable in REPEATABLE {
        for code in [200, 403, 429, 500] {
            let ruled = seen(code, repeatable, whole(b"{\"error\":1}"));
            assert_eq!(ruled.outcome, permanent(Reason::ClockSkew), "{code}");
        }
        assert!(seen(200, repeatable, whole(b"{}")).outcome.is_success());
        assert!(seen(403, repeatable, whole(b"")).outcome.is_permanent());
        assert!(seen(429, repeatable, whole(b"{}")).outcome.is_retryable());
    }
}

/// Rows: status, and what is left of it if the request is repeatable, and if not.
#[test]
fn a_body_over_its_bound_leaves_what_the_status_alone_can_say() {
    for (code, if_repeatable, if_not) in [
        (200, "permanent (response_body)", "unknown (response_body)"),
        (302, "permanent (response_body)", "unknown (response_body)"),
        (401, "permanent (auth_rejected)", "unknown (response_body)"),
        (403, "permanent (rejected)", "unknown (response_body)"),
        (425, "retryable (rejected)", "retryable (rejected)"),
        (429, "retryable (rate_limited)", "retryable (rate_limited)"),
        (500, "retryable (server_error)", "unknown (server_error)"),
        (501, "permanent (server_error)", "unknown (response_body)"),
        (507, "permanent (server_error)", "unknown (server_error)"),
    ] {
        for repeatable in REPEATABLE {
            let expected = if repeatable.is_yes() {
                if_repeatable
            } else {
                if_not
            };
            let decision = seen(code, repeatable, BodySeen::TooLarge);
            assert_eq!(decision.outcome.to_string(), expected, "{code}");
            // Only some bodies are "begun", and of a begun body as little is known.
            let began = seen(code, repeatable, BodySeen::Began);
            assert_eq!(began, decision, "{code}");
        }
    }
}

#[test]
fn a_body_that_failed_may_come_whole_the_next_time() {
    for (code, if_repeatable, if_not) in [
        (200, "retryable (response_body)", "unknown (response_body)"),
        (302, "retryable (response_body)", "unknown (response_body)"),
        (401, "permanent (auth_rejected)", "unknown (response_body)"),
        (403, "permanent (rejected)", "unknown (response_body)"),
        (425, "retryable (rejected)", "retryable (rejected)"),
        (429, "retryable (rate_limited)", "retryable (rate_limited)"),
        (500, "retryable (server_error)", "unknown (server_error)"),
        (501, "permanent (server_error)", "unknown (response_body)"),
        (507, "permanent (server_error)", "unknown (server_error)"),
    ] {
        for repeatable in REPEATABLE {
            let expected = if repeatable.is_yes() {
                if_repeatable
            } else {
                if_not
            };
            let decision = seen(code, repeatable, BodySeen::Failed);
            assert_eq!(decision.outcome.to_string(), expected, "{code}");
        }
    }
}

#[test]
fn the_server_has_answered_whatever_became_of_the_body() {
    for body in [BodySeen::TooLarge, BodySeen::Failed] {
        assert_eq!(seen(200, Repeatable::No, body).delivery, Delivery::Answered);
        assert_eq!(seen(429, Repeatable::No, body).delivery, Delivery::Refused);
    }
}
