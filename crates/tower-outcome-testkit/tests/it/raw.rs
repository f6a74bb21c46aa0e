//! Scripted servers.

use http::Request;
use http_body_util::Full;
use tower_outcome_testkit::Protocol;
use tower_outcome_testkit::raw::{Server, frame};

use crate::client::{Seen, client, send};

fn post(server: &Server) -> Request<Full<bytes::Bytes>> {
    Request::post(server.url("/"))
        .body(Full::from("hi"))
        .unwrap()
}

#[tokio::test]
async fn connections_follow_the_script_and_the_last_handler_stays() {
    let server = Server::script()
        .connection(|mut conn| async move {
            conn.read_request().await?;
            conn.reset()
        })
        .connection(|mut conn| async move {
            let (head, body) = conn.read_request().await?;
            assert!(head.starts_with(b"POST / HTTP/1.1\r\n"));
            assert_eq!(body, b"hi");
            conn.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await?;
            conn.fin().await?;
            conn.drain().await;
            Ok(())
        })
        .start()
        .unwrap();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        // A client each, so that each has a connection.
        statuses.push(send(&client(Protocol::Http1), post(&server)).await.whole());
    }
    assert_eq!(statuses, [None, Some(200), Some(200)]);
    assert_eq!(server.connections(), 3);
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn frames_speak_http2() {
    let server = Server::start(|mut conn| async move {
        conn.start_http2(&[(frame::MAX_CONCURRENT_STREAMS, 10)])
            .await?;
        conn.write_all(&frame::ping(*b"pingpong")).await?;
        while let Some(request) = conn.next_headers().await? {
            assert!(!request.end_stream);
            assert_eq!(request.field(":method"), Some("POST"));
            let body = conn.read_body(request.stream).await?;
            let mut answer = frame::headers(
                request.stream,
                &[(":status", "201"), ("x-long", &"v".repeat(300))],
                false,
            );
            answer.extend(frame::data(request.stream, &body, false));
            answer.extend(frame::trailers(request.stream, &[("x-end", "yes")]));
            conn.write_all(&answer).await?;
        }
        Ok(())
    })
    .unwrap();
    let client = client(Protocol::Http2);
    for _ in 0..2 {
        let seen = send(&client, post(&server)).await;
        assert_eq!(seen.header("x-long").map(str::len), Some(300));
        let Seen::Answer {
            status,
            body: Ok(body),
            trailers: Some(trailers),
            ..
        } = seen
        else {
            panic!("{seen:?}");
        };
        assert_eq!((status.as_u16(), &body[..]), (201, &b"hi"[..]));
        assert_eq!(trailers["x-end"], "yes");
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn goaway_and_reset_frames_reach_the_client() {
    for (code, name) in [
        (frame::REFUSED_STREAM, "REFUSED_STREAM"),
        (frame::CANCEL, "CANCEL"),
    ] {
        let server = Server::start(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            while let Some(request) = conn.next_headers().await? {
                conn.write_all(&frame::rst_stream(request.stream, code))
                    .await?;
            }
            Ok(())
        })
        .unwrap();
        let seen = send(&client(Protocol::Http2), post(&server)).await;
        assert!(seen.chain().contains(name), "{}", seen.chain());
    }
    let server = Server::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.next_headers().await?;
        conn.write_all(&frame::goaway(0, frame::NO_ERROR)).await?;
        conn.gone().await;
        Ok(())
    })
    .unwrap();
    let seen = send(&client(Protocol::Http2), post(&server)).await;
    assert!(seen.chain().contains("GoAway"), "{}", seen.chain());
}
