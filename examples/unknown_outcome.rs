//! What became of an order: the four outcomes, and what to do about each.
//!
//! ```sh
//! cargo run --example unknown_outcome
//! ```

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::{BoxError, CallReport, HttpClassifier, Outcome, RetryLayer};
use tower_outcome_testkit::{Fault, Point, Venue};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let venue = Venue::start()?;
    let client = Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .build_http::<Full<Bytes>>();
    // This venue promises that a request over its limit was not looked at.
    let classifier = HttpClassifier::builder()
        .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS])
        .build()?;
    let retry = RetryLayer::builder().classifier(classifier).max_attempts(1);
    let service = ServiceBuilder::new().layer(retry.build()?).service(client);

    let faults = [
        ("fine", None),
        ("over-limit", Some(Fault::retry_after(429, "2"))),
        ("bad-order", Some(Fault::status(400, false))),
        ("no-answer", Some(Fault::Close { at: Point::Applied })),
        ("broken", Some(Fault::status(500, false))),
    ];
    for (id, fault) in faults {
        let mut request = Request::post(venue.url("/orders"))
            .header("x-operation-id", HeaderValue::from_static(id))
            .body(Full::from("buy 1"))?;
        if let Some(fault) = fault {
            request
                .headers_mut()
                .insert(Fault::HEADER, fault.header_value());
        }
        let result = service.clone().oneshot(request).await;
        let advice = match CallReport::outcome_of(&result) {
            Outcome::Success => "placed".to_owned(),
            Outcome::Retryable { reason, after } => {
                let wait =
                    after.map_or_else(String::new, |after| format!(" in {:?}", after.delay()));
                format!("not placed ({reason}); place it again{wait}")
            }
            Outcome::Permanent { reason } => format!("not placed ({reason}); mend it first"),
            Outcome::Unknown { reason } => format!("perhaps placed ({reason}); ask the venue"),
        };
        let truth = venue.ledger().applied(id);
        println!("{id:<10}  {advice:<52}  the venue placed it {truth} times");
    }
    Ok(())
}
