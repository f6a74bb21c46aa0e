//! Identifiers that the server has seen before, and refusals that come too late to be believed.

use http::request;
use serde_json::Value;
use tower_outcome_core::{
    Answer, Attempt, Classify, GrpcClassifier, HttpClassifier, Judged, Outcome, Reason, Repeatable,
    RepeatableBecause, Verdict,
};

use crate::support::*;

/// Binance answers with a negative `code`, in a 400 or a 5xx.
fn binance() -> HttpClassifier {
    let rule = |seen: Judged<'_>| {
        let document: Value = serde_json::from_slice(seen.body).ok()?;
        Some(match document.get("code")?.as_i64()? {
            -1006 | -1007 => Answer::Unclear {
                reason: Reason::TimedOut,
                after: None,
                transient: true,
            },
            -1021 => Answer::NotApplied {
                reason: Reason::ClockSkew,
                after: None,
            },
            -4116 => Answer::Duplicate,
            -2010 | -2019 => Answer::Rejected {
                reason: Reason::Rejected,
            },
            _ => return None,
        })
    };
    HttpClassifier::builder().body_rule(rule).build().unwrap()
}

/// The order carries a `newClientOrderId`, which the venue accepts only once.
fn order() -> request::Parts {
    marked(post(), Repeatable::Yes(RepeatableBecause::Marked))
}

fn said(request: &request::Parts, attempt: Attempt, status: u16, code: i32) -> Outcome {
    let body = format!(r#"{{"code":{code},"msg":"as it may be worded today"}}"#);
    decide(&binance(), request, attempt, answer(status, &[], &body)).outcome
}

#[test]
fn a_status_that_the_venue_does_not_know_itself_is_unknown() {
    for status in [200, 400, 503] {
        let unmarked = said(&post(), Attempt::FIRST, status, -1007);
        assert_eq!(unmarked, unknown(Reason::TimedOut), "{status}");
        let with_id = said(&order(), Attempt::FIRST, status, -1007);
        assert_eq!(with_id, retryable(Reason::TimedOut), "{status}");
    }
}

#[test]
fn a_duplicate_after_an_unknown_attempt_is_no_rejection() {
    // The first attempt arrived: whether it was accepted is for the server to say.
    let second = said(&order(), after_maybe_applied(), 400, -4116);
    assert_eq!(second, unknown(Reason::Duplicate));
}

#[test]
fn a_duplicate_on_the_first_attempt_is_the_callers_mistake() {
    let first = said(&order(), Attempt::FIRST, 400, -4116);
    assert_eq!(first, permanent(Reason::Duplicate));
}

#[test]
fn a_duplicate_may_count_as_applied_where_the_venue_promises_that() {
    let rule = |seen: Judged<'_>| {
        let duplicate = seen.head.status == 409;
        (duplicate && seen.attempt.maybe_applied_before()).then_some(Answer::Applied)
    };
    let classifier = HttpClassifier::builder().head_rule(rule).build().unwrap();
    let conflict = |attempt| decide(&classifier, &order(), attempt, answer(409, &[], "")).outcome;
    assert_eq!(conflict(after_maybe_applied()), Outcome::Success);
    assert_eq!(conflict(Attempt::FIRST), permanent(Reason::Rejected));
}

#[test]
fn insufficient_funds_after_an_unknown_attempt_may_mean_that_it_was_filled() {
    let first = said(&order(), Attempt::FIRST, 400, -2010);
    assert_eq!(first, permanent(Reason::Rejected));
    let second = said(&order(), after_maybe_applied(), 400, -2010);
    assert_eq!(second, unknown(Reason::Rejected));
}

#[test]
fn a_time_out_of_the_signature_was_not_acted_on() {
    for request in [post(), order()] {
        let outcome = said(&request, Attempt::FIRST, 400, -1021);
        assert_eq!(outcome, retryable(Reason::ClockSkew));
    }
}

#[test]
fn a_code_that_can_never_succeed_is_permanent_on_the_first_attempt() {
    let lot_size = said(&order(), Attempt::FIRST, 400, -1013);
    assert_eq!(lot_size, permanent(Reason::Rejected));
}

#[test]
fn the_same_key_with_other_parameters_is_permanent() {
    let error = r#"{"error":{"type":"idempotency_error","message":"Keys are for one use"}}"#;
    let refused = answer(400, &[("stripe-should-retry", "false")], error);
    let outcome = outcome(&HttpClassifier::new(), &keyed_post(), refused);
    assert_eq!(outcome, permanent(Reason::Rejected));
}

#[test]
fn the_wording_of_an_error_changes_nothing() {
    for wording in ["Lock timeout", "Object is locked", "", "retry later"] {
        let body = format!(r#"{{"error":{{"code":"lock_timeout","message":"{wording}"}}}}"#);
        let locked = || answer(429, &[], &body);
        let keyed = outcome(&HttpClassifier::new(), &keyed_post(), locked());
        assert_eq!(keyed, retryable(Reason::RateLimited));
        let plain = outcome(&HttpClassifier::new(), &post(), locked());
        assert_eq!(plain, unknown(Reason::RateLimited));
    }
}

#[test]
fn a_grpc_duplicate_after_an_internal_error_stays_unknown() {
    let classifier = GrpcClassifier::builder()
        .repeatable(["/orders.OrdersService/PostOrder"])
        .transient([8, 13, 14])
        .build()
        .unwrap();
    let mut order = post();
    order.uri = "https://venue.test/orders.OrdersService/PostOrder"
        .parse()
        .unwrap();
    let call = classifier.call(&order);
    let said = |attempt, status| {
        let head = answer(200, &[("grpc-status", status)], "").into_parts().0;
        match classifier.response(&call, attempt, &head) {
            Verdict::Decided(decision) => decision.outcome,
            other => panic!("{other:?}"),
        }
    };
    assert!(said(Attempt::FIRST, "13").is_retryable());
    for duplicate in ["3", "6"] {
        assert!(said(after_maybe_applied(), duplicate).is_unknown());
        assert!(said(Attempt::FIRST, duplicate).is_permanent());
    }
}
