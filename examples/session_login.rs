//! A broker whose sessions die without notice: log in once for everybody, send each order once more.
//!
//! The session travels as two headers, and a dead one is an error code in a body, as in the API of
//! StoneX and City Index: 4011 is a session that is not good, 4010 a log-in that is wrong.
//!
//! ```sh
//! cargo run --example session_login
//! ```

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderName, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::{
    Answer, AuthRefreshLayer, BoxError, Credential, Credentials, FetchError, HttpClassifier,
    Judged, Reason, RetryLayer,
    auth_refresh::{Headers, Observer, Refreshed, Replayed},
};
use tower_outcome_testkit::{self as testkit, Venue};

/// The sessions that the broker knows of.
#[derive(Clone, Default)]
struct Broker(Arc<Mutex<HashSet<String>>>);

/// Says what happens.
struct Log;

impl Observer for Log {
    fn refreshed(&self, event: &Refreshed<'_>) {
        println!("  session {} ({})", event.generation, event.cause.label());
    }

    fn replayed(&self, event: &Replayed<'_>) {
        println!("  one order goes again, with session {}", event.generation);
    }
}

impl Broker {
    fn check(&self, request: &testkit::Request) -> Result<(), testkit::Answer> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if request.path == "/session" {
            let session = format!("session-{}", request.at.as_nanos());
            let document = format!(r#"{{"Session":"{session}"}}"#);
            sessions.insert(session);
            return Err(testkit::Answer::json(200, document));
        }
        match request.header("session") {
            Some(session) if sessions.contains(session) => Ok(()),
            _ => Err(testkit::Answer::json(401, r#"{"ErrorCode":4011}"#)),
        }
    }

    fn forget_all(&self) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.clear();
    }
}

fn error_code(seen: Judged<'_>) -> Option<Answer> {
    let body: serde_json::Value = serde_json::from_slice(seen.body).ok()?;
    let reason = match body.get("ErrorCode")?.as_u64()? {
        4011 => Reason::AuthRejected,
        // Checked before anything is done: no permission, a bad request, a wrong log-in.
        403 | 4000..=4004 | 4010 => Reason::Rejected,
        // Whatever else there may be is no proof that nothing was done.
        _ => return None,
    };
    Some(Answer::Rejected { reason })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let broker = Broker::default();
    let desk = broker.clone();
    let venue = Venue::builder()
        .demand(move |request: &testkit::Request| desk.check(request))
        .start()?;
    let client = Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .build_http::<Full<Bytes>>();

    // Logs in with a client of its own, without the layer that it serves.
    let (own, url) = (client.clone(), venue.url("/session"));
    let log_in = move |_: Option<Credential>| {
        let (client, url) = (own.clone(), url.clone());
        async move {
            let request = Request::post(url).body(Full::from(r#"{"UserName":"DM123"}"#));
            let request = request.map_err(FetchError::transient)?;
            let response = client
                .request(request)
                .await
                .map_err(FetchError::transient)?;
            let body = response.into_body().collect().await;
            let body = body.map_err(FetchError::transient)?.to_bytes();
            let body: serde_json::Value =
                serde_json::from_slice(&body).map_err(FetchError::transient)?;
            match (body["Session"].as_str(), body["ErrorCode"].as_u64()) {
                (Some(session), _) => Ok(Credential::new(session).with_field("user", "DM123")),
                // One more bad log-in may lock the account.
                (None, Some(4010)) => Err(FetchError::dead("the log-in is wrong")),
                _ => Err(FetchError::transient("no session in the answer")),
            }
        }
    };
    let headers = Headers::new()
        .field(HeaderName::from_static("username"), "user")
        .token(HeaderName::from_static("session"));
    let credentials = Credentials::builder("broker, DM123", log_in)
        .origin(venue.url("").trim_end_matches('/'))
        .attach(headers)
        .observer(Log)
        .build()?;

    // All layers share one classifier.
    let classifier = HttpClassifier::builder().body_rule(error_code).build()?;
    let service = ServiceBuilder::new()
        .layer(
            RetryLayer::builder()
                .classifier(classifier.clone())
                .build()?,
        )
        .layer(
            AuthRefreshLayer::builder(credentials)
                .classifier(classifier)
                .build(),
        )
        .service(client);

    for number in 1..=3 {
        println!("order {number}");
        let order = Request::post(venue.url("/orders"))
            .header("x-operation-id", format!("order-{number}"))
            .body(Full::from("buy 1"))?;
        let response = service.clone().oneshot(order).await?;
        let applied = venue.ledger().applied(&format!("order-{number}"));
        println!("  {}, placed {applied} times", response.status());
        if number == 2 {
            println!("(the broker forgets all sessions)");
            broker.forget_all();
        }
    }
    Ok(())
}
