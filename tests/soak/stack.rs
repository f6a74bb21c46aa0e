//! The stack under test, once for each protocol: everything that is configured, and nothing else.

use std::{sync::Arc, time::Duration};

use http::{Request, Response, StatusCode, uri::Authority};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tonic::{Status, transport::Endpoint};
use tower::{Layer, ServiceBuilder, util::BoxCloneSyncService};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{
    Answer, Backoff, ConnectTimeoutLayer, ConnectionLimitLayer, DeadlineLayer, GrpcClassifier,
    GrpcStatusLayer, HttpClassifier, Judged, Reason, ReplayBody, ReplayLayer, RetryBudget,
    RetryLayer, TimeoutLayer, Timeouts, WitnessBody, WitnessConnector, WitnessLayer,
    replay::ReplayService,
    retry::Retry,
    timeout::{ConnectTimeout, ConnectionLimit, DeadlineService, SentBody, Timeout},
    witness::Witness,
};

use crate::{
    body::Body,
    call::{GET, PLACE, Protocol},
    observe::{Observe, ObserveLayer},
    tally::Tally,
};

/// How long one attempt may take. The venue answers within milliseconds where it answers at all.
const ATTEMPT: Duration = Duration::from_millis(150);

/// How long a request that was taken may go unanswered, and one that is being sent may make no progress.
const PAUSE: Duration = Duration::from_millis(100);

/// How long connecting may take. Some addresses are black holes.
const CONNECT: Duration = Duration::from_millis(60);

/// How long a response body may pause. Some never go on.
const READ_IDLE: Duration = Duration::from_millis(200);

/// How long a call may wait for a slot, while others stall.
const ACQUIRE: Duration = Duration::from_millis(50);

/// Fewer requests in flight than there are calls under way, so that some have to wait.
const IN_FLIGHT: usize = 24;

/// How long a call may take that has no deadline of its own, response body included.
pub(crate) const CALL: Duration = Duration::from_secs(5);

type Transport = Client<
    WitnessConnector<ConnectTimeout<HttpConnector>>,
    WitnessBody<SentBody<ReplayBody<Body>>>,
>;
type OneAttempt = ConnectionLimit<Timeout<Witness<Transport>>, Option<Authority>>;

/// The stack around hyper-util's client.
pub(crate) type Http = ReplayService<DeadlineService<Retry<Observe<OneAttempt>>>>;

/// The stack around a channel of tonic's.
pub(crate) type Grpc =
    BoxCloneSyncService<Request<tonic::body::Body>, Response<tonic::body::Body>, Status>;

pub(crate) fn http(protocol: Protocol, tally: &Arc<Tally>) -> Http {
    let timeouts = timeouts(protocol);
    let transport = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_only(protocol == Protocol::Http2)
        .retry_canceled_requests(false)
        .build(WitnessConnector::new(connector(&timeouts)));
    ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(DeadlineLayer::new(&timeouts))
        .layer(retry(http_classifier()))
        .layer(ObserveLayer::new(protocol, tally))
        .layer(in_flight(&timeouts))
        .layer(TimeoutLayer::new(&timeouts))
        .layer(WitnessLayer::new())
        .service(transport)
}

pub(crate) fn grpc(base: &str, tally: &Arc<Tally>) -> Grpc {
    let timeouts = timeouts(Protocol::Grpc);
    let endpoint = Endpoint::from_shared(base.to_owned()).expect("a loopback address");
    let channel = endpoint.connect_with_connector_lazy(connector(&timeouts));
    let classifier = grpc_classifier();
    let stack = ServiceBuilder::new()
        .layer(GrpcStatusLayer::new().classifier(classifier.clone()))
        .layer(ReplayLayer::new())
        .layer(DeadlineLayer::new(&timeouts))
        .layer(retry(classifier))
        .layer(ObserveLayer::new(Protocol::Grpc, tally))
        .layer(in_flight(&timeouts))
        .layer(TimeoutLayer::new(&timeouts))
        .layer(WitnessLayer::new())
        .layer(MapRequestBodyLayer::new(tonic::body::Body::new))
        .service(channel);
    let boxed = ServiceBuilder::new()
        .map_response(|response: Response<_>| response.map(tonic::body::Body::new))
        .service(stack);
    BoxCloneSyncService::new(boxed)
}

fn timeouts(protocol: Protocol) -> Timeouts {
    Timeouts::builder()
        .call(CALL)
        .attempt(ATTEMPT)
        .connect(CONNECT)
        .head(PAUSE)
        .write_idle(PAUSE)
        .read_idle(READ_IDLE)
        .acquire(ACQUIRE)
        .grpc_timeout(protocol == Protocol::Grpc)
        .build()
        .expect("bounds that fit each other")
}

fn connector(timeouts: &Timeouts) -> ConnectTimeout<HttpConnector> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    ConnectTimeoutLayer::new(timeouts).layer(connector)
}

fn in_flight(timeouts: &Timeouts) -> ConnectionLimitLayer<Option<Authority>> {
    ConnectionLimitLayer::builder(IN_FLIGHT)
        .timeouts(timeouts)
        .build()
        .expect("a limit that is not zero")
}

fn retry<C>(classifier: C) -> RetryLayer<C> {
    RetryLayer::builder()
        .classifier(classifier)
        .backoff(
            Backoff::new()
                .base(Duration::from_millis(1))
                .throttled_base(Duration::from_millis(1))
                .cap(Duration::from_millis(5)),
        )
        // The point is to send as much as is allowed, not to spare the venue.
        .budget(RetryBudget::unlimited())
        .build()
        .expect("a valid configuration")
}

/// The venue says "busy" inside a 200, and may have acted.
fn http_classifier() -> HttpClassifier {
    HttpClassifier::builder()
        .body_rule(|seen: Judged<'_>| {
            (seen.head.status == StatusCode::OK && seen.body.starts_with(br#"{"error""#)).then_some(
                Answer::Unclear {
                    reason: Reason::ServerError,
                    after: None,
                    transient: true,
                },
            )
        })
        .build()
        .expect("a valid configuration")
}

fn grpc_classifier() -> GrpcClassifier {
    GrpcClassifier::builder()
        .repeatable([GET])
        .unary([PLACE])
        .build()
        .expect("two paths")
}
