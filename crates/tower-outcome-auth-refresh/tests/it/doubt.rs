//! Rejections that another credential does not help.

use std::time::Duration;

use http::Request;
use http_body_util::Full;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_outcome_auth_refresh::Credential;
use tower_outcome_core::{CallReport, Deadline, Outcome, Reason};

use crate::support::*;

/// One endpoint says 401 whatever comes, while orders come every so often; returns how many orders were
/// sent in a minute, the longest one, and how many rejections.
async fn a_minute_beside_a_bad_endpoint(
    stage: &Stage,
    every: Duration,
) -> (usize, Duration, usize) {
    stage.venue.latency(Duration::from_millis(5));
    let service = stage.service.clone();
    let bad = service.clone();
    let bad = tokio::spawn(async move {
        let mut rejections = 0;
        let begin = Instant::now();
        while begin.elapsed() < MINUTE {
            let request = Request::get("https://venue.test/admin");
            let request = request.body(Full::default()).unwrap();
            let response = bad.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), 401);
            rejections += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        rejections
    });
    let (begin, mut orders, mut longest) = (Instant::now(), 0, Duration::ZERO);
    while begin.elapsed() < MINUTE {
        let began = Instant::now();
        let response = service.clone().oneshot(post()).await.unwrap();
        assert_eq!(response.status(), 200);
        orders += 1;
        longest = longest.max(began.elapsed());
        tokio::time::sleep(every).await;
    }
    (orders, longest, bad.await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_always_says_401_neither_stops_the_others_nor_logs_in_for_ever() {
    let source = Source::endless().takes(Duration::from_millis(300));
    let stage = Stage::new(source);
    let every = Duration::from_millis(20);
    let (orders, longest, rejections) = a_minute_beside_a_bad_endpoint(&stage, every).await;
    assert!(
        stage.source.calls() <= 8,
        "{} log-ins",
        stage.source.calls()
    );
    assert!(orders > 2_000, "{orders} orders");
    assert!(longest < SECOND * 3, "an order took {longest:?}");
    assert!(rejections > 500, "{rejections} answers of the endpoint");
}

#[tokio::test(start_paused = true)]
async fn nor_does_it_where_others_are_seldom() {
    let stage = Stage::new(Source::endless());
    let (_, longest, _) = a_minute_beside_a_bad_endpoint(&stage, SECOND * 7).await;
    assert!(longest < SECOND * 3, "an order took {longest:?}");
    assert!(
        stage.source.calls() <= 8,
        "{} log-ins",
        stage.source.calls()
    );
}

#[tokio::test(start_paused = true)]
async fn a_source_that_always_returns_the_same_is_asked_ever_more_seldom() {
    let stage = Stage::new(Source::new([Say::Exactly(Credential::new("same"))]));
    a_minute_beside_a_bad_endpoint(&stage, Duration::from_millis(20)).await;
    assert!(
        stage.source.calls() <= 8,
        "{} log-ins",
        stage.source.calls()
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_that_dies_after_a_false_alarm_is_replaced_at_once() {
    let stage = Stage::new(Source::endless());
    a_minute_beside_a_bad_endpoint(&stage, Duration::from_millis(20)).await;
    let present = stage.credentials.current().unwrap();
    stage.pass(MINUTE).await;
    assert_eq!(stage.call().await, Ok(200));
    stage.venue.reject(present.credential().token().expose());
    let calls = stage.source.calls();
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), calls + 1);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_the_answer_at_once_if_nothing_may_be_refreshed_for_long() {
    let stage = Stage::new(Source::endless());
    stage.venue.reject_all();
    for _ in 0..100 {
        let began = Instant::now();
        let reply: Reply = stage.service.clone().oneshot(post()).await;
        let report = CallReport::in_result(&reply).unwrap();
        let rejected = Outcome::Permanent {
            reason: Reason::AuthRejected,
        };
        assert_eq!(report.outcome(), rejected);
        assert_eq!(reply.unwrap().status(), 401);
        assert!(began.elapsed() < SECOND * 5, "{:?}", began.elapsed());
    }
    assert!(stage.source.calls() < 6, "{} log-ins", stage.source.calls());
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_the_answer_if_nothing_may_be_refreshed_before_the_deadline() {
    let stage = Stage::with(Source::endless(), Venue::default(), |builder| {
        builder.min_interval(SECOND * 2)
    });
    assert_eq!(stage.call().await, Ok(200));
    stage.venue.reject_all();
    let mut order = post();
    order.extensions_mut().insert(Deadline::after(SECOND));
    let began = Instant::now();
    let response = stage.service.clone().oneshot(order).await.unwrap();
    assert_eq!(response.status(), 401);
    assert!(began.elapsed().is_zero());
}
