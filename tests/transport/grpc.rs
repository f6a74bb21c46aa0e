//! tonic's channel, bare and with the witness around it.

use std::future::Future;

use bytes::Bytes;
use http::{
    Request, Response,
    header::{CONTENT_TYPE, TE},
    uri::PathAndQuery,
};
use http_body_util::Full;
use tonic::{
    Status,
    body::Body,
    client::{Grpc, GrpcService},
    transport::{Channel, Endpoint},
};
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{BoxError, WitnessLayer};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Evidence, within},
    peer::Peer,
};
use crate::codec::Plain;

pub(crate) type Stack = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// The method that these tests call.
pub(crate) const PLACE: &str = "/venue.Orders/Place";

/// A message of two bytes, as it is on the wire.
pub(crate) const MESSAGE: &[u8] = &[0, 0, 0, 0, 2, b'h', b'i'];

pub(crate) fn endpoint(peer: &Peer) -> Endpoint {
    Endpoint::from_shared(peer.origin()).unwrap()
}

/// A channel that connects when it is used.
pub(crate) fn lazy(evidence: Evidence, endpoint: &Endpoint) -> Stack {
    stack(evidence, endpoint.connect_lazy())
}

pub(crate) fn stack(evidence: Evidence, channel: Channel) -> Stack {
    match evidence {
        Evidence::Error => BoxCloneSyncService::new(channel.map_err(BoxError::from)),
        Evidence::Witnesses => BoxCloneSyncService::new(
            ServiceBuilder::new()
                .layer(WitnessLayer::new())
                .layer(MapRequestBodyLayer::new(Body::new))
                .service(channel),
        ),
    }
}

/// A call as generated code makes it, but for the body.
pub(crate) fn call(body: Body) -> Request<Body> {
    Request::post(PLACE)
        .header(TE, "trailers")
        .header(CONTENT_TYPE, "application/grpc")
        .body(body)
        .unwrap()
}

pub(crate) fn message() -> Body {
    Body::new(Full::from(MESSAGE))
}

pub(crate) async fn send(
    stack: &Stack,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    within(stack.clone().oneshot(request)).await
}

/// Makes a unary call as generated code does.
pub(crate) async fn unary<S>(stack: S, method: &'static str) -> Result<Bytes, Status>
where
    S: GrpcService<Body>,
    S::ResponseBody: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let mut client = Grpc::new(stack);
    let unary = async {
        if let Err(error) = client.ready().await {
            return Err(Status::from_error(error.into()));
        }
        let request = tonic::Request::new(Bytes::from_static(b"hi"));
        let path = PathAndQuery::from_static(method);
        client.unary(request, path, Plain).await
    };
    within(unary).await.map(tonic::Response::into_inner)
}

/// Fails both ways: by the channel's own error, and by the status that generated code makes of it.
pub(crate) async fn both_errors<F, Fut>(evidence: Evidence, stack: F) -> [BoxError; 2]
where
    F: Fn(Evidence) -> Fut,
    Fut: Future<Output = Stack>,
{
    let error = match send(&stack(evidence).await, call(message())).await {
        Ok(response) => panic!("answered with {}", response.status()),
        Err(error) => error,
    };
    let status = unary(stack(evidence).await, PLACE).await.unwrap_err();
    [error, status.into()]
}

/// A complete answer to a unary call.
pub(crate) fn answer(stream: u32) -> Vec<u8> {
    let mut answer = frame::headers(
        stream,
        &[(":status", "200"), ("content-type", "application/grpc")],
        false,
    );
    answer.extend(frame::data(stream, MESSAGE, false));
    answer.extend(frame::trailers(stream, &[("grpc-status", "0")]));
    answer
}
