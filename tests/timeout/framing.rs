//! What the wrappers leave of the framing on the wire.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::TRAILER};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tower_outcome::Timeouts;
use tower_outcome_testkit::raw;

use super::stack::{Body, Protocol, call, full, nodelay, post, stack};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Sends a body through all bounds, and returns the head and the chunks that arrived.
async fn sent(body: Body, chunked: bool) -> (String, Vec<u8>) {
    let seen = Arc::new(Mutex::new((String::new(), Vec::new())));
    let server = raw::Server::start({
        let seen = Arc::clone(&seen);
        move |mut conn| {
            let seen = Arc::clone(&seen);
            async move {
                let (head, mut body) = if chunked {
                    (conn.read_head().await?, Vec::new())
                } else {
                    conn.read_request().await?
                };
                // Up to the end of the trailers.
                while chunked && !body.ends_with(b"x-sum: 1\r\n\r\n") {
                    body.extend(conn.read_exact(1).await?);
                }
                let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
                *seen.lock().unwrap() = (head, body);
                conn.write_all(OK).await
            }
        }
    });
    let server = server.unwrap();
    let timeouts = Timeouts::builder()
        .head(Duration::from_secs(5))
        .write_idle(Duration::from_secs(5));
    let stack = stack(&timeouts.build().unwrap(), Protocol::Http1, 8, nodelay());
    let mut request = post(&server.url("/orders"), body);
    if chunked {
        let announced = HeaderValue::from_static("x-sum");
        request.headers_mut().insert(TRAILER, announced);
    }
    assert_eq!(call(&stack, request).await.unwrap().status(), 200);
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[tokio::test]
async fn a_body_of_known_length_keeps_its_content_length() {
    let (head, body) = sent(full("buy 100"), false).await;
    assert!(head.contains("\r\ncontent-length: 7\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert_eq!(body, b"buy 100");
}

#[tokio::test]
async fn an_empty_body_is_not_sent_in_chunks() {
    let (head, _) = sent(full(""), false).await;
    // Without a body a length of nothing may be left out.
    assert!(!head.contains("content-length") || head.contains("\r\ncontent-length: 0\r\n"));
    assert!(!head.contains("transfer-encoding"), "{head}");
}

#[tokio::test]
async fn trailers_arrive() {
    let sum = HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("1"))]);
    let frames = [
        Frame::data(Bytes::from_static(b"buy 100")),
        Frame::trailers(sum),
    ];
    let frames = futures_util::stream::iter(frames.map(Ok));
    let (head, body) = sent(BodyExt::boxed(StreamBody::new(frames)), true).await;
    assert!(
        head.contains("\r\ntransfer-encoding: chunked\r\n"),
        "{head}"
    );
    let body = String::from_utf8_lossy(&body);
    assert!(body.ends_with("0\r\nx-sum: 1\r\n\r\n"), "{body}");
}
