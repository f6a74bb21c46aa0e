//! Demands over the wire.

use std::time::Duration;

use http_body_util::Full;
use tower_outcome_testkit::{
    Answer, FreshTimestamp, Protocol, Request, RisingNonce, Sessions, Venue,
};

use crate::client::{client, order, send};

async fn status(venue: &Venue, name: &str, value: &str) -> u16 {
    let request = order(venue, "op").header(name, value);
    let seen = send(
        &client(Protocol::Http1),
        request.body(Full::default()).unwrap(),
    )
    .await;
    seen.whole().unwrap()
}

#[tokio::test]
async fn timestamp_must_be_within_the_window_on_either_side() {
    let now = Duration::from_millis(1_700_000_000_000);
    let demand = FreshTimestamp::new("X-Time", Duration::from_millis(500), move || now);
    let venue = Venue::builder().demand(demand).start().unwrap();
    for (time, expected) in [
        ("1700000000000", 200),
        ("1699999999500", 200),
        ("1700000000500", 200),
        ("1699999999499", 400),
        ("1700000000501", 400),
        ("-1", 400),
        ("soon", 400),
    ] {
        assert_eq!(status(&venue, "x-time", time).await, expected, "{time}");
    }
    assert_eq!(venue.ledger().applied("op"), 3);
}

#[tokio::test]
async fn nonce_must_rise() {
    let venue = Venue::builder()
        .demand(RisingNonce::new("x-nonce"))
        .start()
        .unwrap();
    for (nonce, expected) in [("5", 200), ("5", 400), ("4", 400), ("6", 200), ("x", 400)] {
        assert_eq!(status(&venue, "x-nonce", nonce).await, expected, "{nonce}");
    }
    assert_eq!(venue.ledger().applied("op"), 2);
}

#[tokio::test]
async fn sessions_open_wear_out_and_expire() {
    let sessions = Sessions::new("authorization");
    let venue = Venue::builder().demand(sessions.clone()).start().unwrap();
    assert_eq!(status(&venue, "authorization", "a").await, 401);
    sessions.open("a");
    sessions.open_for("b", 1);
    assert_eq!(status(&venue, "authorization", "a").await, 200);
    assert_eq!(status(&venue, "authorization", "b").await, 200);
    assert_eq!(status(&venue, "authorization", "b").await, 401);
    sessions.expire("a");
    assert_eq!(status(&venue, "authorization", "a").await, 401);
    assert_eq!(venue.ledger().applied("op"), 2);
}

#[tokio::test]
async fn closure_is_a_demand() {
    let demand = |request: &Request| match request.header("x-pass") {
        Some("yes") => Ok(()),
        _ => Err(Answer::status(403)),
    };
    let venue = Venue::builder().demand(demand).start().unwrap();
    assert_eq!(status(&venue, "x-pass", "no").await, 403);
    assert_eq!(status(&venue, "x-pass", "yes").await, 200);
}
