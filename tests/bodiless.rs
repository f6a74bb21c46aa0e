//! Answers that announce a length and carry no body are complete.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_outcome::{Answer as Said, CallReport, HttpClassifier, Judged, Outcome, RetryLayer};
use tower_outcome_testkit::{Answer, Venue};

/// Asks with each method and gets each status, over both protocols, and reads the body to its end.
async fn outcome(http2: bool, method: Method, status: u16, rule: bool) -> Outcome {
    let venue = Venue::builder()
        .answer(move |_| match status {
            200 => Answer::status(200).body("four"),
            // What a 304 would have carried, had it been a 200.
            304 => Answer::status(304).header("content-length", "4"),
            status => Answer::status(status),
        })
        .start()
        .unwrap();
    let classifier = if rule {
        HttpClassifier::builder().body_rule(|_: Judged<'_>| None::<Said>)
    } else {
        HttpClassifier::builder()
    };
    let retry = RetryLayer::builder()
        .classifier(classifier.build().unwrap())
        .max_attempts(1)
        .build()
        .unwrap();
    let client = Client::builder(TokioExecutor::new())
        .http2_only(http2)
        .build(HttpConnector::new());
    let mut stack = ServiceBuilder::new().layer(retry).service(client);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = method;
    *request.uri_mut() = venue.url("/price").parse().unwrap();
    let call = stack.ready().await.unwrap().call(request);
    let result = tokio::time::timeout(Duration::from_secs(10), call)
        .await
        .expect("the venue answers");
    let outcome = CallReport::outcome_of(&result);
    let response = result.unwrap();
    assert_eq!(response.status(), StatusCode::from_u16(status).unwrap());
    response
        .into_body()
        .collect()
        .await
        .expect("a complete body");
    outcome
}

#[tokio::test]
async fn an_answer_that_needs_no_body_is_not_cut_short() {
    for http2 in [false, true] {
        for rule in [false, true] {
            for (method, status) in [
                (Method::GET, 200),
                (Method::HEAD, 200),
                (Method::GET, 204),
                (Method::GET, 304),
                (Method::HEAD, 304),
            ] {
                let outcome = outcome(http2, method.clone(), status, rule).await;
                assert_eq!(
                    outcome,
                    Outcome::Success,
                    "{method} {status}, HTTP/2: {http2}, rule: {rule}"
                );
            }
        }
    }
}
