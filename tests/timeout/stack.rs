//! The stack under test, and the ends its calls come to.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connect, HttpConnector},
    },
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;
use tower::{Layer, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_outcome::{
    Bound, BoxError, ConnectTimeoutLayer, ConnectionLimitLayer, DeadlineLayer, Delivery, Elapsed,
    Failure, Outcome, Phase, TimeoutLayer, Timeouts, WitnessBody, WitnessConnector, WitnessLayer,
    timeout::{ConnectTimeout, SentBody},
};

pub(crate) type Body = BoxBody<Bytes, BoxError>;
pub(crate) type Stack = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// How a call ended, body included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Struck {
    pub(crate) bound: Bound,
    pub(crate) phase: Phase,
    pub(crate) delivery: Delivery,
    pub(crate) outcome: Outcome,
}

// === impl Protocol ===

impl Protocol {
    pub(crate) const ALL: [Self; 2] = [Self::Http1, Self::Http2];
}

/// All bounds around hyper-util's client, and so many requests in flight.
pub(crate) fn stack<C>(timeouts: &Timeouts, protocol: Protocol, limit: usize, connector: C) -> Stack
where
    C: Clone + Send + Sync + 'static,
    WitnessConnector<ConnectTimeout<C>>: Connect + Clone + Send + Sync + 'static,
{
    let limit = ConnectionLimitLayer::builder(limit).timeouts(timeouts);
    let service = ServiceBuilder::new()
        .layer(DeadlineLayer::new(timeouts))
        .layer(limit.build().unwrap())
        .layer(TimeoutLayer::new(timeouts))
        .layer(WitnessLayer::new())
        .service(client(timeouts, protocol, connector));
    let boxed = service.map_response(|response: Response<_>| response.map(BodyExt::boxed));
    BoxCloneSyncService::new(boxed)
}

pub(crate) fn client<C, B>(
    timeouts: &Timeouts,
    protocol: Protocol,
    connector: C,
) -> Client<WitnessConnector<ConnectTimeout<C>>, WitnessBody<SentBody<B>>>
where
    C: Clone,
    WitnessConnector<ConnectTimeout<C>>: Connect + Clone,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send,
{
    let connector = ConnectTimeoutLayer::new(timeouts).layer(connector);
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_only(protocol == Protocol::Http2)
        .retry_canceled_requests(false)
        .build(WitnessConnector::new(connector))
}

pub(crate) fn nodelay() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector
}

pub(crate) fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into())
        .map_err(|never| match never {})
        .boxed()
}

pub(crate) fn post(url: &str, body: Body) -> Request<Body> {
    Request::post(url)
        .header("x-operation-id", "order-1")
        .body(body)
        .unwrap()
}

/// Makes a call and reads its body to the end.
pub(crate) async fn call(
    stack: &Stack,
    request: Request<Body>,
) -> Result<Response<Bytes>, BoxError> {
    let answered = async {
        let (head, body) = stack.clone().oneshot(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    };
    within(answered).await
}

/// Makes a call that some bound ends.
pub(crate) async fn struck(stack: &Stack, request: Request<Body>) -> Struck {
    match call(stack, request).await {
        Ok(response) => panic!("answered with {}", response.status()),
        Err(error) => read(&error),
    }
}

pub(crate) fn read(error: &BoxError) -> Struck {
    let failure = Failure::of(&**error).unwrap_or_else(|| panic!("no failure: {error:?}"));
    let elapsed = Elapsed::of(&**error).unwrap_or_else(|| panic!("no bound: {error:?}"));
    Struck {
        bound: elapsed.bound(),
        phase: elapsed.phase(),
        delivery: failure.delivery(),
        outcome: failure.outcome(),
    }
}

/// Ends the test if something hangs; nothing here is meant to take this long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(60), future)
        .await
        .expect("must not hang")
}
