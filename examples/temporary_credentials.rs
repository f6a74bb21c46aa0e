//! Temporary credentials that are no header: a key, a secret and a session token that end at a date,
//! handed down to what signs each attempt, with AWS Signature Version 4.
//!
//! When the server says that the token has expired, there is one refresh for everybody, and each request
//! is signed anew and sent once more.
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
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::{
    Answer, AuthRefreshLayer, BoxError, Clock, Credential, Credentials, FetchError, HttpClassifier,
    Judged, Reason, SystemClock,
    auth_refresh::{Snapshot, Unattachable},
    sign::{AwsCredentials, AwsSigner, SignError, SignLayer, SignedBody},
};
use tower_outcome_testkit::{self as testkit, Venue};

/// What a metadata service would answer.
fn metadata(number: u32, now: SystemTime) -> Result<Credential, FetchError> {
    let hour = Duration::from_secs(3600);
    Ok(Credential::new(format!("session-token-{number}"))
        .with_field("key-id", format!("ASIA{number}"))
        .with_field("secret", "wJalrXUtnFEMI/K7MDENG")
        // They name a date; it counts on both clocks.
        .with_expires_at(now + hour))
}

/// The keys for one attempt: those that are in the extensions of its request, and no others.
///
/// With their end the signer does not sign what has expired in a queue above it.
fn keys(snapshot: &Snapshot) -> Option<AwsCredentials> {
    let credential = snapshot.credential();
    let field = |name| Some(credential.field(name)?.expose());
    let keys = AwsCredentials::new(field("key-id")?, field("secret")?).ok()?;
    let keys = keys.with_session_token(credential.token().expose()).ok()?;
    Some(match snapshot.expires_at() {
        Some(end) => keys.expiring_at(end),
        None => keys,
    })
}

fn hand_over(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    if let Some(keys) = request.extensions().get().and_then(keys) {
        request.extensions_mut().insert(keys);
    }
    request
}

/// The error of an expired token has status 403, and its code in a document.
fn expired_token(seen: Judged<'_>) -> Option<Answer> {
    let body = std::str::from_utf8(seen.body).ok()?;
    body.contains("<Code>ExpiredToken</Code>")
        .then_some(Answer::Rejected {
            reason: Reason::AuthRejected,
        })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // The server takes keys from this number on.
    let good_from = Arc::new(AtomicU32::new(1));
    let valid = Arc::clone(&good_from);
    let venue = Venue::builder()
        .demand(move |request: &testkit::Request| {
            let header = |name| request.header(name).unwrap_or("-");
            let signature = header("authorization");
            let token = header("x-amz-security-token");
            let shown = signature.split('/').next().unwrap_or_default();
            let number = token.rsplit('-').next().and_then(|end| end.parse().ok());
            let is_signed = signature.contains(&format!("Credential=ASIA{}/", number.unwrap_or(0)));
            if is_signed && number >= Some(valid.load(Ordering::Relaxed)) {
                println!("the server takes   {shown} with {token}");
                return Ok(());
            }
            println!("the server rejects {shown} with {token}");
            let document = "<Error><Code>ExpiredToken</Code></Error>";
            Err(testkit::Answer::status(403).body(document))
        })
        .start()?;
    let fetched = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&fetched);
    let source = move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        async move { metadata(number, SystemClock::new().now()) }
    };
    let origin = venue.url("").trim_end_matches('/').to_owned();
    let credentials = Credentials::builder("role/desk", source)
        .origin(&*origin)
        // The signer attaches everything, the session token included.
        .attach(|_: &Credential| Ok::<_, Unattachable>(Vec::new()))
        .build()?;
    // A request that was handed no keys is not signed, and so not sent.
    let nobody = || Err(SignError::unavailable("no keys were handed down"));
    let signer = AwsSigner::new(nobody, "us-east-1", "dynamodb")?;
    let classifier = HttpClassifier::builder().body_rule(expired_token).build()?;
    let client = Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .build_http::<SignedBody<Full<Bytes>>>();
    let service = ServiceBuilder::new()
        .layer(
            AuthRefreshLayer::builder(credentials)
                .classifier(classifier)
                .hands_down(true)
                .build(),
        )
        .map_request(hand_over)
        .layer(SignLayer::builder(signer).origin(&*origin).build()?)
        .service(client);

    for number in 1..=4 {
        if number == 3 {
            good_from.store(2, Ordering::Relaxed);
        }
        let request = Request::put(venue.url("/item")).body(Full::from("1"))?;
        let response = service.clone().oneshot(request).await?;
        println!("{number}: {}", response.status());
    }
    println!(
        "fetched {} times for 4 requests",
        fetched.load(Ordering::Relaxed)
    );
    Ok(())
}
