//! The deadline on the wire, as gRPC has it.

use std::time::Duration;

use http::HeaderValue;
use tokio::time::{Instant, advance};
use tower::{Layer, Service};
use tower_outcome_core::{BoxError, Deadline, Delivery, Failure, Reason};
use tower_outcome_timeout::{Bound, DeadlineLayer, Elapsed, SentBody, TimeoutLayer, Timeouts};
use tower_test::mock;

use crate::support::*;

type OnWire = http::Request<SentBody<Steps>>;

fn timeouts() -> Timeouts {
    Timeouts::builder().grpc_timeout(true).build().unwrap()
}

/// Sends a request through both layers, and returns the deadline below and what the server is told.
async fn told(timeouts: &Timeouts, request: Req) -> (Option<Instant>, Option<HeaderValue>) {
    let (mock, mut server) = mock::pair::<OnWire, Res>();
    let service = DeadlineLayer::new(timeouts).layer(TimeoutLayer::new(timeouts).layer(mock));
    let call = start(&service, request).await;
    let (sent, _send) = received(&mut server).await;
    call.abort();
    let deadline = Deadline::of(sent.extensions()).map(Deadline::instant);
    (deadline, sent.headers().get("grpc-timeout").cloned())
}

fn asking(timeout: &'static str) -> Req {
    let mut request = post();
    let value = HeaderValue::from_static(timeout);
    request.headers_mut().insert("grpc-timeout", value);
    request
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_the_deadline_is_sent() {
    let (deadline, sent) = told(&timeouts(), post()).await;
    assert_eq!(deadline, Some(Instant::now() + secs(30)));
    assert_eq!(sent.unwrap(), "30000000u");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_unless_it_is_asked_for() {
    let (_, sent) = told(&Timeouts::new(), post()).await;
    assert_eq!(sent, None);
    let (deadline, sent) = told(&Timeouts::new(), asking("7S")).await;
    assert_eq!(deadline, Some(Instant::now() + secs(30)));
    assert_eq!(sent.unwrap(), "7S");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_where_there_is_no_deadline() {
    let endless = Timeouts::builder().call(None).grpc_timeout(true);
    let (deadline, sent) = told(&endless.build().unwrap(), post()).await;
    assert_eq!((deadline, sent), (None, None));
}

#[tokio::test(start_paused = true)]
async fn each_attempt_sends_what_is_left_by_then() {
    let (mock, mut server) = mock::pair::<OnWire, Res>();
    let service = TimeoutLayer::new(&timeouts()).layer(mock);
    let deadline = Deadline::after(secs(20));
    for expected in ["20000000u", "13000000u", "6000000u"] {
        // The first word of the caller is repeated with each attempt.
        let mut attempt = asking("60S");
        attempt.extensions_mut().insert(deadline);
        let call = start(&service, attempt).await;
        let (sent, _send) = received(&mut server).await;
        assert_eq!(sent.headers()["grpc-timeout"], expected);
        call.abort();
        advance(secs(7)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_that_the_caller_has_set_is_its_deadline() {
    for (asked, left) in [("7S", 7), ("60000m", 60)] {
        let (deadline, told) = told(&timeouts(), asking(asked)).await;
        assert_eq!(deadline, Some(Instant::now() + secs(left)));
        // No time has passed since.
        assert_eq!(told.unwrap(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_timeout_and_a_deadline_the_earlier_counts() {
    for (asked, left, sent) in [("7S", 7, "7S"), ("9S", 8, "8000000u")] {
        let mut request = asking(asked);
        request.extensions_mut().insert(Deadline::after(secs(8)));
        let (deadline, told) = told(&timeouts(), request).await;
        assert_eq!(deadline, Some(Instant::now() + secs(left)));
        assert_eq!(told.unwrap(), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_that_is_no_time_is_replaced_by_the_deadline() {
    let (deadline, told) = told(&timeouts(), asking("soon")).await;
    assert_eq!(deadline, Some(Instant::now() + secs(30)));
    assert_eq!(told.unwrap(), "30000000u");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_zero_starts_nothing() {
    let (mock, mut server) = mock::pair::<Req, Res>();
    let mut service = DeadlineLayer::new(&timeouts()).layer(mock);
    server.allow(1);
    let ready: Result<(), BoxError> =
        std::future::poll_fn(|cx| Service::<Req>::poll_ready(&mut service, cx)).await;
    ready.unwrap();
    let error = service.call(asking("0n")).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert!(failure.delivery().proves_not_applied());
    assert!(
        tokio_test::task::spawn(server.next_request())
            .poll()
            .is_pending()
    );
}

/// A deadline below another, as of a layer that makes calls of its own.
#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_outlast_the_deadline_around_it() {
    let (mock, mut server) = mock::pair::<OnWire, Res>();
    let inner = DeadlineLayer::new(&timeouts()).layer(TimeoutLayer::new(&timeouts()).layer(mock));
    let short = Timeouts::builder().call(secs(5)).build().unwrap();
    let service = DeadlineLayer::new(&short).layer(inner);
    let call = start(&service, asking("9S")).await;
    let (sent, _send) = received(&mut server).await;
    assert_eq!(sent.headers()["grpc-timeout"], "5000000u");
    call.abort();
}

/// As tonic's channel, which sees the header and keeps the time itself.
#[tokio::test(start_paused = true)]
async fn a_transport_that_strikes_at_the_deadline_is_the_deadline() {
    let late = || Failure::new(unknown(Reason::TimedOut), Delivery::MaybeSent, "late");
    let broken = || Failure::new(unknown(Reason::Transport), Delivery::MaybeSent, "broken");
    let cases: [(Duration, Failure, Option<Bound>); 4] = [
        (
            Duration::from_micros(4_999_500),
            late(),
            Some(Bound::Deadline),
        ),
        (secs(5), late(), Some(Bound::Deadline)),
        // A bound of the transport's own.
        (secs(4), late(), None),
        (secs(5), broken(), None),
    ];
    for (at, failure, expected) in cases {
        let (mock, mut server) = mock::pair::<OnWire, Res>();
        let service = TimeoutLayer::new(&timeouts()).layer(mock);
        let mut request = post();
        let deadline = Deadline::after(secs(5));
        request.extensions_mut().insert(deadline);
        let call = start(&service, request).await;
        let (_sent, send) = received(&mut server).await;
        let (outcome, delivery) = (failure.outcome(), failure.delivery());
        // Both in the same turn, so that the transport is first.
        send.send_error(failure);
        advance(at).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(Elapsed::of(&*error).map(Elapsed::bound), expected);
        let failure = Failure::of(&*error).unwrap();
        assert_eq!((failure.outcome(), failure.delivery()), (outcome, delivery));
    }
}
