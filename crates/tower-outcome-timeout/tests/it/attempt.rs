//! The bounds of one attempt.

use std::time::Duration;

use http::Method;
use tokio::time::{Instant, advance};
use tower::Layer;
use tower_outcome_core::{BoxError, Deadline, Delivery, Failure, Phase, Reason, WitnessLayer};
use tower_outcome_timeout::{AttemptBounds, Bound, Elapsed, TimeoutLayer, Timeouts};
use tower_test::mock;

use crate::support::*;

const TIMED_OUT: Reason = Reason::TimedOut;

fn only_head(seconds: u64) -> TimeoutLayer {
    let timeouts = Timeouts::builder().attempt(None).head(secs(seconds));
    TimeoutLayer::new(&timeouts.build().unwrap())
}

fn only_write_idle(seconds: u64) -> TimeoutLayer {
    let timeouts = Timeouts::builder().attempt(None).write_idle(secs(seconds));
    TimeoutLayer::new(&timeouts.build().unwrap())
}

// ## In all, and what had been delivered

#[tokio::test(start_paused = true)]
async fn an_attempt_of_which_nothing_was_taken_was_not_sent() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(TimeoutLayer::default());
    let call = start(&service, post()).await;
    let (mut sent, _send) = received(&mut server).await;
    let expected = Struck {
        bound: Bound::Attempt,
        phase: Phase::Connecting,
        delivery: Delivery::NotSent,
        outcome: retryable(TIMED_OUT),
        after: secs(10),
    };
    assert_eq!(struck(start_at, call).await, expected);
    // And it never will be.
    assert!(!take(&mut sent));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_body_was_taken_in_part_was_not_sent() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(TimeoutLayer::default());
    let call = start(&service, post()).await;
    let (mut sent, _send) = received(&mut server).await;
    assert!(take(&mut sent));
    let struck = struck(start_at, call).await;
    assert_eq!(struck.phase, Phase::Sending);
    assert_eq!(struck.delivery, Delivery::NotSent);
    assert_eq!(struck.outcome, retryable(TIMED_OUT));
    assert!(!take(&mut sent));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_body_was_taken_may_have_been_sent() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(TimeoutLayer::default());
    let call = start(&service, post()).await;
    let (mut sent, _send) = received(&mut server).await;
    assert!(take(&mut sent) && take(&mut sent));
    let expected = Struck {
        bound: Bound::Attempt,
        phase: Phase::AwaitingHead,
        delivery: Delivery::MaybeSent,
        outcome: unknown(TIMED_OUT),
        after: secs(10),
    };
    assert_eq!(struck(start_at, call).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_body_may_have_been_sent() {
    let start_at = Instant::now();
    let (service, _server) = bounded(TimeoutLayer::default());
    let empty = request(Method::POST, Steps::empty());
    let struck = struck(start_at, start(&service, empty).await).await;
    assert_eq!(struck.delivery, Delivery::MaybeSent);
    assert_eq!(struck.outcome, unknown(TIMED_OUT));
}

#[tokio::test(start_paused = true)]
async fn without_a_witness_nothing_is_proven() {
    let start_at = Instant::now();
    let (mock, _server) = mock::pair::<http::Request<_>, Res>();
    let service = TimeoutLayer::default().layer(mock);
    let struck = struck(start_at, start(&service, post()).await).await;
    assert_eq!(struck.delivery, Delivery::MaybeSent);
    assert_eq!(struck.outcome, unknown(TIMED_OUT));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_acts_on_parts_may_have_acted() {
    let start_at = Instant::now();
    let (mock, _server) = mock::pair::<Sent, Res>();
    let witness = WitnessLayer::new().acts_on_parts().layer(mock);
    let service = TimeoutLayer::default().layer(witness);
    let struck = struck(start_at, start(&service, post()).await).await;
    assert_eq!(struck.delivery, Delivery::MaybeSent);
}

#[tokio::test(start_paused = true)]
async fn the_failure_says_what_a_proof_rests_on() {
    use tower_outcome_core::Witnessed;
    let (service, _server) = bounded(TimeoutLayer::default());
    let error = start(&service, post()).await.await.unwrap().unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.proven_by(), Some(Witnessed::Body));
    let elapsed = Elapsed::of(&*error).unwrap();
    assert_eq!(elapsed.limit(), secs(10));
    let text = "bound attempt of 10s elapsed in phase connecting";
    assert_eq!(elapsed.to_string(), text);
}

// ## What is ready wins

#[tokio::test(start_paused = true)]
async fn a_response_that_is_ready_wins_over_the_bound() {
    let (service, mut server) = bounded(TimeoutLayer::default());
    let mut call = tokio_test::task::spawn(tower::ServiceExt::oneshot(service, post()));
    tokio_test::assert_pending!(call.poll());
    let (_sent, send) = received(&mut server).await;
    send.send_response(ok(Steps::empty()));
    advance(secs(60)).await;
    // Both are ready at this poll.
    assert!(tokio_test::assert_ready!(call.poll()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_early_answer_is_delivered_while_the_body_is_still_being_sent() {
    let (service, mut server) = bounded(TimeoutLayer::default());
    let call = start(&service, post()).await;
    let (mut sent, send) = received(&mut server).await;
    assert!(take(&mut sent));
    let mut early = ok(Steps::empty());
    *early.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
    send.send_response(early);
    assert_eq!(call.await.unwrap().unwrap().status(), 413);
    // The rest may still be sent, to the good of the connection.
    assert!(take(&mut sent));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_client_passes() {
    let (service, mut server) = bounded(TimeoutLayer::default());
    let call = start(&service, post()).await;
    let (_sent, send) = received(&mut server).await;
    send.send_error(BoxError::from("the connection broke"));
    let error = call.await.unwrap().unwrap_err();
    assert!(Elapsed::of(&*error).is_none());
    assert_eq!(Failure::of(&*error).unwrap().delivery(), Delivery::NotSent);
}

// ## The head

#[tokio::test(start_paused = true)]
async fn the_head_is_counted_from_when_the_body_was_taken() {
    for taken_at in [0, 1, 5, 7] {
        let start_at = Instant::now();
        let (service, mut server) = bounded(only_head(2));
        let call = start(&service, post()).await;
        let (mut sent, _send) = received(&mut server).await;
        advance(secs(taken_at)).await;
        assert!(take(&mut sent) && take(&mut sent));
        let expected = Struck {
            bound: Bound::Head,
            phase: Phase::AwaitingHead,
            delivery: Delivery::MaybeSent,
            outcome: unknown(TIMED_OUT),
            after: secs(taken_at + 2),
        };
        assert_eq!(struck(start_at, call).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_head_of_a_request_without_a_body_is_counted_from_when_the_transport_looked() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(only_head(2));
    let call = start(&service, get()).await;
    let (sent, _send) = received(&mut server).await;
    advance(secs(5)).await;
    assert!(http_body::Body::is_end_stream(sent.body()));
    let struck = struck(start_at, call).await;
    assert_eq!((struck.bound, struck.after), (Bound::Head, secs(7)));
}

#[tokio::test(start_paused = true)]
async fn while_the_body_is_on_its_way_no_head_is_due() {
    let (service, mut server) = bounded(only_head(2));
    let call = start(&service, post()).await;
    let (mut sent, send) = received(&mut server).await;
    assert!(take(&mut sent));
    advance(secs(3600)).await;
    settle().await;
    assert!(!call.is_finished());
    send.send_response(ok(Steps::empty()));
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_body_is_whole_at_its_declared_length() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(only_head(2));
    let (to, body) = Steps::piped();
    let mut post = request(Method::POST, body);
    let length = "4".parse().unwrap();
    post.headers_mut().insert("content-length", length);
    let call = start(&service, post).await;
    let (mut sent, _send) = received(&mut server).await;
    to.send(Step::Data("buy ")).unwrap();
    advance(secs(1)).await;
    assert!(take(&mut sent));
    let struck = struck(start_at, call).await;
    assert_eq!((struck.bound, struck.after), (Bound::Head, secs(3)));
}

// ## Pauses of the request body

#[tokio::test(start_paused = true)]
async fn a_transport_that_takes_no_more_of_the_body_is_idle() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(only_write_idle(2));
    let call = start(&service, post()).await;
    let (mut sent, _send) = received(&mut server).await;
    advance(secs(5)).await;
    assert!(take(&mut sent));
    let expected = Struck {
        bound: Bound::WriteIdle,
        phase: Phase::Sending,
        delivery: Delivery::NotSent,
        outcome: retryable(TIMED_OUT),
        after: secs(7),
    };
    assert_eq!(struck(start_at, call).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_makes_progress_is_not_idle() {
    let (service, mut server) = bounded(only_write_idle(2));
    let frames = Steps::new(&["1", "2", "3", "4", "5"]);
    let call = start(&service, request(Method::PUT, frames)).await;
    let (mut sent, send) = received(&mut server).await;
    while take(&mut sent) {
        advance(Duration::from_millis(1_900)).await;
        settle().await;
        assert!(!call.is_finished());
    }
    // What the server makes of it is not this bound's.
    advance(secs(3600)).await;
    settle().await;
    assert!(!call.is_finished());
    send.send_response(ok(Steps::empty()));
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn neither_connecting_nor_a_body_whose_source_is_slow_is_idle_writing() {
    let (service, mut server) = bounded(only_write_idle(2));
    let (to, body) = Steps::piped();
    let call = start(&service, request(Method::POST, body)).await;
    let (mut sent, _send) = received(&mut server).await;
    advance(secs(60)).await;
    settle().await;
    assert!(!call.is_finished(), "connecting");
    assert!(!take(&mut sent), "nothing is there");
    advance(secs(60)).await;
    settle().await;
    assert!(!call.is_finished(), "the source has nothing");
    to.send(Step::Data("x")).unwrap();
    let taken_at = Instant::now();
    assert!(take(&mut sent));
    let struck = struck(taken_at, call).await;
    assert_eq!((struck.bound, struck.after), (Bound::WriteIdle, secs(2)));
}

// ## Pauses of the response body

#[tokio::test(start_paused = true)]
async fn a_response_body_that_stalls_is_idle_and_its_call_unknown() {
    let (to, body) = body_of(TimeoutLayer::default()).await;
    to.send(Step::Data("a")).unwrap();
    let start_at = Instant::now();
    let error = read_body(body).await.unwrap_err();
    let expected = Struck {
        bound: Bound::ReadIdle,
        phase: Phase::ReadingBody,
        delivery: Delivery::Answered,
        outcome: unknown(TIMED_OUT),
        after: secs(20),
    };
    assert_eq!(read(start_at, &error), expected);
    assert!(to.is_closed(), "the inner body is gone");
}

#[tokio::test(start_paused = true)]
async fn a_response_body_that_drips_is_not_idle() {
    let (to, body) = body_of(TimeoutLayer::default()).await;
    let reading = tokio::spawn(read_body(body));
    for _ in 0..10 {
        settle().await;
        advance(secs(19)).await;
        to.send(Step::Data("a")).unwrap();
    }
    to.send(Step::Trailers).unwrap();
    drop(to);
    let seen = reading.await.unwrap().unwrap();
    assert_eq!(seen.len(), 11);
    assert_eq!(seen.last(), Some(&"trailers"));
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_counted_from_its_own_beginning() {
    let (to, body) = body_of(TimeoutLayer::default()).await;
    let reading = tokio::spawn(read_body(body));
    settle().await;
    advance(secs(15)).await;
    to.send(Step::Data("a")).unwrap();
    settle().await;
    let start_at = Instant::now();
    let error = reading.await.unwrap().unwrap_err();
    assert_eq!(read(start_at, &error).after, secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_takes_his_time_is_not_the_servers_fault() {
    use http_body_util::BodyExt;
    let (to, mut body) = body_of(TimeoutLayer::default()).await;
    for _ in 0..3 {
        advance(secs(3600)).await;
        let mut frame = tokio_test::task::spawn(body.frame());
        tokio_test::assert_pending!(frame.poll());
        advance(secs(19)).await;
        tokio_test::assert_pending!(frame.poll());
        to.send(Step::Data("a")).unwrap();
        assert!(tokio_test::assert_ready!(frame.poll()).unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_keeps_its_error() {
    let (to, body) = body_of(TimeoutLayer::default()).await;
    to.send(Step::Fail).unwrap();
    let error = read_body(body).await.unwrap_err();
    assert_eq!(error.to_string(), "the body broke");
}

// ## For one request

#[tokio::test(start_paused = true)]
async fn a_request_may_bring_bounds_of_its_own() {
    let longer = AttemptBounds::builder().attempt(secs(60));
    let shorter = AttemptBounds::builder().attempt(secs(1));
    let untouched = AttemptBounds::builder().read_idle(None);
    for (bounds, after) in [(longer, 60), (shorter, 1), (untouched, 10)] {
        let start_at = Instant::now();
        let (service, _server) = bounded(TimeoutLayer::default());
        let mut post = post();
        post.extensions_mut().insert(bounds.build().unwrap());
        let struck = struck(start_at, start(&service, post).await).await;
        assert_eq!((struck.bound, struck.after), (Bound::Attempt, secs(after)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_may_do_without_a_bound() {
    let (service, mut server) = bounded(TimeoutLayer::default());
    let without = AttemptBounds::builder().attempt(None).read_idle(None);
    let mut get = get();
    get.extensions_mut().insert(without.build().unwrap());
    let call = start(&service, get).await;
    let (_sent, send) = received(&mut server).await;
    advance(secs(86_400)).await;
    let (to, body) = Steps::piped();
    send.send_response(ok(body));
    let body = call.await.unwrap().unwrap().into_body();
    let reading = tokio::spawn(read_body(body));
    settle().await;
    advance(secs(86_400)).await;
    drop(to);
    assert!(reading.await.unwrap().is_ok());
}

// ## What is left of the call

#[tokio::test(start_paused = true)]
async fn an_attempt_gets_what_is_left_of_the_call() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(TimeoutLayer::default());
    let mut post = post();
    post.extensions_mut().insert(Deadline::after(secs(3)));
    let call = start(&service, post).await;
    let _kept = received(&mut server).await;
    let expected = Struck {
        bound: Bound::Deadline,
        phase: Phase::Connecting,
        delivery: Delivery::NotSent,
        outcome: retryable(TIMED_OUT),
        after: secs(3),
    };
    assert_eq!(struck(start_at, call).await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_for_which_nothing_is_left_is_not_started() {
    let start_at = Instant::now();
    let (service, mut server) = bounded(TimeoutLayer::default());
    let mut post = post();
    post.extensions_mut().insert(Deadline::after(secs(0)));
    let call = start(&service, post).await;
    let expected = Struck {
        bound: Bound::Deadline,
        phase: Phase::Queued,
        delivery: Delivery::NotSent,
        outcome: retryable(Reason::LocalLimit),
        after: secs(0),
    };
    assert_eq!(struck(start_at, call).await, expected);
    drop(service);
    assert!(server.next_request().await.is_none());
}
