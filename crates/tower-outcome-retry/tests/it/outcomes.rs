//! What is sent again, and what is not.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::StatusCode;
use tower_outcome_core::{
    Attempt, CallContext, CallReport, Delivery, Failure, HttpClassifier, Outcome, Phase, Reason,
    Repeatable, RepeatableBecause, RepeatableMethods,
};
use tower_outcome_retry::{NoResend, RetryLayer};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_first_success_needs_no_report() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, get());
    server.answer(200).await;
    let result = finish(call).await;
    assert_eq!(code(&result), StatusCode::OK);
    assert!(CallReport::in_result(&result).is_none());
    assert_eq!(CallReport::outcome_of(&result), Outcome::Success);
}

#[tokio::test(start_paused = true)]
async fn a_safe_request_is_sent_again_after_503() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, get());
    server.answer(503).await;
    server.answer(200).await;
    let result = finish(call).await;
    assert_eq!(code(&result), StatusCode::OK);
    assert_eq!(report(&result).attempts(), 2);
    assert_eq!(report(&result).waited(), Duration::from_millis(50));
    assert_eq!(report(&result).outcome(), Outcome::Success);
    assert!(report(&result).not_retried().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_first_attempt_does_not_wait() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, get());
    assert_eq!(server.answer_timed(200).await, Duration::ZERO);
    finish(call).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waits_double_from_attempt_to_attempt() {
    let (service, mut server) = pair(&steady().max_attempts(4).build().unwrap());
    let call = start(&service, get());
    let mut waits = Vec::new();
    for _ in 0..4 {
        waits.push(server.answer_timed(500).await.as_millis());
    }
    assert_eq!(waits, [0, 50, 100, 200]);
    assert_eq!(not_retried(&finish(call).await), "exhausted");
}

#[tokio::test(start_paused = true)]
async fn an_applied_post_is_never_sent_again_on_an_unclear_answer() {
    for unclear in [408, 429, 500, 502, 503, 504, 507, 599] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, post());
        server.answer(unclear).await;
        let result = finish(call).await;
        assert_eq!(code(&result).as_u16(), unclear, "the answer survives");
        assert!(report(&result).outcome().is_unknown(), "{unclear}");
        assert_eq!(not_retried(&result), "outcome");
        drop(service);
        server.expect_no_more().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_whose_connection_broke_is_unknown_and_not_sent_again() {
    for kind in [
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::UnexpectedEof,
        io::ErrorKind::TimedOut,
    ] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, post());
        server.fail(io::Error::from(kind).into()).await;
        let result = finish(call).await;
        let error = result.unwrap_err();
        let failure = Failure::of(&*error).unwrap();
        assert!(failure.outcome().is_unknown(), "{kind}");
        assert_eq!(failure.delivery(), Delivery::MaybeSent);
        assert!(
            failure.source_ref().unwrap().is::<io::Error>(),
            "the original error is kept"
        );
        drop(service);
        server.expect_no_more().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_left_is_sent_again_whatever_its_method() {
    for error in [unsent, refused] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, post());
        server.fail(error()).await;
        server.answer(201).await;
        let result = finish(call).await;
        assert_eq!(code(&result), StatusCode::CREATED);
        assert_eq!(report(&result).attempts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_425_was_not_acted_on() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, post());
    server.answer(425).await;
    server.answer(201).await;
    assert_eq!(code(&finish(call).await), StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_refuses_before_acting_gets_its_posts_again() {
    let classifier = HttpClassifier::builder()
        .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS])
        .build()
        .unwrap();
    let (service, mut server) = pair(&steady().classifier(classifier).build().unwrap());
    let call = start(&service, post());
    server.answer(429).await;
    server.answer(201).await;
    assert_eq!(code(&finish(call).await), StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn a_key_or_a_mark_makes_a_post_repeatable() {
    let mut marked = post();
    marked
        .extensions_mut()
        .insert(Repeatable::Yes(RepeatableBecause::Marked));
    for request in [keyed_post(), marked] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, request);
        server.fail(reset()).await;
        server.answer(201).await;
        assert_eq!(code(&finish(call).await), StatusCode::CREATED);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_key_protects_nothing() {
    let mut request = post();
    request
        .headers_mut()
        .insert("idempotency-key", "".parse().unwrap());
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, request);
    server.answer(500).await;
    assert!(report(&finish(call).await).outcome().is_unknown());
}

#[tokio::test(start_paused = true)]
async fn the_callers_no_wins_over_the_method() {
    let mut request = get();
    request.extensions_mut().insert(Repeatable::No);
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, request);
    server.answer(503).await;
    let result = finish(call).await;
    assert!(report(&result).outcome().is_unknown());
    assert_eq!(report(&result).repeatable(), Repeatable::No);
}

#[tokio::test(start_paused = true)]
async fn a_narrowed_classifier_does_not_repeat_put_and_delete() {
    let classifier = HttpClassifier::builder()
        .repeatable_methods(RepeatableMethods::Safe)
        .build()
        .unwrap();
    let layer = steady().classifier(classifier).build().unwrap();
    let (service, mut server) = pair(&layer);
    let call = start(&service, delete());
    server.answer(503).await;
    assert!(report(&finish(call).await).outcome().is_unknown());
}

#[tokio::test(start_paused = true)]
async fn a_permanent_answer_is_asked_for_exactly_once() {
    for permanent in [400, 401, 403, 404, 409, 422, 501, 505] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, get());
        server.answer(permanent).await;
        let result = finish(call).await;
        assert_eq!(code(&result).as_u16(), permanent);
        assert!(report(&result).outcome().is_permanent(), "{permanent}");
        drop(service);
        server.expect_no_more().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lasting_outage_ends_after_the_configured_attempts() {
    let (service, mut server) = pair(&steady().max_attempts(3).build().unwrap());
    let call = start(&service, get());
    for _ in 0..3 {
        server.answer(503).await;
    }
    let result = finish(call).await;
    assert_eq!(code(&result), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(report(&result).attempts(), 3);
    assert_eq!(not_retried(&result), "exhausted");
    assert!(report(&result).outcome().is_retryable(), "it is still safe");
    drop(service);
    server.expect_no_more().await;
}

#[tokio::test(start_paused = true)]
async fn one_attempt_turns_resends_off_and_still_decides_the_outcome() {
    let (service, mut server) = pair(&steady().max_attempts(1).build().unwrap());
    let call = start(&service, get());
    server.answer(503).await;
    let result = finish(call).await;
    assert!(report(&result).outcome().is_retryable());
    assert_eq!(not_retried(&result), "switched_off");
}

#[tokio::test(start_paused = true)]
async fn resends_can_be_switched_off_for_one_request() {
    let mut request = get();
    request.extensions_mut().insert(NoResend::new());
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, request);
    server.fail(unsent()).await;
    assert_eq!(not_retried(&finish(call).await), "switched_off");
}

#[tokio::test(start_paused = true)]
async fn a_predicate_can_forbid_and_never_allow() {
    let layer = steady()
        .resend_if(|head| head.uri.path() != "/price")
        .build();
    let (service, mut server) = pair(&layer.unwrap());
    let call = start(&service, get());
    server.answer(503).await;
    assert_eq!(not_retried(&finish(call).await), "switched_off");

    let (service, mut server) = pair(&steady().resend_if(|_| true).build().unwrap());
    let call = start(&service, post());
    server.answer(503).await;
    assert!(report(&finish(call).await).outcome().is_unknown());
}

#[tokio::test(start_paused = true)]
async fn a_refused_resend_says_nothing_about_the_attempt_before_it() {
    // A time-out, then "not found": was the order cancelled by the first DELETE? A time-out, then
    // "insufficient funds": because the first order was filled?
    for (request, refusal) in [(delete(), 404), (keyed_post(), 402)] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, request);
        server.fail(reset()).await;
        server.answer(refusal).await;
        let result = finish(call).await;
        assert_eq!(code(&result).as_u16(), refusal);
        assert!(report(&result).outcome().is_unknown(), "{refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_resend_is_final_where_nothing_can_have_been_applied() {
    for (request, first) in [(get(), reset()), (delete(), unsent())] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, request);
        server.fail(first).await;
        server.answer(404).await;
        assert!(report(&finish(call).await).outcome().is_permanent());
    }
}

#[tokio::test(start_paused = true)]
async fn the_furthest_attempt_decides_how_far_the_call_got() {
    let (service, mut server) = pair(&steady().max_attempts(2).build().unwrap());
    let call = start(&service, keyed_post());
    server.fail(reset()).await;
    server.fail(unsent()).await;
    let error = finish(call).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.delivery(), Delivery::MaybeSent);
    assert_eq!(failure.report().unwrap().attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_an_unknown_type_is_unknown_for_a_post_and_permanent_for_a_get() {
    for (request, unknown) in [(post(), true), (get(), false)] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, request);
        server.fail("somebody's error".into()).await;
        let outcome = CallReport::outcome_of(&finish(call).await);
        assert_eq!(outcome.is_unknown(), unknown);
        assert_eq!(outcome.is_permanent(), !unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_permanent_trouble_of_a_layer_below_is_not_retried() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, get());
    let dead =
        Failure::not_sent(Reason::AuthRejected, "log in again").with_outcome(Outcome::Permanent {
            reason: Reason::AuthRejected,
        });
    server.fail(dead.into()).await;
    let outcome = CallReport::outcome_of(&finish(call).await);
    assert_eq!(
        outcome,
        Outcome::Permanent {
            reason: Reason::AuthRejected
        }
    );
}

#[tokio::test(start_paused = true)]
async fn an_outer_retry_does_not_multiply_the_attempts_of_an_inner_one() {
    use tower::{Layer, ServiceExt};
    use tower_outcome_core::Stage;

    // As a service does that makes the request its own; two in one stack are refused.
    let of_its_own = |mut request: http::Request<_>| {
        Stage::forget_all(request.extensions_mut());
        request
    };
    let layer = steady().max_attempts(2).build().unwrap();
    let (inner, mut server) = pair(&layer);
    let inner = inner.map_request(of_its_own);
    let outer: RetryLayer = steady().max_attempts(3).build().unwrap();
    let call = tokio::spawn(outer.layer(inner).oneshot(get()));
    server.answer(503).await;
    server.answer(503).await;
    let response = call.await.unwrap().unwrap();
    let report = CallReport::of(response.extensions()).unwrap();
    assert_eq!(report.not_retried().unwrap().label(), "already_given_up");
    server.expect_no_more().await;

    let (inner, mut server) = pair(&layer);
    let inner = inner.map_request(of_its_own);
    let call = tokio::spawn(outer.layer(inner).oneshot(get()));
    server.fail(reset()).await;
    server.fail(reset()).await;
    let error = call.await.unwrap().unwrap_err();
    let report = Failure::of(&*error).unwrap().report().unwrap();
    assert_eq!(report.not_retried().unwrap().label(), "already_given_up");
    server.expect_no_more().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_after_the_first_know_their_number() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, keyed_post());
    let first = server.fail(unsent()).await;
    let second = server.fail(reset()).await;
    let third = server.answer(200).await;
    finish(call).await.unwrap();
    assert!(first.extensions.get::<Attempt>().is_none());
    let attempts = [first, second, third].map(|head| {
        let attempt = Attempt::of(&head.extensions);
        (attempt.number(), attempt.maybe_applied_before())
    });
    assert_eq!(attempts, [(1, false), (2, false), (3, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_context_is_kept_up_to_date_while_the_call_lasts() {
    let context = CallContext::new();
    let mut request = get();
    context.put(request.extensions_mut());
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, request);
    server.answer(503).await;
    tokio::task::yield_now().await;
    assert_eq!(context.phase(), Phase::BackingOff);
    let (outcome, delivery) = context.last().unwrap();
    assert!(outcome.is_retryable());
    assert_eq!(delivery, Delivery::Answered);
    server.answer(200).await;
    finish(call).await.unwrap();
    assert_eq!(context.attempts(), 2);
    assert_eq!(context.phase(), Phase::ReadingBody);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_the_same_and_another_does_not() {
    let waits = |seed| async move {
        let random = Arc::new(tower_outcome_core::SplitMix64::seeded(seed));
        let layer = RetryLayer::builder().random(random).max_attempts(5);
        let (service, mut server) = pair(&layer.build().unwrap());
        let call = start(&service, get());
        let waits = Mutex::new(Vec::new());
        for _ in 0..5 {
            let wait = server.answer_timed(500).await;
            waits.lock().unwrap().push(wait);
        }
        finish(call).await.unwrap();
        waits.into_inner().unwrap()
    };
    assert_eq!(waits(7).await, waits(7).await);
    assert_ne!(waits(7).await, waits(8).await);
}

#[tokio::test(start_paused = true)]
async fn what_a_layer_below_has_sent_again_counts() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, get());
    // Both attempts were rejected for their credential, and sent once more below.
    for code in [503, 200] {
        let mut response = status(code);
        let below = CallReport::new(Outcome::Success, Delivery::Answered, Repeatable::No)
            .with_attempts(2, Duration::from_secs(3));
        response.extensions_mut().insert(below);
        server.respond(response).await;
    }
    let result = finish(call).await;
    let report = report(&result);
    assert_eq!(report.attempts(), 4);
    assert_eq!(report.waited(), Duration::from_millis(6050));
    assert!(report.outcome().is_success());
}
