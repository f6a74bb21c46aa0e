//! Answers whose body fails: the status is known, the rest of the answer is lost.

use bytes::Bytes;
use http::{Method, Response};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt};
use tower_outcome::{BoxError, Delivery, Failure, Outcome, Reason, RetryLayer};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Client, Protocol, empty, full, request, within},
    peer::Peer,
    verdict::chain,
};

/// Reads a body that fails, and returns the error.
async fn broken<B>(response: Response<B>) -> BoxError
where
    B: HttpBody<Data = Bytes, Error = BoxError>,
{
    assert!(response.status().is_success());
    match within(response.into_body().collect()).await {
        Ok(body) => panic!("complete: {:?}", body.to_bytes()),
        Err(error) => error,
    }
}

/// Checks what a caller learns from a body that fails after a successful head. Nothing is sent again
/// by itself, for the call was answered.
async fn check(peer: Peer, protocol: Protocol) {
    let reason = Reason::ResponseBody;
    for client in Client::both(protocol) {
        let stack = RetryLayer::new().layer(client.service.map_request(
            |request: http::Request<http_body_util::Full<Bytes>>| {
                request.map(|body| body.map_err(|never| match never {}).boxed())
            },
        ));
        for (method, expected) in [
            (Method::POST, Outcome::Unknown { reason }),
            (
                Method::GET,
                Outcome::Retryable {
                    reason,
                    after: None,
                },
            ),
        ] {
            let request = request(method, &peer, empty()).map(|_| "an order".into());
            let response = within(stack.clone().oneshot(request)).await.unwrap();
            let error = broken(response).await;
            let failure = Failure::of(&*error).unwrap_or_else(|| panic!("{}", chain(&*error)));
            assert_eq!(failure.delivery(), Delivery::Answered);
            assert_eq!(failure.outcome(), expected);
        }
    }
    assert_eq!(peer.ended(4).await, 4);
}

#[tokio::test]
async fn a_body_that_is_cut_off_leaves_an_order_unknown() {
    let answers: [&[u8]; 2] = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ];
    for answer in answers {
        let peer = Peer::start(move |mut conn| async move {
            conn.request().await?;
            conn.write_all(answer).await?;
            conn.close().await
        });
        check(peer, Protocol::Http1).await;
    }
}

#[tokio::test]
async fn a_body_that_is_reset_leaves_an_order_unknown() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
            .await?;
        conn.told().await;
        conn.reset()
    });
    for client in Client::both(Protocol::Http1) {
        let response = client
            .send(request(Method::POST, &peer, full("an order")))
            .await;
        // The head is here; a reset before that would have taken it along.
        peer.tell();
        let response = response.unwrap().map(|body| body.map_err(BoxError::from));
        let error = broken(response).await;
        assert!(error.is::<hyper::Error>(), "{}", chain(&*error));
    }
    assert_eq!(peer.ended(2).await, 2);
}

#[tokio::test]
async fn a_stream_that_breaks_off_leaves_an_order_unknown() {
    let reset = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        loop {
            let stream = conn.stream().await?;
            let mut answer = frame::headers_ok(stream, false);
            answer.extend(frame::data(stream, b"abc", false));
            // Even with this code: what was answered was acted on.
            answer.extend(frame::rst_stream(stream, frame::REFUSED_STREAM));
            conn.write_all(&answer).await?;
        }
    });
    for client in Client::both(Protocol::Http2) {
        for method in [Method::POST, Method::GET] {
            let response = client.send(request(method, &reset, full("an order"))).await;
            let response = response.unwrap().map(|body| body.map_err(BoxError::from));
            broken(response).await;
        }
    }
    assert_eq!(reset.whole().len(), 4);
    let ended = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = conn.stream().await?;
        let mut answer = frame::headers_ok(stream, false);
        answer.extend(frame::data(stream, b"abc", false));
        conn.write_all(&answer).await?;
        conn.close().await
    });
    check(ended, Protocol::Http2).await;
}

/// Without a length the end of the connection is the end of the body: nobody can tell.
#[tokio::test]
async fn a_body_without_a_length_that_is_cut_off_looks_complete() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.write_all(b"HTTP/1.1 200 OK\r\n\r\nabc").await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http1) {
        let response = client
            .succeed(request(Method::POST, &peer, full("an order")))
            .await;
        assert_eq!(response.into_body(), "abc");
    }
    assert_eq!(peer.ended(2).await, 2);
}
