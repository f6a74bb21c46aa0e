//! A session that dies under calls over tonic's channel.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use tonic::{body::Body, transport::Endpoint};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{
    AuthRefreshLayer, CallReport, Credential, Credentials, GrpcClassifier, Outcome, ReplayLayer,
};
use tower_outcome_testkit::{self as testkit, Venue};

#[tokio::test]
async fn an_unauthenticated_order_is_sent_once_more_over_a_channel() {
    let fetched = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&fetched);
    let source = move |_: Option<Credential>| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(Credential::new(format!("session-{number}"))) }
    };
    let venue = Venue::builder()
        .demand(|request: &testkit::Request| {
            if request.header("authorization") == Some("Bearer session-2") {
                return Ok(());
            }
            // UNAUTHENTICATED, in trailers and nothing else.
            Err(testkit::Answer::status(200)
                .header("content-type", "application/grpc")
                .header("grpc-status", "16"))
        })
        .start()
        .unwrap();
    let credentials = Credentials::builder("venue", source)
        .origin(venue.url("").trim_end_matches('/'))
        .build()
        .unwrap();
    let auth = AuthRefreshLayer::builder(credentials).classifier(GrpcClassifier::new());
    let channel = Endpoint::from_shared(venue.url("")).unwrap().connect_lazy();
    let stack = ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(auth.build())
        .layer(MapRequestBodyLayer::new(Body::new))
        .service(channel);
    let message = Full::new(Bytes::from_static(&[0, 0, 0, 0, 2, b'h', b'i']));
    let order = Request::post(venue.url("/venue.Orders/Place"))
        .header(CONTENT_TYPE, "application/grpc")
        .header("x-operation-id", "order")
        .body(Body::new(message))
        .unwrap();
    let result = stack.oneshot(order).await;
    let report = CallReport::in_result(&result).unwrap();
    assert_eq!((report.attempts(), report.outcome()), (2, Outcome::Success));
    assert!(result.unwrap().into_body().collect().await.is_ok());
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
    assert_eq!(venue.ledger().applied("order"), 1);
}
