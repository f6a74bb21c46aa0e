//! The smallest stack: Retry around hyper-util's client.
//!
//! A query is sent again after a failure, an order is not, and nothing else differs.
//!
//! ```sh
//! cargo run --example retry_hyper
//! ```

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::{BoxError, CallReport, RetryLayer};
use tower_outcome_testkit::{Fault, Plan, Venue};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // A venue of which every other answer is 503; whether it acted before, nobody can tell.
    let plan = Plan::new(4).rate(0.5).fault(1, Fault::status(503, true));
    let venue = Venue::builder().plan(plan).start()?;

    let client = Client::builder(TokioExecutor::new())
        // hyper-util would otherwise resend behind the layer's back.
        .retry_canceled_requests(false)
        .build_http::<Full<Bytes>>();
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new())
        .service(client);

    for method in [Method::GET, Method::POST] {
        for number in 1..=4 {
            let operation = format!("{method}-{number}");
            let request = Request::builder()
                .method(&method)
                .uri(venue.url("/orders"))
                .header("x-operation-id", &operation)
                .body(Full::default())?;
            let result = service.clone().oneshot(request).await;
            let outcome = CallReport::outcome_of(&result);
            let requests = venue.ledger().attempts(&operation);
            println!("{method:<4} /orders  {requests} requests  {outcome}");
        }
    }
    Ok(())
}
