//! What the course's bot documents, but for the storm.

use std::{future::pending, io};

use futures_util::future::join_all;
use http::Uri;
use httpdate::fmt_http_date;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::advance};
use tower_outcome::{
    Bound, Failure, ManualClock, NotRetried, Verifier,
    sign::{Resigned, SignReport},
};
use tower_outcome_testkit::Point;

use super::*;

/// Where the bot calls.
struct Desk {
    venue: Venue,
    wire: Wire,
    course: Course,
}

impl Desk {
    /// A venue that refuses the first requests with these.
    fn open(refusals: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(refusals, Setup::default())
    }

    fn with(refusals: impl IntoIterator<Item = Answer>, setup: Setup) -> Self {
        let venue = Venue::builder().demand(refuses(refusals)).start().unwrap();
        let wire = Wire::to(&venue);
        let course = course(&wire, &venue, setup);
        Self {
            venue,
            wire,
            course,
        }
    }

    async fn make(&self, call: Call) -> (Output, Option<CallReport>) {
        make(&self.course.client, call).await
    }

    async fn get(&self) -> (Output, Option<CallReport>) {
        self.make(get(&self.venue)).await
    }

    fn sent(&self) -> usize {
        self.wire.departures().len()
    }
}

fn least() -> Setup {
    Setup {
        jitter: Always::LEAST,
        ..Setup::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_408_425_429_500_502_503_and_504_are_retried_five_attempts_in_all() {
    for code in [408, 425, 429, 500, 502, 503, 504] {
        let desk = Desk::open(always(Answer::status(code)));
        let (result, report) = desk.get().await;
        assert_eq!(result.unwrap().status(), code);
        assert_eq!(desk.sent(), 5, "{code}");
        let report = report.unwrap();
        assert!(matches!(report.not_retried(), Some(NotRetried::Exhausted)));
    }
}

#[tokio::test(start_paused = true)]
async fn other_statuses_are_not_retried() {
    for code in [400, 401, 403, 404, 409, 422, 501, 505, 520] {
        let desk = Desk::open(always(Answer::status(code)));
        desk.get().await.0.unwrap();
        assert_eq!(desk.sent(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_errors_are_retried() {
    for fault in [
        Fault::Close { at: Point::Head },
        Fault::Reset { at: Point::Applied },
        Fault::Close {
            at: Point::Response,
        },
    ] {
        let desk = Desk::open([]);
        let (result, _) = desk.make(failing(&fault, get(&desk.venue))).await;
        assert!(result.is_err());
        assert_eq!(desk.sent(), 5, "{fault}");
    }
    let desk = Desk::open([]);
    let call = get(&desk.venue);
    let Desk {
        venue,
        wire,
        course,
    } = desk;
    drop(venue);
    assert!(make(&course.client, call).await.0.is_err());
    assert_eq!(wire.departures().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn timeout_errors_are_retried() {
    let desk = Desk::with([], least());
    let stall = Fault::Stall { at: Point::Body };
    let (result, _) = desk.make(failing(&stall, get(&desk.venue))).await;
    assert!(result.is_err());
    assert_eq!(desk.wire.departures(), [0, 15, 30, 45].map(secs));
}

#[tokio::test(start_paused = true)]
async fn a_200_with_a_rejected_body_is_permanent() {
    let refusal = Answer::json(200, r#"{"status":"rejected","reason":"margin"}"#);
    for call in [get, post, |venue: &_| order(venue, Signal::of(1, MINUTE))] {
        let desk = Desk::open(always(refusal.clone()));
        let (result, report) = desk.make(call(&desk.venue)).await;
        assert_eq!(result.unwrap().status(), 200);
        assert!(report.unwrap().outcome().is_permanent());
        assert_eq!(desk.sent(), 1);
    }
}

/// A venue whose clock is a minute ahead of the bot's, or not.
fn strict(ahead: Duration) -> (Venue, Wire, Course) {
    let now = SystemClock::new().now();
    let verifier = Verifier::new(template()).unwrap();
    let check = move |received: &testkit::Request| {
        let received = received.to_http().unwrap();
        let verified = verifier.verify(&received, now + ahead);
        let date = fmt_http_date(now + ahead);
        let refusal = Answer::json(401, r#"{"error":"unauthorized"}"#).header("date", date);
        verified.map(drop).map_err(|_| refusal)
    };
    let venue = Venue::builder().demand(check).start().unwrap();
    let wire = Wire::to(&venue);
    let clock = Arc::new(ManualClock::new(now));
    let setup = Setup {
        clock,
        ..Setup::default()
    };
    let course = course(&wire, &venue, setup);
    (venue, wire, course)
}

#[tokio::test(start_paused = true)]
async fn a_401_that_is_clock_skew_is_signed_and_sent_once_more_whatever_the_method() {
    for call in [get, post] {
        let (venue, wire, course) = strict(MINUTE);
        let (result, _) = make(&course.client, call(&venue)).await;
        let response = result.unwrap();
        assert_eq!(response.status(), 200);
        let report = SignReport::of(response.extensions()).unwrap();
        assert_eq!(report.resigned(), Some(Resigned::ClockSkew));
        assert_eq!(wire.departures(), [Duration::ZERO; 2]);
        assert_eq!(venue.ledger().applied_total(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_401_that_is_none_is_permanent() {
    let refusal = Answer::status(401).header("date", fmt_http_date(SystemClock::new().now()));
    let desk = Desk::open(always(refusal));
    let (result, report) = desk.get().await;
    assert_eq!(result.unwrap().status(), 401);
    assert!(report.unwrap().outcome().is_permanent());
    assert_eq!(desk.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn jitter_is_full_with_a_base_of_half_a_second_and_a_cap_of_thirty() {
    for (jitter, gaps) in [
        (Always::LEAST, [0, 0, 0, 0]),
        (Always::MOST, [500, 1000, 2000, 4000]),
    ] {
        let setup = Setup {
            jitter,
            ..Setup::default()
        };
        let desk = Desk::with(always(Answer::status(503)), setup);
        desk.get().await.0.unwrap();
        assert_eq!(desk.wire.gaps(), gaps.map(millis));
    }
    // Five attempts do not come to it.
    let longest = backoff().delay(9, Reason::ServerError, &Always::MOST);
    assert_eq!(longest.as_millis().next_multiple_of(100), 30_000);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for_at_least_on_429() {
    let asks = |seconds| Answer::status(429).header("retry-after", seconds);
    let desk = Desk::with([asks("3"), asks("1"), asks("7")], least());
    desk.get().await.0.unwrap();
    assert_eq!(desk.wire.gaps(), [3, 1, 7].map(secs));
    // And longer where the backoff is.
    let busy = [503, 503, 503].map(Answer::status);
    let desk = Desk::open(busy.into_iter().chain([asks("1")]));
    desk.get().await.0.unwrap();
    assert_eq!(*desk.wire.gaps().last().unwrap(), secs(4));
}

#[tokio::test(start_paused = true)]
async fn connecting_is_given_up_after_3_05_seconds() {
    let nowhere = service_fn(|_: Uri| pending::<io::Result<TokioIo<TcpStream>>>());
    let venue = Venue::start().unwrap();
    let wire = Wire::to(&venue).through(nowhere);
    let course = course(&wire, &venue, Setup::default());
    let (result, _) = make(&course.client, post(&venue)).await;
    assert_eq!(struck(&result.unwrap_err()), Bound::Connect);
    assert_eq!(wire.start.elapsed(), millis(3050));
}

#[tokio::test(start_paused = true)]
async fn reading_is_given_up_after_a_gap_of_fifteen_seconds() {
    for (at, bound) in [
        (Point::Applied, Bound::Head),
        (Point::Response, Bound::ReadIdle),
    ] {
        let desk = Desk::open([]);
        let call = failing(&Fault::Stall { at }, post(&desk.venue));
        let (result, _) = desk.make(call).await;
        let error = match result {
            Ok(answer) => answer.into_body().collect().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(struck(&error), bound);
        assert_eq!(desk.wire.start.elapsed(), secs(15));
    }
}

#[tokio::test(start_paused = true)]
async fn one_deadline_is_over_all_attempts() {
    // An attempt is cut to what is left of it.
    let desk = Desk::open([]);
    let stall = Fault::Stall { at: Point::Body };
    let (result, _) = desk.make(failing(&stall, get(&desk.venue))).await;
    assert_eq!(struck(&result.unwrap_err()), Bound::Deadline);
    assert_eq!(desk.sent(), 4);
    assert_eq!(desk.wire.start.elapsed(), MINUTE);

    // A wait that does not fit is not begun.
    let refusal = Answer::status(503).header("retry-after", "25");
    let desk = Desk::open(always(refusal));
    let (result, report) = desk.get().await;
    assert_eq!(result.unwrap().status(), 503);
    assert_eq!(desk.sent(), 3);
    assert_eq!(desk.wire.start.elapsed(), secs(50));
    let report = report.unwrap();
    assert!(matches!(report.not_retried(), Some(NotRetried::Deadline)));
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_signal_has_expired_is_never_sent() {
    let desk = Desk::open([]);
    let signal = Signal::of(1, secs(2));
    advance(secs(2)).await;
    let (result, _) = desk.make(order(&desk.venue, signal)).await;
    let failure = result.unwrap_err();
    let failure = Failure::of(&*failure).unwrap();
    assert!(failure.delivery().proves_not_applied());
    assert_eq!(desk.sent(), 0);

    // Nor is it once it has expired while it waited for anything.
    let refusal = Answer::status(429).header("retry-after", "3");
    let desk = Desk::open([refusal]);
    let late = order(&desk.venue, Signal::of(1, secs(3)));
    desk.make(late).await.0.unwrap();
    assert_eq!(desk.sent(), 1);

    // The next turn is in forty seconds: in time for the call, and too late for a signal of thirty.
    let desk = Desk::open([]);
    let place = |symbol, good_for| desk.make(order(&desk.venue, Signal::of(symbol, good_for)));
    join_all((0..200).map(|symbol| place(symbol, MINUTE))).await;
    advance(secs(20)).await;
    assert!(place(200, secs(30)).await.0.is_err());
    assert_eq!(desk.sent(), 200);
    place(201, MINUTE).await.0.unwrap();
    assert_eq!(desk.sent(), 201);
}

#[tokio::test(start_paused = true)]
async fn an_order_is_retried_with_a_deterministic_id_only() {
    for code in [408, 425, 429, 500, 502, 503, 504] {
        let refusals = always(Answer::status(code));
        let desk = Desk::open(refusals);
        desk.make(post(&desk.venue)).await.0.unwrap();
        assert_eq!(desk.sent(), 1, "{code}");

        let desk = Desk::open([code; 3].map(Answer::status));
        let signal = Signal::of(1, MINUTE);
        let (result, _) = desk.make(order(&desk.venue, signal)).await;
        assert_eq!(result.unwrap().status(), 200);
        assert_eq!(desk.sent(), 4, "{code}");
        let entries = desk.venue.ledger().entries();
        let is_the_same = |key| key == Some("1-0930-buy");
        assert!(
            entries
                .iter()
                .all(|entry| is_the_same(entry.key.as_deref()))
        );
    }
    // Not even where it provably never left.
    let desk = Desk::open([]);
    let orders = [
        (post(&desk.venue), 1),
        (order(&desk.venue, Signal::of(1, MINUTE)), 6),
    ];
    let Desk {
        venue,
        wire,
        course,
    } = desk;
    drop(venue);
    for (order, sent) in orders {
        assert!(make(&course.client, order).await.0.is_err());
        assert_eq!(wire.departures().len(), sent);
    }
}

/// The answer to the first order is lost, and the bot starts over and sees the same signal.
#[tokio::test(start_paused = true)]
async fn an_order_that_is_placed_again_is_not_applied_again() {
    let desk = Desk::open([]);
    let lost = Fault::Close { at: Point::Applied };
    let signal = Signal::of(1, MINUTE);
    let (result, _) = desk.make(failing(&lost, order(&desk.venue, signal))).await;
    assert!(result.is_err());
    let again = course(&desk.wire, &desk.venue, Setup::default());
    let (result, _) = make(&again.client, order(&desk.venue, signal)).await;
    assert_eq!(result.unwrap().status(), 200);
    assert_eq!(desk.sent(), 6);
    assert_eq!(desk.venue.ledger().applied_total(), 1);
}
