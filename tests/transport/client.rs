//! The clients: hyper-util's legacy client, bare and with the witnesses around it.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{
        self, Builder,
        connect::{Connect, HttpConnector},
    },
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_outcome::{
    Backoff, BoxError, BrokenBody, Delivery, HttpClassifier, ReplayBody, ReplayLayer, RetryLayer,
    WitnessConnector, WitnessLayer, peek::PeekBody, retry::RetryLayerBuilder,
};

use super::{peer::Peer, verdict::chain};

pub(crate) type Body = BoxBody<Bytes, BoxError>;

/// What the verdict on a failure rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The client's error alone.
    Error,
    /// The error, how much of the body was taken, and when the connection last accepted a byte.
    Witnesses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// A client that sends each request at most once, unless it was built otherwise.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) evidence: Evidence,
    pub(crate) service: BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>,
}

// === impl Evidence ===

impl Evidence {
    pub(crate) const ALL: [Self; 2] = [Self::Error, Self::Witnesses];

    /// Returns what only the witnesses can prove.
    pub(crate) fn proves(self, delivery: Delivery) -> Delivery {
        match self {
            Self::Error => Delivery::MaybeSent,
            Self::Witnesses => delivery,
        }
    }
}

// === impl Protocol ===

impl Protocol {
    pub(crate) const ALL: [Self; 2] = [Self::Http1, Self::Http2];
}

// === impl Client ===

impl Client {
    /// One of each kind.
    pub(crate) fn both(protocol: Protocol) -> [Self; 2] {
        Evidence::ALL.map(|evidence| Self::new(evidence, protocol))
    }

    pub(crate) fn new(evidence: Evidence, protocol: Protocol) -> Self {
        Self::over(evidence, protocol, nodelay())
    }

    pub(crate) fn over<C>(evidence: Evidence, protocol: Protocol, connector: C) -> Self
    where
        C: Connect + Clone + Send + Sync + 'static,
        WitnessConnector<C>: Connect,
    {
        Self::built(evidence, &builder(protocol), connector)
    }

    pub(crate) fn built<C>(evidence: Evidence, builder: &Builder, connector: C) -> Self
    where
        C: Connect + Clone + Send + Sync + 'static,
        WitnessConnector<C>: Connect,
    {
        let service = match evidence {
            Evidence::Error => {
                let client = builder.build::<_, Body>(connector);
                BoxCloneSyncService::new(client.map_err(BoxError::from))
            }
            Evidence::Witnesses => {
                let client = builder.build(WitnessConnector::new(connector));
                let boxed = |request: Request<tower_outcome::WitnessBody<Body>>| -> Request<Body> {
                    request.map(BodyExt::boxed)
                };
                let stack = ServiceBuilder::new()
                    .layer(WitnessLayer::new())
                    .map_request(boxed)
                    .service(client);
                BoxCloneSyncService::new(stack)
            }
        };
        Self { evidence, service }
    }

    pub(crate) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, BoxError> {
        within(self.service.clone().oneshot(request)).await
    }

    /// Sends a request that the server answers, and reads the answer to its end.
    pub(crate) async fn succeed(&self, request: Request<Body>) -> Response<Bytes> {
        let (head, body) = match self.send(request).await {
            Ok(response) => response.into_parts(),
            Err(error) => panic!("{}", chain(&*error)),
        };
        let body = within(body.collect()).await.unwrap().to_bytes();
        Response::from_parts(head, body)
    }

    /// Sends a request that fails before any response head.
    pub(crate) async fn fail(&self, request: Request<Body>) -> BoxError {
        match self.send(request).await {
            Ok(response) => panic!("answered with {}", response.status()),
            Err(error) => error,
        }
    }
}

/// hyper-util's settings for these tests.
pub(crate) fn builder(protocol: Protocol) -> Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .retry_canceled_requests(false)
        .http2_only(protocol == Protocol::Http2);
    builder
}

pub(crate) fn nodelay() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector
}

/// Retry, without waiting between attempts.
pub(crate) fn retry() -> RetryLayerBuilder<HttpClassifier> {
    let now = Backoff::new()
        .base(Duration::ZERO)
        .throttled_base(Duration::ZERO);
    RetryLayer::builder().backoff(now)
}

pub(crate) type Resent = Result<Response<PeekBody<Incoming, BrokenBody>>, BoxError>;

/// Sends a request through Retry, which clones its body.
pub(crate) async fn resend<B>(client: &Client, request: Request<B>) -> Resent
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Clone + Send + Sync + 'static,
{
    let stack = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .map_request(|request: Request<B>| request.map(|body| body.map_err(Into::into).boxed()))
        .service(client.service.clone());
    within(stack.oneshot(request)).await
}

/// Sends a request through Replay, for bodies that cannot be cloned, and Retry.
pub(crate) async fn resend_stream<B>(client: &Client, request: Request<B>) -> Resent
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let stack = ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(retry().build().unwrap())
        .map_request(|request: Request<ReplayBody<B>>| request.map(BodyExt::boxed))
        .service(client.service.clone());
    within(stack.oneshot(request)).await
}

/// Ends the test if something hangs; nothing here is meant to take this long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(60), future)
        .await
        .expect("must not hang")
}

/// Lets the other tasks of a runtime with one thread come to rest.
pub(crate) async fn settle() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn post(peer: &Peer, body: Body) -> Request<Body> {
    request(Method::POST, peer, body)
}

pub(crate) fn request(method: Method, peer: &Peer, body: Body) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(peer.url())
        .body(body)
        .unwrap()
}

pub(crate) fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into())
        .map_err(|never| match never {})
        .boxed()
}

pub(crate) fn empty() -> Body {
    full(Bytes::new())
}

/// A body of frames whose length nobody knows beforehand.
pub(crate) fn frames<S>(frames: S) -> Body
where
    S: Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + Sync + 'static,
{
    BodyExt::boxed(StreamBody::new(frames))
}

/// A body that begins and never comes to its end.
pub(crate) fn endless() -> Body {
    let begin = futures_util::stream::once(async { Ok(Frame::data(Bytes::from_static(b"abc"))) });
    frames(begin.chain(futures_util::stream::pending()))
}
