//! Demands over the wire.

use std::time::Duration;

use http_body_util::Full;
use tower_outcome_testkit::{
    Answer, FreshTimestamp, Logins, Protocol, Request, RisingNonce, Sessions, Signature, Signed,
    Venue,
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

#[tokio::test]
async fn signature_is_what_the_function_says() {
    let now = Duration::from_millis(1_700_000_000_000);
    // `wrong`, or a time in milliseconds, a nonce and a token; each may be missing.
    let verify = |request: &http::Request<bytes::Bytes>| {
        let mut parts = request.headers().get("x-sign")?.to_str().ok()?.split(' ');
        let mut signed = Signed::new();
        match parts.next()? {
            "wrong" => return None,
            "" => {}
            time => signed = signed.time(Duration::from_millis(time.parse().ok()?)),
        }
        if let Some(nonce) = parts.next().filter(|part| !part.is_empty()) {
            signed = signed.nonce(nonce.parse().ok()?);
        }
        Some(match parts.next() {
            Some(token) => signed.token(token),
            None => signed,
        })
    };
    let demand = Signature::new(verify).window(Duration::from_millis(500), move || now);
    let venue = Venue::builder().demand(demand).start().unwrap();
    for (sign, expected) in [
        ("wrong", 401),
        ("1700000000000", 200),
        ("1700000000000 5", 200),
        ("1700000000000 5", 400),
        ("1700000000000 4", 400),
        ("1699999999499 9", 400),
        ("1700000000501 9", 400),
        (" 9", 400),
        // What was refused used nothing up.
        ("1700000000500 6 once", 200),
        ("1700000000000 7 once", 400),
        ("1700000000000 7 again", 200),
        // Whoever has begun to count goes on.
        ("1700000000000", 400),
    ] {
        assert_eq!(status(&venue, "x-sign", sign).await, expected, "{sign}");
    }
    assert_eq!(status(&venue, "x-other", "1700000000000").await, 401);
    assert_eq!(venue.ledger().applied("op"), 4);
}

async fn token(venue: &Venue, form: &'static str) -> (u16, String) {
    use http_body_util::BodyExt;

    let request = http::Request::post(venue.url("/token")).body(Full::from(form));
    let response = client(Protocol::Http1)
        .request(request.unwrap())
        .await
        .unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_refresh_token_works_once_and_revokes_its_family_when_it_comes_again() {
    let logins = Logins::at("/token").rejects_with(Answer::json(200, r#"{"ErrorCode":4011}"#));
    let venue = Venue::builder().demand(logins.clone()).start().unwrap();
    assert_eq!(
        status(&venue, "authorization", "Bearer access-1").await,
        200
    );
    assert_eq!(venue.ledger().applied("op"), 0);
    assert_eq!(logins.rejections(), 1);

    let (code, body) = token(&venue, "grant_type=password").await;
    assert_eq!(code, 200);
    assert!(
        body.contains("access-1") && body.contains("refresh-1"),
        "{body}"
    );
    status(&venue, "authorization", "Bearer access-1").await;
    assert_eq!(venue.ledger().applied("op"), 1);

    // The old access token dies with the refresh token that is spent.
    logins.expires_in(60);
    let spend = "grant_type=refresh_token&refresh_token=refresh-1";
    let (code, body) = token(&venue, spend).await;
    assert!(code == 200 && body.contains("access-2") && body.contains("\"expires_in\":60"));
    status(&venue, "authorization", "Bearer access-1").await;
    assert_eq!(venue.ledger().applied("op"), 1);
    status(&venue, "authorization", "Bearer access-2").await;
    assert_eq!(venue.ledger().applied("op"), 2);

    // A session that ends leaves the refresh token good.
    logins.expire_all();
    status(&venue, "authorization", "Bearer access-2").await;
    assert_eq!(venue.ledger().applied("op"), 2);
    let (code, _) = token(&venue, "grant_type=refresh_token&refresh_token=refresh-2").await;
    assert_eq!((code, logins.refreshes(), logins.reuses()), (200, 2, 0));

    let (code, body) = token(&venue, spend).await;
    assert!(code == 400 && body.contains("invalid_grant"));
    assert_eq!(logins.reuses(), 1);
    status(&venue, "authorization", "Bearer access-3").await;
    assert_eq!(venue.ledger().applied("op"), 2);
    let (code, _) = token(&venue, "grant_type=refresh_token&refresh_token=refresh-3").await;
    assert_eq!((code, logins.logins()), (400, 1));
}
