//! The generated client over the stack under test.

use std::{future::Future, time::Duration};

use http::{Request, Response};
use tokio::time::timeout;
use tonic::{Status, body::Body, metadata::MetadataValue, transport::Endpoint};
use tower::{ServiceBuilder, util::BoxCloneSyncService};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{
    Backoff, CallReport, DeadlineLayer, Failure, GrpcClassifier, GrpcStatusLayer, Limit,
    RateBudget, RateLimitLayer, ReplayLayer, RetryLayer, TimeoutLayer, Timeouts, WitnessLayer,
};
use tower_outcome_desk::{GetRequest, OrdersClient, PlaceRequest, path};
use tower_outcome_testkit::Fault;

pub(crate) type Stack = BoxCloneSyncService<Request<Body>, Response<Body>, Status>;
pub(crate) type Orders = OrdersClient<Stack>;

/// The one id that these tests place orders under, unless they say otherwise.
pub(crate) const ID: &str = "order-1";

pub(crate) fn timeouts() -> Timeouts {
    let timeouts = Timeouts::builder()
        .call(Duration::from_secs(40))
        .attempt(Duration::from_secs(20));
    timeouts.grpc_timeout(true).build().unwrap()
}

pub(crate) fn orders(url: String) -> Orders {
    orders_with(endpoint(url), &timeouts(), ReplayLayer::new())
}

pub(crate) fn orders_with(endpoint: Endpoint, timeouts: &Timeouts, replay: ReplayLayer) -> Orders {
    orders_by(endpoint, timeouts, replay, DeadlineLayer::new(timeouts))
}

pub(crate) fn orders_by(
    endpoint: Endpoint,
    timeouts: &Timeouts,
    replay: ReplayLayer,
    deadline: DeadlineLayer,
) -> Orders {
    let channel = endpoint.connect_lazy();
    let classifier = GrpcClassifier::builder()
        .repeatable([path::GET])
        .unary([path::PLACE])
        .build()
        .unwrap();
    let retry = RetryLayer::builder()
        .classifier(classifier.clone())
        .backoff(
            Backoff::new()
                .base(Duration::ZERO)
                .throttled_base(Duration::ZERO),
        );
    let limit = Limit::sliding("requests", 10_000, Duration::from_secs(1));
    let budget = RateBudget::builder("desk").limit(limit).build().unwrap();
    // Who is throttled here wants to be sent again at once.
    let limit = RateLimitLayer::builder(budget).closes_gate(false);
    let stack = ServiceBuilder::new()
        .layer(GrpcStatusLayer::new().classifier(classifier))
        .layer(replay)
        .layer(deadline)
        .layer(retry.build().unwrap())
        .layer(limit.build().unwrap())
        .layer(TimeoutLayer::new(timeouts))
        .layer(WitnessLayer::new())
        .layer(MapRequestBodyLayer::new(Body::new))
        .service(channel);
    let boxed = ServiceBuilder::new()
        .map_response(|response: Response<_>| response.map(Body::new))
        .service(stack);
    OrdersClient::new(BoxCloneSyncService::new(boxed))
}

pub(crate) fn endpoint(url: String) -> Endpoint {
    Endpoint::from_shared(url).unwrap()
}

pub(crate) fn place() -> tonic::Request<PlaceRequest> {
    known(order(ID))
}

pub(crate) fn get() -> tonic::Request<GetRequest> {
    known(GetRequest { id: ID.into() })
}

pub(crate) fn order(id: impl Into<String>) -> PlaceRequest {
    PlaceRequest {
        id: id.into(),
        symbol: "ACME".into(),
        quantity: 100,
    }
}

/// A call that the venue's ledger knows again.
pub(crate) fn known<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let id = MetadataValue::from_static(ID);
    request.metadata_mut().insert("x-operation-id", id);
    request
}

/// The same, and the venue fails each of its attempts.
pub(crate) fn failing<T>(mut request: tonic::Request<T>, fault: &Fault) -> tonic::Request<T> {
    let fault = fault.header_value().to_str().unwrap().parse().unwrap();
    request.metadata_mut().insert(Fault::HEADER, fault);
    request
}

#[track_caller]
pub(crate) fn failure(status: &Status) -> &Failure {
    Failure::of(status).unwrap_or_else(|| panic!("no failure in {status:?}"))
}

#[track_caller]
pub(crate) fn report(status: &Status) -> &CallReport {
    failure(status).report().expect("a report")
}

/// Ends the test if something hangs; nothing here is meant to take this long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(60), future)
        .await
        .expect("must not hang")
}
