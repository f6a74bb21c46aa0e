//! One clock to beat, here and at the server.

use std::time::Duration;

use tonic::{Code, Status};
use tower_outcome::{Bound, Deadline, Delivery, Elapsed, Outcome, Reason, ReplayLayer, Timeouts};
use tower_outcome_desk::{Desk, Trouble, path};
use tower_outcome_testkit::{Fault, Point, Venue};

use super::stack::{
    ID, endpoint, failing, failure, get, known, orders, orders_with, place, within,
};

const CALL: Duration = Duration::from_secs(40);

/// What the desk was told with each call of a method.
fn told(desk: &Desk, method: &str) -> Vec<Duration> {
    let parse = |value: &str| {
        let (digits, unit) = value.split_at(value.len() - 1);
        assert!((1..=8).contains(&digits.len()), "{value}");
        let number = digits.parse().unwrap();
        match unit {
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => panic!("{value}"),
        }
    };
    let seen = desk.seen(method);
    let values = seen.iter().map(|seen| seen.metadata.get("grpc-timeout"));
    values
        .map(|value| parse(value.expect("a deadline").to_str().unwrap()))
        .collect()
}

fn busy() -> Trouble {
    let mut status = Status::unavailable("busy");
    let at_once = "1".parse().unwrap();
    let metadata = status.metadata_mut();
    metadata.insert("grpc-retry-pushback-ms", at_once);
    Trouble::Before(status)
}

#[tokio::test]
async fn the_server_is_told_what_is_left_with_each_attempt() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::GET, busy());
    desk.next(path::GET, busy());
    let _not_found = within(orders(desk.url()).get(get())).await.unwrap_err();
    let told = told(&desk, path::GET);
    assert_eq!(told.len(), 3);
    assert!(told[0] <= CALL && told[0] > CALL / 2, "{told:?}");
    assert!(told.is_sorted_by(|one, next| one > next), "{told:?}");
}

#[tokio::test]
async fn a_timeout_that_the_caller_has_set_bounds_all_attempts() {
    for seconds in [7, 300] {
        let asked = Duration::from_secs(seconds);
        let desk = Desk::open().await.unwrap();
        desk.next(path::GET, busy());
        let mut request = get();
        request.set_timeout(asked);
        let _not_found = within(orders(desk.url()).get(request)).await.unwrap_err();
        let told = told(&desk, path::GET);
        assert!(told[0] <= asked && told[0] > asked / 2, "{told:?}");
        assert!(told[1] < told[0], "{told:?}");
    }
}

#[tokio::test]
async fn of_a_timeout_and_a_deadline_the_server_is_told_the_earlier() {
    for (asked, deadline) in [(7, 8), (9, 8)] {
        let desk = Desk::open().await.unwrap();
        let mut request = place();
        request.set_timeout(Duration::from_secs(asked));
        let deadline = Duration::from_secs(deadline);
        request.extensions_mut().insert(Deadline::after(deadline));
        within(orders(desk.url()).place(request)).await.unwrap();
        let earlier = deadline.min(Duration::from_secs(asked));
        let told = told(&desk, path::PLACE)[0];
        assert!(told <= earlier && told > earlier / 2, "{told:?}");
    }
}

#[tokio::test]
async fn a_call_that_has_no_time_left_is_not_made() {
    let desk = Desk::open().await.unwrap();
    let mut request = place();
    request.set_timeout(Duration::ZERO);
    let status = within(orders(desk.url()).place(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(failure(&status).delivery(), Delivery::NotSent);
    assert!(desk.seen(path::PLACE).is_empty());
}

/// The same code and the same doubt, but for how far the call got.
#[tokio::test]
async fn a_deadline_that_strikes_here_is_told_from_one_that_the_server_reports() {
    let unknown = Outcome::Unknown {
        reason: Reason::TimedOut,
    };

    let venue = Venue::start().unwrap();
    let silent = Fault::Stall { at: Point::Applied };
    let mut request = failing(place(), &silent);
    request.set_timeout(Duration::from_millis(200));
    let here = within(orders(venue.url("")).place(request))
        .await
        .unwrap_err();
    assert_eq!(here.code(), Code::DeadlineExceeded);
    assert_eq!(failure(&here).outcome(), unknown);
    // Although it is tonic that strikes first.
    assert_eq!(Elapsed::of(&here).unwrap().bound(), Bound::Deadline);
    assert_eq!(failure(&here).delivery(), Delivery::MaybeSent);
    assert_eq!(venue.ledger().applied(ID), 1);

    let desk = Desk::open().await.unwrap();
    desk.next(
        path::PLACE,
        Trouble::After(Status::deadline_exceeded("late")),
    );
    let there = within(orders(desk.url()).place(place())).await.unwrap_err();
    assert_eq!(
        (there.code(), there.message()),
        (Code::DeadlineExceeded, "late")
    );
    assert_eq!(failure(&there).outcome(), unknown);
    assert_eq!(failure(&there).delivery(), Delivery::Answered);
    assert_eq!(desk.times_placed(ID), 1);
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_an_unknown_of_its_own() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder()
        .attempt(Duration::from_millis(200))
        .grpc_timeout(true);
    let timeouts = timeouts.build().unwrap();
    let mut orders = orders_with(endpoint(venue.url("")), &timeouts, ReplayLayer::new());
    let request = failing(place(), &Fault::Stall { at: Point::Applied });
    let status = within(orders.place(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(Elapsed::of(&status).unwrap().bound(), Bound::Attempt);
    assert!(failure(&status).outcome().is_unknown());
    assert_eq!(venue.ledger().applied(ID), 1);
}

/// tonic makes `CANCELLED` of it.
#[tokio::test]
async fn a_timeout_of_the_endpoint_is_late_and_unknown() {
    let venue = Venue::start().unwrap();
    let hasty = endpoint(venue.url("")).timeout(Duration::from_millis(200));
    let mut orders = orders_with(hasty, &Timeouts::new(), ReplayLayer::new());
    let request = failing(place(), &Fault::Stall { at: Point::Applied });
    let status = within(orders.place(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(failure(&status).outcome().is_unknown());
    assert_eq!(venue.ledger().applied(ID), 1);
}

#[tokio::test]
async fn a_stream_that_outlives_the_deadline_ends_there() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::WATCH, Trouble::Silent);
    let mut request = known(tower_outcome_desk::WatchRequest {
        id: ID.into(),
        events: 2,
    });
    request.set_timeout(Duration::from_millis(300));
    let events = within(orders(desk.url()).watch(request)).await.unwrap();
    let mut events = events.into_inner();
    for number in [1, 2] {
        let event = within(events.message()).await.unwrap().unwrap();
        assert_eq!(event.number, number);
    }
    let status = within(events.message()).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(Elapsed::of(&status).unwrap().bound(), Bound::Deadline);
    assert_eq!(failure(&status).delivery(), Delivery::Answered);
}
