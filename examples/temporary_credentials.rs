//! Temporary credentials that are no header: a key, a secret and a session token that end at a date,
//! handed down to what signs each request, as with AWS.
//!
//! ```sh
//! cargo run --example temporary_credentials
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::{
    AuthRefreshLayer, BoxError, Clock, Credential, Credentials, FetchError, SystemClock,
    auth_refresh::{Headers, Snapshot},
};
use tower_outcome_testkit::Venue;

/// What a metadata service would answer.
fn metadata(number: u32, now: SystemTime) -> Result<Credential, FetchError> {
    let hour = Duration::from_secs(3600);
    Ok(Credential::new(format!("session-token-{number}"))
        .with_field("access-key-id", format!("ASIA{number}"))
        .with_field("secret-access-key", "wJalrXUtnFEMI")
        // They name a date; it counts on both clocks.
        .with_expires_at(now + hour))
}

/// Stands for a real signature: all it shows is where the secret comes from.
fn sign(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let snapshot = request.extensions().get::<Snapshot>().cloned();
    let credential = snapshot.as_ref().map(Snapshot::credential);
    let field = |name| credential.and_then(|credential| credential.field(name));
    if let (Some(id), Some(secret)) = (field("access-key-id"), field("secret-access-key")) {
        let signature = request.uri().path().len() + secret.expose().len();
        let line = format!("{} {signature:08x}", id.expose());
        if let Ok(mut value) = HeaderValue::from_str(&line) {
            value.set_sensitive(true);
            request.headers_mut().insert("authorization", value);
        }
    }
    request
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let venue = Venue::builder()
        .answer(|request| {
            let seen = |name| request.header(name).unwrap_or("-").to_owned();
            println!(
                "the server sees {} and {}",
                seen("authorization"),
                seen("x-amz-security-token"),
            );
            tower_outcome_testkit::Answer::status(204)
        })
        .start()?;
    let fetched = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&fetched);
    let source = move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        async move { metadata(number, SystemClock::new().now()) }
    };
    let credentials = Credentials::builder("role/desk", source)
        .origin(venue.url("").trim_end_matches('/'))
        // The session token is a header; key and secret are for the signer.
        .attach(Headers::new().token(HeaderName::from_static("x-amz-security-token")))
        .build()?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let service = ServiceBuilder::new()
        .layer(
            AuthRefreshLayer::builder(credentials.clone())
                .hands_down(true)
                .build(),
        )
        .map_request(sign)
        .service(client);

    for _ in 0..3 {
        let request = Request::get(venue.url("/bucket/key")).body(Full::default())?;
        service.clone().oneshot(request).await?;
    }
    if let Some(snapshot) = credentials.current() {
        // The server has said that they are not good any more; the next request has others.
        credentials.reject(&snapshot);
    }
    let request = Request::get(venue.url("/bucket/key")).body(Full::default())?;
    service.oneshot(request).await?;
    println!(
        "fetched {} times for 4 requests",
        fetched.load(Ordering::Relaxed)
    );
    Ok(())
}
