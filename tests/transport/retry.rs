//! Retry over real clients: what is sent again, and what the server has of it.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{Empty, Full, StreamBody};
use hyper_util::client::legacy;
use tonic::{Code, body::Body as GrpcBody, transport::Channel};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{
    BoxError, BrokenBody, CallReport, Delivery, Failure, GrpcClassifier, NotRetried, Outcome,
    Reason, ReplayLayer, WitnessConnector, WitnessLayer, peek::PeekBody,
};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Client, Protocol, Resent, builder, nodelay, resend, resend_stream, retry, within},
    grpc::{PLACE, answer, endpoint, unary},
    peer::{OK, Peer},
};

/// Another method, which is repeatable.
const PRICE: &str = "/venue.Prices/Get";

#[track_caller]
fn attempts<B>(result: &Result<Response<B>, BoxError>) -> u32 {
    CallReport::in_result(result).map_or(1, CallReport::attempts)
}

/// Refuses the first stream of each connection and answers all others.
fn refuses_once() -> Peer {
    Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let refused = conn.stream_head().await?;
        conn.write_all(&frame::rst_stream(refused, frame::REFUSED_STREAM))
            .await?;
        loop {
            let stream = conn.stream().await?;
            conn.write_all(&frame::headers_ok(stream, true)).await?;
        }
    })
}

/// Closes the first connection once it has read the request, and answers on all others.
fn closes_once() -> Peer {
    Peer::script()
        .connection(|mut conn| async move {
            conn.request().await?;
            conn.close().await
        })
        .connection(|mut conn| async move {
            loop {
                conn.request().await?;
                conn.write_all(OK).await?;
            }
        })
        .start()
}

/// The stacks of the crate's documentation, with nothing in between.
#[tokio::test]
async fn an_order_that_was_refused_is_sent_again_and_applied_once() {
    let order = Bytes::from_static(b"an order");
    let connector = || WitnessConnector::new(nodelay());
    let layers = || {
        ServiceBuilder::new()
            .layer(retry().build().unwrap())
            .layer(WitnessLayer::new())
    };

    let peer = refuses_once();
    let client: legacy::Client<_, _> = builder(Protocol::Http2).build(connector());
    let stack = layers().service(client);
    let request = Request::post(peer.url())
        .body(Full::new(order.clone()))
        .unwrap();
    let result = within(stack.oneshot(request)).await;
    assert_eq!(attempts(&result), 2);
    assert_eq!(peer.whole()[0].body, order);
    assert_eq!(peer.whole().len(), 1);

    let peer = refuses_once();
    let client: legacy::Client<_, _> = builder(Protocol::Http2).build(connector());
    let stack = layers().service(client);
    let request = Request::post(peer.url())
        .body(Empty::<Bytes>::new())
        .unwrap();
    let result = within(stack.oneshot(request)).await;
    assert_eq!(attempts(&result), 2);
    assert_eq!(peer.whole().len(), 1);

    let peer = refuses_once();
    let client: legacy::Client<_, _> = builder(Protocol::Http2).build(connector());
    let stack = ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .service(layers().service(client));
    let frames = [&b"an "[..], b"order"]
        .map(|part| Ok::<_, BoxError>(Frame::data(Bytes::from_static(part))));
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let request = Request::post(peer.url()).body(body).unwrap();
    let result = within(stack.oneshot(request)).await;
    assert_eq!(attempts(&result), 2);
    assert_eq!(peer.whole()[0].body, order);
    assert_eq!(peer.whole().len(), 1);
}

fn check_unknown(result: &Resent) {
    let error = result.as_ref().unwrap_err();
    let failure = Failure::of(&**error).unwrap();
    let reason = Reason::Transport;
    assert_eq!(failure.outcome(), Outcome::Unknown { reason });
    assert_eq!(failure.delivery(), Delivery::MaybeSent);
    let report = failure.report().unwrap();
    assert_eq!(report.attempts(), 1);
    assert!(matches!(report.not_retried(), Some(NotRetried::Outcome)));
}

#[tokio::test]
async fn an_order_that_may_have_been_applied_is_not_sent_again() {
    for client in Client::both(Protocol::Http1) {
        let order = || Full::new(Bytes::from_static(b"an order"));
        let peer = closes_once();
        check_unknown(&resend(&client, Request::post(peer.url()).body(order()).unwrap()).await);
        assert_eq!(peer.whole().len(), 1);
        let peer = closes_once();
        check_unknown(
            &resend_stream(&client, Request::post(peer.url()).body(order()).unwrap()).await,
        );
        assert_eq!(peer.whole().len(), 1);
    }
}

#[tokio::test]
async fn a_request_that_may_be_repeated_is_sent_again_as_it_was() {
    for client in Client::both(Protocol::Http1) {
        let peer = closes_once();
        let change = |body| {
            Request::put(peer.url())
                .header("x-id", "7")
                .body(body)
                .unwrap()
        };
        let result = resend(&client, change(Full::new(Bytes::from_static(b"an order")))).await;
        assert_eq!(attempts(&result), 2);
        assert!(result.unwrap().status().is_success());
        let [first, second] = &peer.whole()[..] else {
            panic!("{:?}", peer.whole());
        };
        assert_eq!((&first.head, &first.body), (&second.head, &second.body));
        assert!(first.head.contains("\r\nx-id: 7\r\n"), "{}", first.head);
    }
}

/// A channel under Retry, as generated code takes it.
fn stack(
    channel: Channel,
) -> impl Service<
    Request<GrpcBody>,
    Response = Response<PeekBody<GrpcBody, BrokenBody>>,
    Error = BoxError,
    Future: Send,
> + Clone
+ Send {
    let classifier = GrpcClassifier::builder()
        .repeatable([PRICE])
        .unary([PLACE])
        .build()
        .unwrap();
    let retry = retry().classifier(classifier).build().unwrap();
    ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(retry)
        .layer(WitnessLayer::new())
        .layer(MapRequestBodyLayer::new(GrpcBody::new))
        .service(channel)
}

#[tokio::test]
async fn a_grpc_call_that_was_refused_is_sent_again() {
    for method in [PLACE, PRICE] {
        let peer = Peer::start(|mut conn| async move {
            conn.start_http2(&[]).await?;
            let refused = conn.stream_head().await?;
            conn.write_all(&frame::rst_stream(refused, frame::REFUSED_STREAM))
                .await?;
            let stream = conn.stream().await?;
            conn.write_all(&answer(stream)).await?;
            conn.drain().await;
            Ok(())
        });
        let stack = stack(endpoint(&peer).connect_lazy());
        assert_eq!(unary(stack, method).await.unwrap(), "hi");
        assert_eq!(peer.ended(1).await, 1);
    }
}

/// Answers the first call with `UNAVAILABLE` and all later ones with a message.
fn unavailable_once(in_trailers: bool) -> Peer {
    Peer::start(move |mut conn| async move {
        conn.start_http2(&[]).await?;
        let unlucky = conn.stream().await?;
        let status = ("grpc-status", "14");
        let head = [(":status", "200"), ("content-type", "application/grpc")];
        let answered = if in_trailers {
            let mut bytes = frame::headers(unlucky, &head, false);
            bytes.extend(frame::trailers(unlucky, &[status]));
            bytes
        } else {
            frame::headers(unlucky, &[head[0], head[1], status], true)
        };
        conn.write_all(&answered).await?;
        loop {
            let stream = conn.stream().await?;
            conn.write_all(&answer(stream)).await?;
        }
    })
}

#[tokio::test]
async fn an_unavailable_service_is_asked_again_only_where_that_is_harmless() {
    for in_trailers in [false, true] {
        let peer = unavailable_once(in_trailers);
        let repeatable = unary(stack(endpoint(&peer).connect_lazy()), PRICE).await;
        assert_eq!(repeatable.unwrap(), "hi");
        assert_eq!(peer.whole().len(), 2);

        let peer = unavailable_once(in_trailers);
        let order = unary(stack(endpoint(&peer).connect_lazy()), PLACE).await;
        assert_eq!(order.unwrap_err().code(), Code::Unavailable);
        assert_eq!(peer.whole().len(), 1);
    }
}

#[tokio::test]
async fn a_grpc_call_that_was_answered_in_part_is_not_sent_again() {
    for method in [PLACE, PRICE] {
        let peer = Peer::start(|mut conn| async move {
            conn.start_http2(&[]).await?;
            loop {
                let stream = conn.stream().await?;
                let mut answer = frame::headers_ok(stream, false);
                answer.extend(frame::data(stream, &[0, 0, 0, 0, 9, b'o'], false));
                // Whatever it says: what was answered was acted on.
                answer.extend(frame::rst_stream(stream, frame::REFUSED_STREAM));
                conn.write_all(&answer).await?;
            }
        });
        let status = unary(stack(endpoint(&peer).connect_lazy()), method).await;
        let error = BoxError::from(status.unwrap_err());
        assert_eq!(Delivery::of(&*error), Delivery::Answered);
        assert_eq!(peer.whole().len(), 1);
    }
}
