//! A stream that says what became of an order ends the question at once.

use std::time::Duration;

use tokio::time::Instant;
use tower_outcome_core::{
    CallReport, Delivery, Failure, NotRetried, Outcome, Reason, Repeatable, RepeatableBecause,
    SettledBy,
};
use tower_outcome_reconcile::{How, OperationId, Resolution, Resolutions};

use crate::support::*;

const ID: OperationId = OperationId::from_static("order-1");

fn listening(say: Say) -> (Script, Resolutions, Stack<Script>, Server) {
    let script = Script::new([say]);
    let resolutions = Resolutions::new();
    let builder = builder(script.clone()).resolutions(resolutions.clone());
    let (service, server) = pair(builder);
    (script, resolutions, service, server)
}

#[tokio::test(start_paused = true)]
async fn an_acceptance_on_the_stream_wakes_the_call_at_once() {
    let (script, resolutions, service, mut server) = listening(Say::Pending);
    let call = start(&service, order());
    server.fail(reset()).await;
    let began = Instant::now();
    tokio::time::sleep(2 * SECOND).await;
    assert!(resolutions.resolve(&ID, Resolution::Applied(record("told"))));
    let result = call.await.unwrap();
    assert_eq!(began.elapsed(), 2 * SECOND);
    let call = CallReport::in_result(&result).unwrap();
    assert!(call.outcome().is_success());
    assert_eq!(call.settled_by(), Some(SettledBy::Signal));
    assert_eq!(report(&result).how(), Some(How::ToldApplied));
    assert_eq!(script.times(), 2);
    assert_eq!(text(result.unwrap()).await, "told");
    assert_eq!(resolutions.under_way(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_ends_an_inquiry_that_is_under_way() {
    let (script, resolutions, service, mut server) = listening(Say::Hangs);
    let call = start(&service, order());
    server.fail(reset()).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(script.times(), 1);
    assert!(resolutions.resolve(&ID, Resolution::rejected()));
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_permanent());
    assert_eq!(report(&result).how(), Some(How::ToldRejected));
}

#[tokio::test(start_paused = true)]
async fn a_word_that_comes_before_the_outcome_is_unknown_counts() {
    let (script, resolutions, service, mut server) = listening(Say::Pending);
    let call = start(&service, order());
    let (_, send) = server.attempt().await;
    assert!(resolutions.resolve(&ID, Resolution::applied()));
    let began = Instant::now();
    send.send_error(reset());
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_success());
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(script.times(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_answered_keeps_its_answer() {
    let (_, resolutions, service, mut server) = listening(Say::Pending);
    let call = start(&service, order());
    let (_, send) = server.attempt().await;
    assert!(resolutions.resolve(&ID, Resolution::rejected()));
    send.send_response(status(201));
    assert_eq!(call.await.unwrap().unwrap().status(), 201);
    assert_eq!(resolutions.under_way(), 0);
}

#[tokio::test(start_paused = true)]
async fn with_a_stream_the_call_waits_to_the_end_also_when_nothing_is_left_to_ask() {
    let (_, resolutions, service, mut server) = listening(Say::FailsFor(3600 * SECOND));
    let call = start(&service, order());
    server.fail(reset()).await;
    tokio::time::sleep(59 * SECOND).await;
    assert!(resolutions.resolve(&ID, Resolution::applied()));
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_word_about_a_call_that_is_not_under_way_is_nobodys_and_not_kept() {
    let (_, resolutions, service, mut server) = listening(Say::Pending);
    for _ in 0..1000 {
        assert!(!resolutions.resolve(&ID, Resolution::applied()));
    }
    assert_eq!(resolutions.under_way(), 0);
    let call = start(&service, order());
    server.respond(status(503)).await;
    assert!(CallReport::outcome_of(&call.await.unwrap()).is_unknown());
}

#[tokio::test(start_paused = true)]
async fn what_may_be_sent_again_carries_a_watch_and_is_answered_without_being_sent_once_told() {
    let (_, resolutions, service, mut server) = listening(Say::Pending);
    let keyed = || {
        let mut request = order();
        let because = RepeatableBecause::Marked;
        request.extensions_mut().insert(Repeatable::Yes(because));
        request
    };
    let call = start(&service, keyed());
    server.respond(status(503)).await;
    let open = call.await.unwrap();
    assert!(CallReport::outcome_of(&open).is_retryable());
    let settling = CallReport::in_result(&open).unwrap().settling().unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(settling.poll_settled(&mut cx).is_pending());
    assert_eq!(resolutions.under_way(), 1);
    assert!(resolutions.resolve(&ID, Resolution::Applied(record("told"))));
    assert!(settling.poll_settled(&mut cx).is_ready());
    // The layer above hands it down once more, the watch still in its hands.
    let told = start(&service, keyed()).await.unwrap().unwrap();
    assert_eq!(text(told).await, "told");
    drop(open);
    assert_eq!(resolutions.under_way(), 0);
    drop(service);
    server.expect_no_more().await;
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_for_what_was_sent_before_it_and_what_is_sent_after_is_really_sent() {
    let (_, resolutions, service, mut server) = listening(Say::Fails);
    let call = start(&service, order());
    server.fail(reset()).await;
    let other = start(&service, order());
    server.fail(reset()).await;
    tokio::time::sleep(SECOND).await;
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    for call in [call, other] {
        let result = call.await.unwrap();
        assert!(CallReport::outcome_of(&result).is_retryable());
        assert_eq!(report(&result).how(), Some(How::ToldNotApplied));
    }
    let third = start(&service, order());
    server.respond(status(200)).await;
    assert_eq!(third.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_denial_does_not_settle_what_is_about_to_be_sent_again_anyway() {
    let (_, resolutions, service, mut server) = listening(Say::Pending);
    let mut request = order();
    let because = RepeatableBecause::Marked;
    let extensions = request.extensions_mut();
    extensions.insert(Repeatable::Yes(because));
    let call = start(&service, request.clone());
    server.respond(status(503)).await;
    let open = call.await.unwrap();
    let settling = CallReport::in_result(&open).unwrap().settling().unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(settling.poll_settled(&mut cx).is_pending());
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    assert!(settling.poll_settled(&mut cx).is_pending());
    // And what is sent then is no part of what was denied.
    let call = start(&service, request);
    server.respond(status(200)).await;
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn what_a_layer_below_has_given_up_on_stays_given_up() {
    let (_, _, service, mut server) = listening(Say::Pending);
    let keyed = Repeatable::Yes(RepeatableBecause::Marked);
    let mut request = order();
    request.extensions_mut().insert(keyed);
    let call = start(&service, request);
    let outcome = Outcome::Retryable {
        reason: Reason::Transport,
        after: None,
    };
    let below = CallReport::new(outcome, Delivery::MaybeSent, keyed);
    let below = below.with_not_retried(Some(NotRetried::Exhausted));
    let failure = Failure::new(outcome, Delivery::MaybeSent, "lost").with_report(below);
    server.fail(failure.into()).await;
    let result = call.await.unwrap();
    let report = CallReport::in_result(&result).unwrap();
    assert!(report.settling().is_some());
    assert!(matches!(report.not_retried(), Some(NotRetried::Exhausted)));
}

#[tokio::test(start_paused = true)]
async fn a_denial_says_nothing_of_an_attempt_that_has_not_ended() {
    let (script, resolutions, service, mut server) = listening(Say::Applied);
    let call = start(&service, order());
    let (_, send) = server.attempt().await;
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    send.send_error(reset());
    let result = call.await.unwrap();
    assert_eq!(report(&result).how(), Some(How::Found));
    assert_eq!(script.times(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_denial_that_is_repeated_says_nothing_of_what_still_waits_to_be_sent() {
    let (_, resolutions, service, mut server) = listening(Say::Applied);
    let first = start(&service, order());
    server.fail(reset()).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    let denied = first.await.unwrap();
    assert_eq!(report(&denied).how(), Some(How::ToldNotApplied));
    // The next attempt is in the hands of a layer below, and not on the wire.
    let second = start(&service, order());
    tokio::task::yield_now().await;
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    server.fail(reset()).await;
    let result = second.await.unwrap();
    assert_eq!(report(&result).how(), Some(How::Found));
}

#[tokio::test(start_paused = true)]
async fn a_denial_does_not_settle_an_answer_that_leaves_it_open_and_came_after_it() {
    let (_, resolutions, service, mut server) = listening(Say::Pending);
    let mut request = order();
    let because = RepeatableBecause::Marked;
    request.extensions_mut().insert(Repeatable::Yes(because));
    let call = start(&service, request);
    let (_, send) = server.attempt().await;
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    send.send_response(status(503));
    let result = call.await.unwrap();
    let report = CallReport::in_result(&result).unwrap();
    assert_eq!(report.settled_by(), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_the_wait_that_the_server_asked_for_is_told_to_who_may_send_again() {
    let (script, resolutions, service, mut server) = listening(Say::Pending);
    let call = start(&service, order());
    server.respond(busy_for(5)).await;
    tokio::time::sleep(SECOND).await;
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    let result = call.await.unwrap();
    let after = CallReport::outcome_of(&result).after().unwrap();
    assert_eq!(after.delay(), 4 * SECOND);
    assert_eq!(CallReport::in_result(&result).unwrap().after(), Some(after));
    assert_eq!(script.times(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_word_that_is_known_for_good_ends_an_attempt_that_hangs() {
    for (resolution, how) in [
        (Resolution::Applied(record("told")), How::ToldApplied),
        (Resolution::rejected(), How::ToldRejected),
    ] {
        let (script, resolutions, service, mut server) = listening(Say::Pending);
        let call = start(&service, order());
        let began = Instant::now();
        let (_, send) = server.attempt().await;
        tokio::time::sleep(SECOND).await;
        assert!(resolutions.resolve(&ID, resolution));
        let ended = tokio::time::timeout(60 * SECOND, call).await;
        let result = ended.expect("the word ends it").unwrap();
        assert_eq!(began.elapsed(), SECOND);
        assert_eq!(report(&result).how(), Some(how));
        let call = CallReport::in_result(&result).unwrap();
        assert_eq!(call.settled_by(), Some(SettledBy::Signal));
        assert_eq!(call.outcome().is_success(), how == How::ToldApplied);
        assert_eq!(script.times(), 0);
        assert_eq!(resolutions.under_way(), 0);
        drop(send);
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_does_not_end_an_attempt_that_hangs() {
    let (_, resolutions, service, mut server) = listening(Say::Pending);
    let call = start(&service, order());
    let (_, send) = server.attempt().await;
    tokio::time::sleep(SECOND).await;
    assert!(resolutions.resolve(&ID, Resolution::NotApplied));
    tokio::time::sleep(SECOND).await;
    assert!(!call.is_finished());
    send.send_response(status(200));
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_nobody_sends_again_is_not_under_way_while_its_caller_keeps_it() {
    let (_, resolutions, service, mut server) = listening(Say::Pending);
    let mut request = order();
    let because = RepeatableBecause::Marked;
    request.extensions_mut().insert(Repeatable::Yes(because));
    let call = start(&service, request);
    server.respond(status(503)).await;
    let kept = call.await.unwrap();
    assert_eq!(resolutions.under_way(), 0);
    assert!(!resolutions.resolve(&ID, Resolution::applied()));
    drop(kept);
}
