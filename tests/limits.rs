//! The limiter over real sockets: what the venue counts, and who pays.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::task::JoinSet;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_outcome::{
    Backoff, CallReport, Guard, Limit, Priority, RateBudget, RateLimitLayer, RetryBudget,
    RetryLayer, WitnessConnector, WitnessLayer,
};
use tower_outcome_testkit::{self as testkit, Ban, Fault, Ledger, Plan, Point, Venue};

const REQUESTS: u32 = 40;
const WINDOW: Duration = Duration::from_millis(400);

/// A venue that bans whoever is refused three times, and has a bad day.
fn venue(limit: testkit::Limit) -> Venue {
    let plan = Plan::new(7)
        .rate(0.1)
        .fault(1, Fault::Close { at: Point::Applied })
        .fault(1, Fault::Reset { at: Point::Body })
        .fault(2, Fault::status(503, false));
    Venue::builder()
        .limit(limit)
        .ban(Ban::new(
            3,
            Duration::from_secs(60),
            Duration::from_secs(60),
        ))
        .latency(Duration::from_millis(2))
        .plan(plan)
        .start()
        .unwrap()
}

fn budget() -> RateBudget {
    RateBudget::builder("venue")
        .limit(Limit::sliding("requests", REQUESTS, WINDOW))
        .guard(Guard::UntilResponse {
            late: Duration::from_millis(100),
        })
        .build()
        .unwrap()
}

/// Sends requests from four clients at once that share the budget, and returns how many attempts
/// they made.
async fn storm(venue: &Venue, budget: &RateBudget, version: Version) -> usize {
    let retry = RetryLayer::builder()
        .max_attempts(4)
        .backoff(Backoff::new().base(Duration::from_millis(5)))
        .budget(RetryBudget::unlimited())
        .build()
        .unwrap();
    let mut calls = JoinSet::new();
    for client in 0..4 {
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .retry_canceled_requests(false)
            .http2_only(version == Version::HTTP_2)
            .build(WitnessConnector::new(HttpConnector::new()));
        let stack = ServiceBuilder::new()
            .layer(retry.clone())
            .layer(RateLimitLayer::new(budget.clone()))
            .layer(WitnessLayer::new())
            .service(http);
        for number in 0..50 {
            let order = number % 5 == 0;
            let method = if order { Method::POST } else { Method::GET };
            let mut request = Request::builder()
                .method(method)
                .version(version)
                .uri(venue.url("/orders"))
                .header(Ledger::OPERATION_HEADER, format!("{client}-{number}"))
                .body(Full::new(Bytes::from("buy 1")))
                .unwrap();
            if order {
                request.extensions_mut().insert(Priority::HIGHEST);
            }
            let mut stack = stack.clone();
            calls.spawn(async move {
                let result = stack.ready().await.unwrap().call(request).await;
                let attempts = CallReport::in_result(&result).map_or(1, CallReport::attempts);
                if let Ok(response) = result {
                    // A body may break off; the request counted all the same.
                    let _ = response.into_body().collect().await;
                }
                attempts
            });
        }
    }
    let attempts = calls.join_all().await;
    attempts.into_iter().map(|each| each as usize).sum()
}

async fn stays_within(limit: testkit::Limit, version: Version) {
    let venue = venue(limit);
    let budget = budget();
    storm(&venue, &budget, version).await;
    let ledger = venue.ledger();
    assert_eq!(ledger.answered(429), 0);
    assert_eq!(ledger.answered(418), 0);
    assert_eq!(ledger.bans(None), 0);
    assert!(ledger.len() >= 200, "every request got its turn");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sliding_limit_is_never_exceeded_over_http1() {
    stays_within(testkit::Limit::sliding(REQUESTS, WINDOW), Version::HTTP_11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sliding_limit_is_never_exceeded_over_http2() {
    stays_within(testkit::Limit::sliding(REQUESTS, WINDOW), Version::HTTP_2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_limit_of_any_phase_is_never_exceeded() {
    stays_within(testkit::Limit::fixed(REQUESTS, WINDOW), Version::HTTP_11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attempt_pays() {
    let venue = venue(testkit::Limit::sliding(REQUESTS, WINDOW));
    let budget = budget();
    let attempts = storm(&venue, &budget, Version::HTTP_11).await;
    assert!(attempts > 200, "some were sent again");
    let granted: u64 = budget
        .snapshot()
        .classes
        .iter()
        .map(|class| class.granted)
        .sum();
    assert_eq!(granted, attempts as u64);
}
