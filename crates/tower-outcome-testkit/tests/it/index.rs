//! Asking a venue what became of an operation.

use std::time::Duration;

use http::Request;
use http_body_util::Full;
use tower_outcome_testkit::{Answer, Fault, Index, Point, Protocol, Venue};

use crate::client::{BOTH, client, order, send, with};

async fn asked(venue: &Venue, protocol: Protocol, operation: &str) -> u16 {
    let url = venue.url(&format!("/operations/{operation}"));
    let question = Request::get(url).body(Full::default()).unwrap();
    let seen = send(&client(protocol), question).await;
    seen.whole().unwrap()
}

#[tokio::test]
async fn an_operation_is_found_once_it_was_applied_and_not_before() {
    for protocol in BOTH {
        let index = Index::new("/operations/");
        let venue = Venue::builder().index(index).start().unwrap();
        assert_eq!(asked(&venue, protocol, "op").await, 404);
        for (at, expected) in [(Point::Body, 404), (Point::Applied, 200)] {
            let lost = with(order(&venue, "op"), &Fault::Close { at });
            let _ = send(&client(protocol), lost).await;
            assert_eq!(asked(&venue, protocol, "op").await, expected);
        }
        assert_eq!(venue.ledger().applied("op"), 1);
        let questions = venue.ledger().select(|entry| entry.method == "GET");
        assert!(questions.iter().all(|entry| !entry.applied));
    }
}

#[tokio::test]
async fn a_lag_by_questions_counts_from_when_it_was_applied() {
    let index = Index::new("/operations/").misses(2);
    let venue = Venue::builder().index(index).start().unwrap();
    assert_eq!(asked(&venue, Protocol::Http1, "op").await, 404);
    let buy = order(&venue, "op").body(Full::from("buy 1")).unwrap();
    let _ = send(&client(Protocol::Http1), buy).await;
    for expected in [404, 404, 200, 200] {
        assert_eq!(asked(&venue, Protocol::Http1, "op").await, expected);
    }
}

#[tokio::test]
async fn a_lag_by_time_hides_what_was_just_applied() {
    let index = Index::new("/operations/").lag(Duration::from_secs(3600));
    let venue = Venue::builder().index(index).start().unwrap();
    let buy = order(&venue, "op").body(Full::from("buy 1")).unwrap();
    let _ = send(&client(Protocol::Http1), buy).await;
    assert_eq!(asked(&venue, Protocol::Http1, "op").await, 404);
}

#[tokio::test]
async fn a_duplicate_is_refused_and_not_applied() {
    let refused = Answer::status(409);
    let venue = Venue::builder().duplicates(refused).start().unwrap();
    for expected in [200, 409, 409] {
        let buy = order(&venue, "op").body(Full::from("buy 1")).unwrap();
        let seen = send(&client(Protocol::Http1), buy).await;
        assert_eq!(seen.whole(), Some(expected));
    }
    assert_eq!(venue.ledger().applied("op"), 1);
}
