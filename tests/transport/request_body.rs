//! Request bodies: what the layers leave of their framing on the wire, and bodies that fail.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request,
    header::{CONTENT_TYPE, TRAILER},
};
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, Empty, Full};
use tower_outcome::{
    BoxError, CallReport, Delivery, Failure, NotRetried, Outcome, Reason, RequestBodyError,
};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Body, Client, Evidence, Protocol, frames, full, request, resend, resend_stream},
    peer::{OK_AND_CLOSE, Peer, Whole},
    verdict::{cause, chain, repeatable, unrepeatable},
};

/// Answers every second connection, and closes the others once the request is read: each request
/// that may be repeated takes two attempts.
fn fails_once_per_request() -> Peer {
    Peer::start(|mut conn| async move {
        conn.request().await?;
        let is_second = conn.number() % 2 == 1;
        if is_second {
            conn.write_all(OK_AND_CLOSE).await?;
        }
        conn.close().await
    })
}

fn put<B>(peer: &Peer, body: B) -> Request<B> {
    Request::put(peer.url()).body(body).unwrap()
}

#[track_caller]
fn check_framing(heads: &[Whole], length: usize) {
    for Whole { head, body } in heads {
        assert!(!head.contains("transfer-encoding"), "{head}");
        let length_line = format!("\r\ncontent-length: {length}\r\n");
        // Without a body a length of nothing may be left out.
        assert!(
            head.contains(&length_line) || length == 0 && !head.contains("content-length"),
            "{head}"
        );
        assert_eq!(body.len(), length);
    }
}

#[tokio::test]
async fn a_body_of_known_length_keeps_its_content_length_through_all_layers() {
    let peer = fails_once_per_request();
    for client in Client::both(Protocol::Http1) {
        let order = || Full::new(Bytes::from_static(b"an order"));
        resend(&client, put(&peer, order())).await.unwrap();
        resend_stream(&client, put(&peer, order())).await.unwrap();
    }
    assert_eq!(peer.ended(8).await, 8);
    check_framing(&peer.whole(), 8);
}

#[tokio::test]
async fn an_empty_body_is_not_sent_in_chunks_by_any_layer() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.write_all(OK_AND_CLOSE).await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http1) {
        for method in [Method::POST, Method::PUT, Method::GET] {
            let empty = || request(method.clone(), &peer, full("")).map(|_| Empty::new());
            resend(&client, empty()).await.unwrap();
            resend_stream(&client, empty()).await.unwrap();
        }
    }
    assert_eq!(peer.ended(12).await, 12);
    check_framing(&peer.whole(), 0);
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([(
        "x-checksum".parse().unwrap(),
        HeaderValue::from_static("6ad1"),
    )])
}

fn stream() -> Body {
    let steps = [
        Frame::data(Bytes::from_static(b"an ")),
        Frame::data(Bytes::from_static(b"order")),
        Frame::trailers(trailers()),
    ];
    frames(futures_util::stream::iter(steps.map(Ok)))
}

#[tokio::test]
async fn trailers_of_a_stream_arrive_over_http1_on_every_attempt() {
    let peer = Peer::start(|mut conn| async move {
        conn.chunked_request().await?;
        if conn.number() % 2 == 1 {
            conn.write_all(OK_AND_CLOSE).await?;
        }
        conn.close().await
    });
    for client in Client::both(Protocol::Http1) {
        let mut request = put(&peer, stream());
        let announced = HeaderValue::from_static("x-checksum");
        request.headers_mut().insert(TRAILER, announced);
        resend_stream(&client, request).await.unwrap();
    }
    assert_eq!(peer.ended(4).await, 4);
    for Whole { head, body } in peer.whole() {
        assert!(
            head.contains("\r\ntransfer-encoding: chunked\r\n"),
            "{head}"
        );
        let body = String::from_utf8(body).unwrap();
        assert_eq!(
            body,
            "3\r\nan \r\n5\r\norder\r\n0\r\nx-checksum: 6ad1\r\n\r\n"
        );
    }
}

#[tokio::test]
async fn trailers_of_a_stream_arrive_over_http2_on_every_attempt() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let unlucky = conn.stream_with_trailers().await?;
        conn.write_all(&frame::rst_stream(unlucky, frame::INTERNAL_ERROR))
            .await?;
        let lucky = conn.stream_with_trailers().await?;
        conn.write_all(&frame::headers_ok(lucky, true)).await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http2) {
        resend_stream(&client, put(&peer, stream())).await.unwrap();
    }
    assert_eq!(peer.ended(2).await, 4);
    for Whole { body, .. } in peer.whole() {
        assert_eq!(String::from_utf8(body).unwrap(), "x-checksum: 6ad1\r\n");
    }
}

/// The caller's own error.
#[derive(Debug)]
struct DiskGone;

/// Yields so many frames and then fails, and so do its clones.
#[derive(Clone)]
struct Failing {
    frames: usize,
}

// === impl DiskGone ===

impl fmt::Display for DiskGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("disk is gone")
    }
}

impl Error for DiskGone {}

// === impl Failing ===

impl HttpBody for Failing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(match self.frames.checked_sub(1) {
            Some(left) => {
                self.frames = left;
                Ok(Frame::data(Bytes::from_static(b"abc")))
            }
            None => Err(DiskGone.into()),
        }))
    }
}

/// A server that reads as much as there is and never answers.
fn listener(protocol: Protocol) -> Peer {
    Peer::start(move |mut conn| async move {
        match protocol {
            Protocol::Http1 => conn.chunked_request().await,
            Protocol::Http2 => {
                conn.start_http2(&[]).await?;
                loop {
                    conn.stream().await?;
                }
            }
        }
    })
}

#[tokio::test]
async fn a_body_that_fails_is_the_callers_error_and_permanent() {
    let reason = Reason::RequestBody;
    for protocol in Protocol::ALL {
        for frames in [0, 1] {
            let peer = listener(protocol);
            for method in [Method::POST, Method::PUT] {
                let client = Client::new(Evidence::Witnesses, protocol);
                let error = client
                    .fail(request(method, &peer, Failing { frames }.boxed()))
                    .await;
                let failure = Failure::of(&*error).unwrap();
                assert_eq!(failure.delivery(), Delivery::NotSent);
                for outcome in [
                    failure.outcome(),
                    unrepeatable(&*error).outcome,
                    repeatable(&*error).outcome,
                ] {
                    assert_eq!(outcome, Outcome::Permanent { reason }, "{}", chain(&*error));
                }
                let body = RequestBodyError::of(&*error).unwrap();
                assert!(body.source().unwrap().is::<DiskGone>());
                assert!(body.transport().is_some());
            }
            assert_eq!(peer.ended(2).await, 0);
        }
    }
}

/// A server acts on the messages of a stream one by one, so that those before the failure count.
#[tokio::test]
async fn a_stream_of_messages_that_fails_leaves_its_beginning_unknown() {
    let peer = listener(Protocol::Http2);
    let client = Client::new(Evidence::Witnesses, Protocol::Http2);
    for frames in [0, 1] {
        let mut request = request(Method::POST, &peer, Failing { frames }.boxed());
        let grpc = HeaderValue::from_static("application/grpc+proto");
        request.headers_mut().insert(CONTENT_TYPE, grpc);
        let error = client.fail(request).await;
        assert_eq!(Delivery::of(&*error), Delivery::MaybeSent);
        let reason = Reason::RequestBody;
        let once = unrepeatable(&*error).outcome;
        assert_eq!(once, Outcome::Unknown { reason });
        // Where repeating is harmless it is still of no use.
        let often = repeatable(&*error).outcome;
        assert_eq!(often, Outcome::Permanent { reason });
        assert!(cause::<DiskGone>(&*error).is_some(), "{}", chain(&*error));
    }
}

/// Why the witness keeps the error instead of leaving it to the transport.
#[tokio::test]
async fn a_body_that_fails_proves_nothing_without_a_witness_and_is_lost_on_http2() {
    for protocol in Protocol::ALL {
        let peer = listener(protocol);
        let [client, _] = Client::both(protocol);
        for frames in [0, 1] {
            let error = client
                .fail(request(Method::POST, &peer, Failing { frames }.boxed()))
                .await;
            assert_eq!(Delivery::of(&*error), Delivery::MaybeSent);
            let kept = cause::<DiskGone>(&*error).is_some();
            assert_eq!(kept, protocol == Protocol::Http1, "{}", chain(&*error));
        }
        assert!(peer.whole().is_empty());
    }
}

#[tokio::test]
async fn a_body_that_fails_is_never_sent_again() {
    for protocol in Protocol::ALL {
        for frames in [0, 1] {
            let peer = listener(protocol);
            let [bare, witnessed] = Client::both(protocol);
            let failing = || put(&peer, Failing { frames });
            for result in [
                resend(&witnessed, failing()).await,
                resend_stream(&witnessed, failing()).await,
                // Here it is the replayable body that knows.
                resend_stream(&bare, failing()).await,
            ] {
                let report = CallReport::in_result(&result).unwrap();
                assert_eq!(report.attempts(), 1);
                let reason = Reason::RequestBody;
                assert_eq!(report.outcome(), Outcome::Permanent { reason });
                let why = report.not_retried().unwrap();
                assert!(matches!(why, NotRetried::Outcome), "{why}");
            }
            assert!(peer.whole().is_empty());
        }
    }
}
