//! What becomes of the connection of an answer that is discarded.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_outcome::{Backoff, CallReport, Jitter, RetryLayer};
use tower_outcome_testkit::{Answer, Venue};

/// Answers the first request with a 503 of that many bytes, and every other with a 200.
fn busy_once(bytes: usize) -> Venue {
    let requests = AtomicU32::new(0);
    Venue::builder()
        .answer(move |_| match requests.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::status(503).body(vec![b'.'; bytes]),
            _ => Answer::status(200),
        })
        .start()
        .unwrap()
}

async fn connections_used(bytes: usize) -> u64 {
    let venue = busy_once(bytes);
    let retry = RetryLayer::builder()
        // Long enough for the answer to be read meanwhile.
        .backoff(
            Backoff::new()
                .base(Duration::from_millis(200))
                .jitter(Jitter::None),
        )
        .drain_limit(10_000)
        .build()
        .unwrap();
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .retry_canceled_requests(false)
        .build(HttpConnector::new());
    let mut stack = ServiceBuilder::new().layer(retry).service(client);
    let request = Request::get(venue.url("/price"))
        .body(Empty::<Bytes>::new())
        .unwrap();
    let call = stack.ready().await.unwrap().call(request);
    let response = tokio::time::timeout(Duration::from_secs(10), call)
        .await
        .expect("the venue answers")
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(CallReport::of(response.extensions()).unwrap().attempts(), 2);
    response.into_body().collect().await.unwrap();
    venue.ledger().connections()
}

#[tokio::test]
async fn a_small_answer_is_read_to_its_end_and_its_connection_used_again() {
    assert_eq!(connections_used(10_000).await, 1);
}

#[tokio::test]
async fn a_large_answer_is_not_worth_its_connection() {
    assert_eq!(connections_used(3_000_000).await, 2);
}
