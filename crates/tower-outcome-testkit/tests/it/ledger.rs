//! What the ledger remembers, and when.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tower_outcome_testkit::{Answer, Fault, Point, Protocol, Received, Venue, fnv1a};

use crate::client::{BOTH, client, order, send, with};

#[tokio::test]
async fn entry_holds_what_was_sent() {
    for protocol in BOTH {
        let venue = Venue::start().unwrap();
        let request = Request::put(venue.url("/orders/7?dry=1"))
            .header("x-operation-id", "op")
            .header("idempotency-key", "key")
            .header("x-client", "desk-1")
            .body(Full::from("buy 1"))
            .unwrap();
        let seen = send(&client(protocol), request).await;
        assert_eq!(seen.whole(), Some(200));
        let entry = venue.ledger().entries().remove(0);
        assert_eq!(entry.operation.as_deref(), Some("op"));
        assert_eq!(entry.key.as_deref(), Some("key"));
        assert_eq!(entry.client.as_deref(), Some("desk-1"));
        assert_eq!(entry.method, "PUT");
        assert_eq!(entry.path, "/orders/7?dry=1");
        assert_eq!(entry.protocol, protocol);
        assert_eq!(entry.connection, 0);
        assert_eq!(entry.received, Received::Complete);
        assert_eq!(entry.body_length, 5);
        assert_eq!(entry.body_hash, fnv1a(b"buy 1"));
        assert!(entry.applied);
        assert!(!entry.replayed);
        assert_eq!(entry.answered, Some(200));
        assert_eq!(entry.fault, None);
        assert_eq!(venue.ledger().of_client("desk-1").len(), 1);
        assert_eq!(venue.ledger().of_client("desk-2").len(), 0);
    }
}

#[tokio::test]
async fn large_bodies_arrive_whole_in_both_directions() {
    for protocol in BOTH {
        let venue = Venue::builder()
            .answer(|request| Answer::status(200).body(request.body.clone()))
            .start()
            .unwrap();
        let body: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let body = Bytes::from(body);
        let request = order(&venue, "op").body(Full::from(body.clone())).unwrap();
        let seen = send(&client(protocol), request).await;
        let crate::client::Seen::Answer { body: Ok(echo), .. } = seen else {
            panic!("{protocol:?}: {seen:?}");
        };
        assert!(echo == body, "{protocol:?}: {} bytes", echo.len());
        let entry = venue.ledger().entries().remove(0);
        assert_eq!(entry.body_length, 3_000_000);
        assert_eq!(entry.body_hash, fnv1a(&body));
    }
}

#[tokio::test]
async fn key_that_was_applied_gets_the_stored_answer() {
    for protocol in BOTH {
        let venue = Venue::builder()
            .answer(|request| Answer::json(201, format!(r#"{{"at":"{:?}"}}"#, request.at)))
            .start()
            .unwrap();
        let client = client(protocol);
        let lost = Fault::Close { at: Point::Applied };
        let first = order(&venue, "op").header("idempotency-key", "k1");
        assert_eq!(send(&client, with(first, &lost)).await.whole(), None);
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let again = order(&venue, "op").header("idempotency-key", "k1");
            let seen = send(&client, again.body(Full::default()).unwrap()).await;
            assert_eq!(seen.whole(), Some(201));
            let crate::client::Seen::Answer { body, .. } = seen else {
                panic!("{seen:?}");
            };
            bodies.push(body.unwrap());
        }
        assert_eq!(bodies[0], bodies[1]);
        assert_eq!(venue.ledger().applied("op"), 1);
        assert_eq!(venue.ledger().attempts("op"), 3);
        let replayed = venue.ledger().select(|entry| entry.replayed);
        assert_eq!(replayed.len(), 2);
        assert_eq!(venue.ledger().applied_twice(), 0);
    }
}

#[tokio::test]
async fn key_that_was_not_applied_is_applied_later() {
    let venue = Venue::start().unwrap();
    let client = client(Protocol::Http1);
    let request = || order(&venue, "op").header("idempotency-key", "k1");
    let refused = with(request(), &Fault::status(503, false));
    assert_eq!(send(&client, refused).await.whole(), Some(503));
    let again = request().body(Full::default()).unwrap();
    assert_eq!(send(&client, again).await.whole(), Some(200));
    assert_eq!(venue.ledger().applied("op"), 1);
}

#[tokio::test]
async fn double_submits_are_counted() {
    let venue = Venue::start().unwrap();
    let client = client(Protocol::Http2);
    for operation in ["a", "a", "b"] {
        let request = order(&venue, operation).body(Full::default()).unwrap();
        assert_eq!(send(&client, request).await.whole(), Some(200));
    }
    let ledger = venue.ledger();
    assert_eq!(ledger.applied("a"), 2);
    assert_eq!(ledger.applied_total(), 3);
    assert_eq!(ledger.applied_twice(), 1);
    assert_eq!(ledger.answered(200), 3);
    ledger.clear();
    assert!(ledger.is_empty());
    assert_eq!(ledger.applied("a"), 0);
}

#[test]
fn settle_waits_for_requests_whose_client_is_gone() {
    use std::io::Write;

    let venue = Venue::start().unwrap();
    let ledger = venue.ledger();
    for n in 0..50 {
        let mut stream = std::net::TcpStream::connect(venue.addr()).unwrap();
        let request =
            format!("POST / HTTP/1.1\r\nx-operation-id: op-{n}\r\ncontent-length: 2\r\n\r\nhi");
        stream.write_all(request.as_bytes()).unwrap();
        drop(stream);
        assert!(ledger.closed(Duration::from_secs(60)));
        assert_eq!(ledger.applied(&format!("op-{n}")), 1);
    }
}

#[test]
fn settle_does_not_mind_idle_connections_and_closed_does() {
    let venue = Venue::start().unwrap();
    let ledger = venue.ledger();
    let stream = std::net::TcpStream::connect(venue.addr()).unwrap();
    assert!(ledger.settle(Duration::from_secs(60)));
    assert_eq!(ledger.open_connections(), 1);
    assert!(!ledger.closed(Duration::from_millis(1)));
    drop(stream);
    assert!(ledger.closed(Duration::from_secs(60)));
}

#[test]
fn ledger_outlives_the_venue() {
    let venue = Venue::start().unwrap();
    let ledger = venue.ledger();
    let addr = venue.addr();
    drop(venue);
    assert!(ledger.closed(Duration::ZERO));
    assert!(std::net::TcpStream::connect(addr).is_err());
}

#[tokio::test(start_paused = true)]
async fn paused_clock_of_the_client_does_not_stop_the_venue() {
    let venue = Venue::builder()
        .latency(Duration::from_millis(2))
        .start()
        .unwrap();
    let request = order(&venue, "op").body(Full::default()).unwrap();
    let seen = send(&client(Protocol::Http1), request).await;
    assert_eq!(seen.whole(), Some(200));
}
