//! The table of `HttpClassifier`, and which requests are repeatable.

use http::{HeaderName, Method, request};
use tower_outcome_core::{
    Attempt, CallReport, Classify, Delivery, Failure, HttpClassifier, Outcome, Reason, Repeatable,
    RepeatableBecause, RepeatableMethods, SettledBy,
};

use crate::support::*;

/// The table, said a second time: the outcome by its word, and the reason by its label.
fn row(status: u16, repeatable: bool) -> (&'static str, Option<&'static str>) {
    let (if_repeatable, if_not) = match status {
        ..400 => ("success", "success"),
        425 => ("retryable", "retryable"),
        408 | 429 | 500 | 502 | 503 | 504 => ("retryable", "unknown"),
        501 | 505 => ("permanent", "permanent"),
        // Nothing defines what is above 599, so it proves nothing either.
        500.. => ("permanent", "unknown"),
        400..=499 => ("permanent", "permanent"),
    };
    let reason = match status {
        ..400 => None,
        401 => Some("auth_rejected"),
        408 | 504 => Some("timed_out"),
        418 | 429 => Some("rate_limited"),
        503 => Some("overloaded"),
        400..=499 => Some("rejected"),
        500.. => Some("server_error"),
    };
    (if repeatable { if_repeatable } else { if_not }, reason)
}

#[test]
fn every_status_means_what_the_table_says() {
    let classifier = HttpClassifier::new();
    for repeatable in REPEATABLE {
        let request = such(repeatable);
        assert_eq!(
            classifier.repeatable(&classifier.call(&request)),
            repeatable
        );
        for status in statuses() {
            let answer = answer(status.as_u16(), &[], "");
            let decision = decide(&classifier, &request, Attempt::FIRST, answer);
            let (word, reason) = row(status.as_u16(), repeatable.is_yes());
            let outcome = decision.outcome;
            assert_eq!(outcome.label(), word, "{status}, {repeatable}");
            assert_eq!(outcome.reason().map(Reason::label), reason, "{status}");
            let delivery = if status == 425 {
                Delivery::Refused
            } else {
                Delivery::Answered
            };
            assert_eq!(decision.delivery, delivery, "{status}");
        }
    }
}

#[test]
fn after_an_attempt_that_may_have_been_applied_no_refusal_is_final_but_of_a_safe_method() {
    let classifier = HttpClassifier::new();
    for repeatable in REPEATABLE {
        for status in statuses() {
            let answer = answer(status.as_u16(), &[], "");
            let decision = decide(
                &classifier,
                &such(repeatable),
                after_maybe_applied(),
                answer,
            );
            let first = row(status.as_u16(), repeatable.is_yes()).0;
            let expected = match first {
                "permanent" if !repeatable.is_safe() => "unknown",
                other => other,
            };
            assert_eq!(decision.outcome.label(), expected, "{status}, {repeatable}");
        }
    }
}

#[test]
fn a_wait_asked_for_is_passed_on_with_every_answer_that_may_be_tried_again() {
    let classifier = HttpClassifier::new();
    let hinted = |code| answer(code, &[("retry-after", "7")], "");
    for status in statuses() {
        let outcome = outcome(&classifier, &get(), hinted(status.as_u16()));
        let seconds = outcome.after().map(|after| after.delay().as_secs());
        assert_eq!(seconds, outcome.is_retryable().then_some(7), "{status}");
    }
    let too_early = outcome(&classifier, &post(), hinted(425));
    assert_eq!(too_early.after().unwrap().delay().as_secs(), 7);
}

#[test]
fn a_lost_answer_is_retryable_where_that_is_harmless_and_unknown_where_not() {
    let classifier = HttpClassifier::new();
    for repeatable in REPEATABLE {
        for attempt in [Attempt::FIRST, after_maybe_applied()] {
            let broken = classifier.broken_body(&classifier.call(&such(repeatable)), attempt);
            let expected = if repeatable.is_yes() {
                retryable(Reason::ResponseBody)
            } else {
                unknown(Reason::ResponseBody)
            };
            assert_eq!(broken, expected, "{repeatable}");
        }
    }
}

// ## Which requests are repeatable

fn repeatable(classifier: &HttpClassifier, request: &request::Parts) -> Repeatable {
    let call = classifier.call(request);
    assert_eq!(classifier.repeatable(&call), call.repeatable());
    call.repeatable()
}

fn methods() -> Vec<Method> {
    let mut methods: Vec<_> = "GET HEAD OPTIONS TRACE PUT DELETE POST PATCH CONNECT"
        .split(' ')
        .map(|name| name.parse().unwrap())
        .collect();
    methods.push("AMEND".parse().unwrap());
    methods.push("get".parse().unwrap());
    methods
}

#[test]
fn a_method_is_repeatable_by_the_word_of_rfc_9110() {
    let idempotent = HttpClassifier::new();
    let safe = HttpClassifier::builder()
        .repeatable_methods(RepeatableMethods::Safe)
        .build()
        .unwrap();
    for method in methods() {
        let request = request(method.clone());
        let (by_default, narrowed) = match method.as_str() {
            "GET" | "HEAD" | "OPTIONS" | "TRACE" => ("safe_method", "safe_method"),
            "PUT" | "DELETE" => ("idempotent_method", "no"),
            _ => ("no", "no"),
        };
        assert_eq!(repeatable(&idempotent, &request).label(), by_default);
        assert_eq!(repeatable(&safe, &request).label(), narrowed, "{method}");
    }
}

#[test]
fn the_callers_mark_wins_over_the_method_and_the_method_over_the_key() {
    let classifier = HttpClassifier::new();
    for method in methods() {
        let mut request = request(method);
        let by_method = repeatable(&classifier, &request);
        let key = "order-1".parse().unwrap();
        request.headers.insert("idempotency-key", key);
        let expected = match by_method {
            Repeatable::No => Repeatable::Yes(RepeatableBecause::IdempotencyKey),
            by_method => by_method,
        };
        assert_eq!(repeatable(&classifier, &request), expected);
        for mark in REPEATABLE {
            let request = marked(request.clone(), mark);
            assert_eq!(repeatable(&classifier, &request), mark);
        }
    }
}

#[test]
fn a_put_that_amends_an_order_needs_a_key_where_only_safe_methods_repeat() {
    let classifier = HttpClassifier::builder()
        .repeatable_methods(RepeatableMethods::Safe)
        .build()
        .unwrap();
    let mut put = request(Method::PUT);
    let failed = || answer(500, &[], "");
    assert!(outcome(&classifier, &put, failed()).is_unknown());
    let key = "amend-1".parse().unwrap();
    put.headers.insert("idempotency-key", key);
    assert!(outcome(&classifier, &put, failed()).is_retryable());
}

#[test]
fn an_empty_key_is_no_key() {
    let mut request = post();
    let empty = "".parse().unwrap();
    request.headers.insert("idempotency-key", empty);
    assert_eq!(repeatable(&HttpClassifier::new(), &request), Repeatable::No);
}

#[test]
fn a_key_proves_nothing_to_an_api_that_does_not_deduplicate() {
    let builder = HttpClassifier::builder().without_idempotency_key();
    let classifier = builder.build().unwrap();
    assert_eq!(repeatable(&classifier, &keyed_post()), Repeatable::No);
}

#[test]
fn only_the_configured_header_holds_a_key() {
    let classifier = HttpClassifier::builder()
        .idempotency_key_header(HeaderName::from_static("x-request-id"))
        .build()
        .unwrap();
    assert_eq!(repeatable(&classifier, &keyed_post()), Repeatable::No);
    let mut request = post();
    request
        .headers
        .insert("x-request-id", "order-1".parse().unwrap());
    assert_eq!(
        repeatable(&classifier, &request),
        Repeatable::Yes(RepeatableBecause::IdempotencyKey)
    );
}

#[test]
fn clones_and_the_default_decide_alike() {
    let classifier = HttpClassifier::default();
    let (one, two) = (classifier.clone(), HttpClassifier::new());
    for status in statuses() {
        let answer = || answer(status.as_u16(), &[], "");
        assert_eq!(
            outcome(&one, &post(), answer()),
            outcome(&two, &post(), answer())
        );
    }
    let applied = outcome(&classifier, &post(), answer(201, &[], ""));
    assert_eq!(applied, Outcome::Success);
}

#[test]
fn what_a_layer_below_found_out_is_the_last_word() {
    let classifier = HttpClassifier::new();
    let call = classifier.call(&keyed_post());
    let found_out = Outcome::Permanent {
        reason: Reason::Rejected,
    };
    let report = CallReport::new(found_out, Delivery::Answered, classifier.repeatable(&call));
    let after = Attempt::FIRST.next(true);
    for (by, expected) in [(None, false), (Some(SettledBy::Inquiry), true)] {
        let report = report.clone().with_settled_by(by);
        assert_eq!(report.settled().is_some(), expected);
        let failure = Failure::new(found_out, Delivery::Answered, "refused").with_report(report);
        let decision = classifier.error(&call, after, &failure);
        // Without that, the refusal of this attempt says nothing about the one before.
        assert_eq!(decision.outcome == found_out, expected);
        assert_eq!(decision.outcome.is_unknown(), !expected);
    }
}
