//! "Not found" is a proof only late enough, often enough, and of what was not received.

use std::{sync::Arc, time::Duration};

use http::Request;
use http_body_util::Full;
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};
use tower_outcome_core::{
    Attempt, BoxError, CallContext, CallReport, Deadline, Delivery, ManualClock, Outcome, Reason,
    ValidUntil,
};
use tower_outcome_reconcile::{AfterInquiry, How, Schedule};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn not_found_right_after_an_unknown_submit_stays_unknown_until_the_least_age() {
    let script = Script::new([Say::Missing]);
    let (result, took) = lost(builder(script.clone())).await;
    assert!(CallReport::outcome_of(&result).is_retryable());
    assert_eq!(report(&result).how(), Some(How::Absent));
    // Asked at 0.5, 1.5, 3.5 and 7.5 s, and as soon as it can mean something.
    assert_eq!(took, 10 * SECOND);
    assert_eq!(report(&result).misses(), 5);
}

#[tokio::test(start_paused = true)]
async fn one_late_miss_is_not_enough() {
    let script = Script::new([Say::Fails, Say::Fails, Say::Fails, Say::Fails, Say::Missing]);
    let (result, took) = lost(builder(script)).await;
    let report = report(&result);
    assert_eq!((report.misses(), report.failures()), (3, 4));
    assert_eq!(report.how(), Some(How::Absent));
    assert_eq!(took, 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_inquiry_that_fails_is_no_evidence() {
    let (result, took) = lost(builder(Script::new([Say::Fails]))).await;
    assert!(CallReport::outcome_of(&result).is_unknown());
    let report = report(&result);
    assert_eq!(report.how(), None);
    assert_eq!(report.misses(), 0);
    assert!(report.failures() > 10);
    let last = report.last_error().unwrap().to_string();
    assert_eq!(last, "the index is down");
    assert!(took <= 60 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_inquiry_that_hangs_is_given_up_and_is_no_evidence() {
    let script = Script::new([Say::Hangs, Say::Applied]);
    let (result, took) = lost(builder(script)).await;
    assert!(CallReport::outcome_of(&result).is_success());
    assert_eq!(report(&result).failures(), 1);
    assert_eq!(took.as_millis(), 500 + 5000 + 1000);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_be_left_alone_is() {
    let script = Script::new([Say::FailsFor(25 * SECOND), Say::Applied]);
    let (result, took) = lost(builder(script)).await;
    assert!(result.is_ok());
    assert_eq!(took.as_millis(), 25_500);
}

#[tokio::test(start_paused = true)]
async fn when_time_is_up_the_original_error_is_the_callers_and_says_what_was_asked() {
    let script = Script::new([Say::Pending]);
    let (result, _) = lost(builder(script.clone())).await;
    let unknown = Outcome::Unknown {
        reason: Reason::Transport,
    };
    assert_eq!(CallReport::outcome_of(&result), unknown);
    let call = CallReport::in_result(&result).unwrap();
    assert_eq!(call.delivery(), Delivery::MaybeSent);
    assert_eq!(call.settled_by(), None);
    assert_eq!(report(&result).inquiries() as usize, script.times());
    let error = result.unwrap_err();
    assert!(AfterInquiry::of(&*error).is_some());
    let chain = format!("{error:#}");
    assert!(chain.ends_with("connection reset"), "{chain}");
}

#[tokio::test(start_paused = true)]
async fn when_time_is_up_the_original_answer_is_the_callers_with_its_body() {
    let (service, mut server) = pair(builder(Script::new([Say::Pending])));
    let call = start(&service, order());
    server.respond(status(503)).await;
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_unknown());
    assert!(report(&result).how().is_none());
    let response = result.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(text(response).await, "503");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_call_ends_asking_if_it_is_earlier() {
    let script = Script::new([Say::Missing]);
    let (service, mut server) = pair(builder(script.clone()));
    let mut request = order();
    request.extensions_mut().insert(Deadline::after(4 * SECOND));
    let began = Instant::now();
    let call = start(&service, request);
    server.fail(reset()).await;
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_unknown());
    assert!(began.elapsed() <= 4 * SECOND);
    assert_eq!(script.times(), 3);
    assert_eq!(report(&result).misses(), 3);
}

/// A stack in which a layer below signs, until 25 s after it is sent.
async fn signed(own_context: bool) -> (Duration, Option<Instant>, Instant) {
    let script = Script::new([Say::Missing]);
    let below = service_fn(|request: Request<Full<bytes::Bytes>>| async move {
        let context = CallContext::of(request.extensions()).expect("a context");
        context.note_valid_until(ValidUntil::at(Instant::now() + 25 * SECOND));
        Err::<Res, BoxError>(reset())
    });
    let layer = builder(script.clone()).build().unwrap();
    let mut request = order();
    if own_context {
        CallContext::new().put(request.extensions_mut());
    }
    let began = Instant::now();
    let result = layer.layer(below).oneshot(request).await;
    assert!(CallReport::outcome_of(&result).is_retryable());
    let (_, inquiry) = script.asked().remove(0);
    (began.elapsed(), inquiry.starts_until(), began)
}

#[tokio::test(start_paused = true)]
async fn a_miss_means_nothing_before_the_signature_has_ended_and_the_server_has_given_up() {
    for own_context in [true, false] {
        let (took, starts_until, began) = signed(own_context).await;
        assert_eq!(took, 35 * SECOND);
        assert_eq!(starts_until, Some(began + 25 * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_forgotten_keys_is_not_believed_to_have_seen_none() {
    let day = 24 * 3600 * SECOND;
    // Nobody can be asked before the server has forgotten.
    let script = Script::new([Say::Missing]);
    let schedule = Schedule::new()
        .first(day + SECOND)
        .cap(day + SECOND)
        .deadline(10 * day);
    let builder = builder(script.clone())
        .schedule(schedule)
        .min_age(SECOND)
        .misses(2)
        .retention(day);
    let (result, _) = lost(builder).await;
    assert!(CallReport::outcome_of(&result).is_unknown());
    assert!(script.times() > 2);
}

#[tokio::test(start_paused = true)]
async fn an_inquiry_says_at_what_wall_time_the_request_was_sent() {
    let now = std::time::SystemTime::UNIX_EPOCH + 1_800_000_000 * SECOND;
    let script = Script::new([Say::Applied]);
    let builder = builder(script.clone()).clock(Arc::new(ManualClock::new(now)));
    let (service, mut server) = pair(builder);
    let call = start(&service, order());
    let (_, send) = server.attempt().await;
    tokio::time::sleep(3 * SECOND).await;
    send.send_error(reset());
    assert!(call.await.unwrap().is_ok());
    assert_eq!(script.asked()[0].1.sent_at(), now - 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_attempt_of_unknown_age_may_have_been_forgotten() {
    for (maybe_applied, outcome) in [(false, "retryable"), (true, "unknown")] {
        let builder = builder(Script::new([Say::Missing])).retention(3600 * SECOND);
        let (service, mut server) = pair(builder);
        let mut request = order();
        let second = Attempt::FIRST.next(maybe_applied);
        request.extensions_mut().insert(second);
        let call = start(&service, request);
        server.fail(reset()).await;
        let result = call.await.unwrap();
        assert_eq!(CallReport::outcome_of(&result).label(), outcome);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_be_left_alone_with_the_lost_answer_is() {
    for (wait, asked_after) in [(7, Some(7 * SECOND)), (90, None)] {
        let script = Script::new([Say::Denied]);
        let (service, mut server) = pair(builder(script.clone()));
        let call = start(&service, order());
        server.respond(busy_for(wait)).await;
        let began = Instant::now();
        let result = call.await.unwrap();
        let asked = script.asked();
        let first = asked.first().map(|(at, _)| at.duration_since(began));
        assert_eq!(first, asked_after);
        let outcome = CallReport::outcome_of(&result);
        assert_eq!(outcome.is_retryable(), asked_after.is_some());
        // It has been waited for.
        assert_eq!(outcome.after(), None);
    }
}
