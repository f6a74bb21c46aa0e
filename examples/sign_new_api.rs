//! A signer for an API that is not among the ready-made ones, in a dozen lines.
//!
//! The documentation of such an API says: "sign the time in milliseconds, the method, the path with its
//! query and the body, with HMAC-SHA-256; send the signature in hexadecimal digits; we accept it for
//! five seconds". The description below says the same, and verifies on the other side.
//!
//! ```sh
//! cargo run --example sign_new_api
//! ```

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::{
    BoxError, Clock, ConfigError, RetryLayer, SignLayer, SystemClock, Template, Verifier,
    sign::{Key, Part, Secret, Unit},
};
use tower_outcome_testkit::{Fault, Plan, Signature, Signed, Venue};

/// What this is all about.
fn signer(key_id: &str, secret: &str) -> Result<Template, ConfigError> {
    Template::builder(Key::hmac_sha256(Secret::new(secret))?)
        .key_id(key_id)
        .sign([
            Part::Timestamp(Unit::Millis),
            Part::Method,
            Part::PathAndQuery,
            Part::Body,
        ])
        .header("x-acme-key", [Part::KeyId])
        .header("x-acme-time", [Part::Timestamp(Unit::Millis)])
        .header("x-acme-sign", [Part::Signature])
        .window(Duration::from_secs(5))
        .build()
}

/// A venue of that API.
fn venue() -> Result<Venue, BoxError> {
    let verifier = Verifier::new(signer("the key's name", "the secret")?)?;
    let demand = Signature::new(move |request: &Request<Bytes>| {
        let verified = verifier.verify(request, SystemClock::new().now());
        verified.ok().map(|_| Signed::new())
    });
    // Every other time it has no time to look at the request.
    let plan = Plan::new(28)
        .rate(0.5)
        .fault(1, Fault::retry_after(503, "0"));
    Ok(Venue::builder().demand(demand).plan(plan).start()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    for (what, status, requests) in orders().await? {
        println!("{what:<24} {status}, requests: {requests}");
    }
    Ok(())
}

/// Places orders; returns what was answered, and after how many requests.
async fn orders() -> Result<Vec<(&'static str, u16, usize)>, BoxError> {
    let venue = venue()?;
    let mut seen = Vec::new();
    for (what, secret) in [
        ("signed", "the secret"),
        ("signed for each attempt", "the secret"),
        ("signed by a stranger", "another secret"),
    ] {
        let client = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(false)
            .build_http();
        let service = ServiceBuilder::new()
            .layer(RetryLayer::new())
            .layer(SignLayer::new(
                signer("the key's name", secret)?,
                &venue.url(""),
            )?)
            .service(client);
        let order = Request::post(venue.url("/orders?dry=no"))
            .header("x-operation-id", what)
            .header("idempotency-key", what)
            .body(Full::new(Bytes::from("buy 1")))?;
        let response = service.oneshot(order).await?;
        let requests = venue.ledger().attempts(what);
        seen.push((what, response.status().as_u16(), requests));
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_is_signed_with_the_secret_is_accepted() {
        let seen = orders().await.unwrap();
        assert_eq!(seen[0], ("signed", 200, 1));
        assert_eq!(seen[1], ("signed for each attempt", 200, 2));
        assert_eq!(seen[2], ("signed by a stranger", 401, 1));
    }
}
