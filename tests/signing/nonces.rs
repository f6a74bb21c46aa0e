//! Nonces on one connection.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::Mutex, task::JoinSet};
use tower::{Layer, ServiceExt, service_fn};
use tower_outcome::{
    Clock, Draft, Fresh, Nonces, Sign, SignError, SignLayer, SystemClock,
    sign::{Needs, SignedBody, SigningTime, Strict, Unit, Validity},
};
use tower_outcome_testkit::{RisingNonce, Venue};

/// Writes down the nonce.
struct Numbered;

impl Sign for Numbered {
    fn needs(&self) -> Needs {
        Needs::BODY.and_nonce()
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        draft.set_header(
            HeaderName::from_static("x-nonce"),
            fresh.nonce()?.get().into(),
        )?;
        Ok(Validity::UNLIMITED)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn until_written_keeps_the_order_on_one_http1_connection() {
    const CALLS: usize = 1_000;
    let venue = Venue::builder()
        .demand(RisingNonce::new("x-nonce"))
        .start()
        .unwrap();
    let io = TcpStream::connect(venue.addr()).await.unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(io)).await.unwrap();
    let connection = tokio::spawn(connection);
    let sender = Arc::new(Mutex::new(sender));
    let client = service_fn(move |request: Request<SignedBody<Full<Bytes>>>| {
        let sender = Arc::clone(&sender);
        async move {
            let answer = {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request)
            };
            let response: Response<Incoming> = answer.await?;
            Ok::<_, hyper::Error>(response)
        }
    });
    let now = SigningTime::new(SystemClock::new().now()).unwrap();
    let nonces = Nonces::builder(Unit::Millis).strict(Strict::UntilWritten);
    let service = SignLayer::builder(Numbered)
        .origin(venue.url(""))
        .nonces(nonces.build(now).unwrap())
        .build()
        .unwrap()
        .layer(client);
    let mut calls = JoinSet::new();
    for call in 0..CALLS {
        let service = service.clone();
        // Without a body, of one frame, and of more than a socket takes at once.
        let body = vec![b'x'; call % 3 * 20_000];
        let request = Request::post(venue.url("/orders"))
            .header("host", venue.addr().to_string())
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        calls.spawn(async move {
            let response = service.oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            response.into_body().collect().await.unwrap();
            status
        });
    }
    let statuses = calls.join_all().await;
    assert_eq!(statuses.len(), CALLS);
    assert!(statuses.iter().all(|status| *status == 200), "out of order");
    assert_eq!(venue.ledger().connections(), 1);
    connection.abort();
}
