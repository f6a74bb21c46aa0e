//! `grpc-retry-pushback-ms`: the server says when to come back, or not to.

use std::time::Duration;

use tonic::{Code, Status};
use tower_outcome::{CallReport, Outcome, Reason};
use tower_outcome_desk::{Desk, Trouble, path};
use tower_outcome_testkit::{Fault, GrpcForm, Venue};

use super::stack::{ID, failing, failure, get, orders, place, report, within};

fn busy(pushback: &'static str) -> Trouble {
    let mut status = Status::unavailable("busy");
    let metadata = status.metadata_mut();
    metadata.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    Trouble::Before(status)
}

#[tokio::test]
async fn a_pushback_is_waited_for() {
    let desk = Desk::open().await.unwrap();
    let mut orders = orders(desk.url());
    within(orders.place(place())).await.unwrap();
    desk.next(path::GET, busy("25"));
    let found = within(orders.get(get())).await.unwrap();
    // The backoff here is zero, so that all of the wait is the server's.
    let waited = CallReport::of(found.extensions()).unwrap().waited();
    assert!(waited >= Duration::from_millis(25), "{waited:?}");
    assert_eq!(desk.seen(path::GET).len(), 2);
}

#[tokio::test]
async fn a_pushback_of_zero_means_at_once() {
    let desk = Desk::open().await.unwrap();
    let mut orders = orders(desk.url());
    within(orders.place(place())).await.unwrap();
    desk.next(path::GET, busy("0"));
    let found = within(orders.get(get())).await.unwrap();
    let waited = CallReport::of(found.extensions()).unwrap().waited();
    assert_eq!(waited, Duration::ZERO);
    assert_eq!(desk.seen(path::GET).len(), 2);
}

#[tokio::test]
async fn a_negative_pushback_and_one_that_is_no_number_forbid_another_attempt() {
    for pushback in ["-1", "soon", "", "1.5", "99999999999999999999"] {
        for form in [GrpcForm::TrailersOnly, GrpcForm::TrailersBeforeMessage] {
            let venue = Venue::start().unwrap();
            let fault = Fault::Grpc {
                code: 14,
                form,
                pushback: Some(pushback.to_owned()),
                applied: false,
            };
            let mut orders = orders(venue.url(""));
            let status = within(orders.get(failing(get(), &fault)))
                .await
                .unwrap_err();
            assert_eq!(status.code(), Code::Unavailable);
            let permanent = Outcome::Permanent {
                reason: Reason::Overloaded,
            };
            assert_eq!(failure(&status).outcome(), permanent, "{pushback:?}");
            assert_eq!(venue.ledger().attempts(ID), 1, "{pushback:?}");
        }
    }
}

#[tokio::test]
async fn a_pushback_makes_no_order_repeatable() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::PLACE, busy("0"));
    let status = within(orders(desk.url()).place(place())).await.unwrap_err();
    assert!(failure(&status).outcome().is_unknown());
    assert_eq!(desk.seen(path::PLACE).len(), 1);
}

#[tokio::test]
async fn a_pushback_beyond_the_deadline_is_not_slept() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::GET, busy("3600000"));
    let mut request = get();
    request.set_timeout(Duration::from_secs(30));
    let status = within(orders(desk.url()).get(request)).await.unwrap_err();
    let report = report(&status);
    assert_eq!(report.waited(), Duration::ZERO);
    // Whoever wants to come back later learns when.
    assert!(report.after().is_some());
    assert_eq!(desk.seen(path::GET).len(), 1);
}
