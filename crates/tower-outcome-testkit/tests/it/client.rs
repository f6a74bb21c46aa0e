//! A client that resends nothing behind anybody's back.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tower_outcome_testkit::{Entry, Fault, Protocol, Venue};

pub(crate) type Hyper = Client<HttpConnector, Full<Bytes>>;

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// What a caller gets to see of one attempt.
#[derive(Debug)]
pub(crate) enum Seen {
    /// An answer, and its body if that came whole.
    Answer {
        status: StatusCode,
        headers: HeaderMap,
        body: Result<Bytes, hyper::Error>,
        trailers: Option<HeaderMap>,
    },
    Failure(hyper_util::client::legacy::Error),
}

pub(crate) fn client(protocol: Protocol) -> Hyper {
    Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .http2_only(protocol == Protocol::Http2)
        .build_http()
}

pub(crate) fn order(venue: &Venue, operation: &str) -> http::request::Builder {
    Request::post(venue.url("/orders")).header("x-operation-id", operation)
}

pub(crate) fn with(request: http::request::Builder, fault: &Fault) -> Request<Full<Bytes>> {
    request
        .header(Fault::HEADER, fault.header_value())
        .body(Full::from("buy 1"))
        .unwrap()
}

pub(crate) async fn send(client: &Hyper, request: Request<Full<Bytes>>) -> Seen {
    match client.request(request).await {
        Ok(response) => read(response).await,
        Err(error) => Seen::Failure(error),
    }
}

async fn read(response: Response<Incoming>) -> Seen {
    let (head, body) = response.into_parts();
    let body = body.collect().await;
    let trailers = body.as_ref().ok().and_then(|body| body.trailers().cloned());
    Seen::Answer {
        status: head.status,
        headers: head.headers,
        body: body.map(http_body_util::Collected::to_bytes),
        trailers,
    }
}

/// Sends one order with a fault to a fresh venue; returns what the client saw and the entry.
pub(crate) async fn once(protocol: Protocol, fault: &Fault) -> (Seen, Entry) {
    let venue = Venue::start().unwrap();
    let seen = send(&client(protocol), with(order(&venue, "op"), fault)).await;
    let entries = venue.ledger().entries();
    assert_eq!(entries.len(), 1, "{fault}: {entries:?}");
    assert_eq!(entries[0].fault.as_ref(), Some(fault));
    assert_eq!(entries[0].protocol, protocol);
    (seen, entries[0].clone())
}

/// Waits for something that another thread does, without a clock.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

impl Seen {
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(status.as_u16()),
            Self::Failure(_) => None,
        }
    }

    /// The status of an answer whose body came whole.
    pub(crate) fn whole(&self) -> Option<u16> {
        match self {
            Self::Answer { body: Ok(_), .. } => self.status(),
            _ => None,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        match self {
            Self::Answer { headers, .. } => headers.get(name)?.to_str().ok(),
            Self::Failure(_) => None,
        }
    }

    /// The error of the attempt or of the body, as its source chain reads.
    pub(crate) fn chain(&self) -> String {
        let mut error: Option<&(dyn std::error::Error + 'static)> = match self {
            Self::Failure(error) => Some(error),
            Self::Answer {
                body: Err(error), ..
            } => Some(error),
            Self::Answer { .. } => None,
        };
        let mut chain = String::new();
        while let Some(link) = error {
            chain.push_str(&format!("{link:?} / "));
            error = link.source();
        }
        chain
    }
}
