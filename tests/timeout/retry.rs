//! Bounds around and below Retry.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use socket2::{Domain, Socket, Type};
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_outcome::{
    Backoff, Bound, BoxError, CallReport, ConnectionLimitLayer, DeadlineLayer, Delivery, Elapsed,
    Failure, IdempotencyKeyLayer, Jitter, Limit, NotRetried, Outcome, Phase, RateBudget,
    RateLimitLayer, Reason, RetryLayer, TimeoutLayer, Timeouts, WitnessConnector, WitnessLayer,
};
use tower_outcome_testkit::{Answer, Fault, Point, Venue};

use super::stack::{Protocol, client, nodelay, within};

type Order = Request<Full<Bytes>>;

/// The whole stack, with Retry in its place. Its key is `k-1`, where it makes one.
async fn call(timeouts: &Timeouts, keyed: bool, order: Order) -> Result<Response<Bytes>, BoxError> {
    let retry = RetryLayer::builder()
        .backoff(
            Backoff::new()
                .base(Duration::from_millis(1))
                .throttled_base(Duration::from_millis(1))
                .jitter(Jitter::None),
        )
        .max_attempts(3);
    let limit = ConnectionLimitLayer::builder(4).timeouts(timeouts);
    let below = ServiceBuilder::new()
        .layer(retry.build().unwrap())
        .layer(limit.build().unwrap())
        .layer(TimeoutLayer::new(timeouts))
        .layer(WitnessLayer::new())
        .service(client(timeouts, Protocol::Http1, nodelay()));
    let deadline = DeadlineLayer::new(timeouts);
    let answered = async {
        let response = if keyed {
            let keys = IdempotencyKeyLayer::new(|| HeaderValue::from_static("k-1"));
            deadline.layer(keys.layer(below)).oneshot(order).await?
        } else {
            deadline.layer(below).oneshot(order).await?
        };
        let (head, body) = response.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    };
    within(answered).await
}

fn order(method: Method, url: &str, fault: Option<&Fault>) -> Order {
    let mut request = Request::new(Full::from("buy 100"));
    *request.method_mut() = method;
    *request.uri_mut() = url.parse().unwrap();
    let headers = request.headers_mut();
    headers.insert("x-operation-id", HeaderValue::from_static("order-1"));
    if let Some(fault) = fault {
        headers.insert(Fault::HEADER, fault.header_value());
    }
    request
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test]
async fn an_order_that_could_not_be_connected_is_tried_again_by_proof() {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    socket.listen(0).unwrap();
    let _first = std::net::TcpStream::connect(addr).unwrap();
    let timeouts = Timeouts::builder().connect(millis(50)).build().unwrap();
    let post = order(Method::POST, &format!("http://{addr}/"), None);
    let error = call(&timeouts, false, post).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.delivery(), Delivery::NotSent);
    assert!(failure.outcome().is_retryable());
    assert_eq!(failure.report().unwrap().attempts(), 3);
    assert_eq!(Elapsed::of(&*error).unwrap().bound(), Bound::Connect);
}

#[tokio::test]
async fn an_order_that_was_taken_is_not_sent_again() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder().attempt(millis(200)).build().unwrap();
    let stall = Fault::Stall { at: Point::Applied };
    let post = order(Method::POST, &venue.url("/orders"), Some(&stall));
    let error = call(&timeouts, false, post).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    let unknown = Outcome::Unknown {
        reason: Reason::TimedOut,
    };
    assert_eq!(failure.outcome(), unknown);
    assert_eq!(failure.delivery(), Delivery::MaybeSent);
    assert_eq!(venue.ledger().attempts("order-1"), 1);
    assert_eq!(venue.ledger().applied("order-1"), 1);
}

#[tokio::test]
async fn a_question_is_asked_again_after_an_attempt_that_took_too_long() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder().attempt(millis(100)).build().unwrap();
    let stall = Fault::Stall { at: Point::Body };
    let get = order(Method::GET, &venue.url("/price"), Some(&stall));
    let error = call(&timeouts, false, get).await.unwrap_err();
    let report = Failure::of(&*error).unwrap().report().unwrap().clone();
    assert_eq!(report.attempts(), 3);
    assert!(matches!(report.not_retried(), Some(NotRetried::Exhausted)));
    assert_eq!(Elapsed::of(&*error).unwrap().bound(), Bound::Attempt);
}

#[tokio::test]
async fn the_deadline_ends_the_attempt_that_is_under_way_and_retry_does_not_go_on() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder().call(millis(300)).build().unwrap();
    let stall = Fault::Stall { at: Point::Body };
    let get = order(Method::GET, &venue.url("/price"), Some(&stall));
    let error = call(&timeouts, false, get).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert!(failure.outcome().is_retryable());
    assert_eq!(failure.delivery(), Delivery::MaybeSent);
    let report = failure.report().unwrap();
    assert_eq!(report.attempts(), 1);
    assert!(matches!(report.not_retried(), Some(NotRetried::Deadline)));
    assert_eq!(Elapsed::of(&*error).unwrap().bound(), Bound::Deadline);
    assert_eq!(venue.ledger().attempts("order-1"), 1);
}

#[tokio::test]
async fn retry_does_not_sleep_past_the_deadline_and_the_last_answer_survives() {
    let venue = Venue::builder()
        .answer(|_| Answer::status(503).header("retry-after", "5"))
        .start()
        .unwrap();
    let timeouts = Timeouts::builder().call(Duration::from_secs(4)).build();
    let get = order(Method::GET, &venue.url("/price"), None);
    let response = call(&timeouts.unwrap(), false, get).await.unwrap();
    assert_eq!(response.status(), 503);
    let report = CallReport::of(response.extensions()).unwrap();
    assert!(matches!(report.not_retried(), Some(NotRetried::Deadline)));
    assert_eq!(venue.ledger().attempts("order-1"), 1);
}

#[tokio::test]
async fn an_order_with_a_key_that_retry_knows_is_not_unknown_and_the_key_is_handed_back() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder().call(millis(400)).read_idle(None);
    let timeouts = timeouts.build().unwrap();
    let stall = Fault::Stall { at: Point::Body };
    let post = order(Method::POST, &venue.url("/orders"), Some(&stall));
    let error = call(&timeouts, true, post).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert!(failure.outcome().is_retryable(), "{failure:?}");
    assert_eq!(failure.idempotency_key().unwrap(), "k-1");
}

#[tokio::test]
async fn a_body_that_stalls_after_a_success_is_unknown_for_an_order() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder().read_idle(millis(150)).build().unwrap();
    let stall = Fault::Stall {
        at: Point::Response,
    };
    for (method, is_unknown) in [(Method::POST, true), (Method::GET, false)] {
        let order = order(method, &venue.url("/orders"), Some(&stall));
        let error = call(&timeouts, false, order).await.unwrap_err();
        let failure = Failure::of(&*error).unwrap();
        assert_eq!(failure.delivery(), Delivery::Answered);
        assert_eq!(failure.outcome().is_unknown(), is_unknown);
        assert_eq!(Elapsed::of(&*error).unwrap().bound(), Bound::ReadIdle);
    }
}

#[tokio::test]
async fn without_a_bound_of_the_attempt_the_deadline_learns_from_the_witness_below_retry() {
    for (method, at) in [(Method::POST, Point::Body), (Method::GET, Point::Body)] {
        let venue = Venue::start().unwrap();
        let timeouts = Timeouts::builder().call(millis(300)).build().unwrap();
        let client = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(false)
            .build(WitnessConnector::new(nodelay()));
        let stack = ServiceBuilder::new()
            .layer(DeadlineLayer::new(&timeouts))
            .layer(RetryLayer::new())
            .layer(WitnessLayer::new())
            .service(client);
        let is_post = method == Method::POST;
        let order = order(method, &venue.url("/orders"), Some(&Fault::Stall { at }));
        let error = within(stack.oneshot(order)).await.unwrap_err();
        let failure = Failure::of(&*error).unwrap();
        assert_eq!(failure.delivery(), Delivery::MaybeSent);
        assert_eq!(failure.outcome().is_unknown(), is_post);
        let elapsed = Elapsed::of(&*error).unwrap();
        assert_eq!(elapsed.bound(), Bound::Deadline);
        assert_eq!(elapsed.phase(), Phase::AwaitingHead);
        assert_eq!(failure.report().unwrap().attempts(), 1);
    }
}

/// A request that waits for the limiter has been handed to nobody, and the whole stack knows.
#[tokio::test]
async fn a_call_whose_time_is_over_in_the_limiters_queue_was_not_sent() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder().call(millis(300)).build().unwrap();
    let budget =
        RateBudget::builder("orders").limit(Limit::sliding("one", 1, Duration::from_secs(600)));
    let limit = ConnectionLimitLayer::builder(4).timeouts(&timeouts);
    let stack = ServiceBuilder::new()
        .layer(DeadlineLayer::new(&timeouts))
        .layer(RetryLayer::new())
        .layer(RateLimitLayer::new(budget.build().unwrap()))
        .layer(limit.build().unwrap())
        .layer(TimeoutLayer::new(&timeouts))
        .layer(WitnessLayer::new())
        .service(client(&timeouts, Protocol::Http1, nodelay()));
    let post = || order(Method::POST, &venue.url("/orders"), None);
    let first = within(stack.clone().oneshot(post())).await.unwrap();
    assert_eq!(first.status(), 200);
    let error = within(stack.oneshot(post())).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.delivery(), Delivery::NotSent);
    assert!(!failure.outcome().is_unknown());
    assert_eq!(venue.ledger().applied("order-1"), 1);
}
