//! Clocks that differ, drift and are set: what is learned, what is signed, what is sent once more.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::advance;
use tower::{Layer, ServiceExt};
use tower_outcome_core::{Answer, BoxError, Clock, HttpClassifier, Judged, ManualClock, Reason};
use tower_outcome_sign::{ClockOffset, Resigned, SignLayer, SignReport, SignService, SignedBody};

use crate::{
    layer::{STAMP, Stamp, TIME, order},
    support::{at_ms, ms, secs},
};

mod dates;
mod offset;
mod source;

const START: u64 = 1_700_000_000_000;

/// A server with a clock of its own, which refuses times that are too old or too early.
#[derive(Clone)]
struct Server {
    clock: Arc<ManualClock>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// How far it is ahead of the client, in milliseconds.
    ahead: i64,
    /// To the server, and back.
    trip: (Duration, Duration),
    dates: Dates,
    /// What it accepts, in milliseconds: so old, and so early.
    window: (i64, i64),
    /// What it says of times that it does not accept.
    says: &'static str,
    /// How far each time was ahead of it on arrival, in milliseconds.
    heard: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Dates {
    Right,
    Missing,
    Unreadable,
    /// Right, and from a cache.
    Aged,
    /// In so many headers; `right` stands for the right one.
    These(&'static [&'static str]),
}

impl Server {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    fn now(&self, ahead: i64) -> SystemTime {
        let now = self.clock.now();
        let span = ms(ahead.unsigned_abs());
        if ahead < 0 { now - span } else { now + span }
    }

    fn heard(&self) -> Vec<i64> {
        std::mem::take(&mut self.state.lock().unwrap().heard)
    }

    async fn pass(&self, span: Duration) {
        self.clock.advance(span);
        advance(span).await;
    }
}

impl tower::Service<Request<SignedBody<Full<Bytes>>>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<SignedBody<Full<Bytes>>>) -> Self::Future {
        let this = self.clone();
        let signed: i64 = request.headers()[TIME].to_str().unwrap().parse().unwrap();
        Box::pin(async move {
            let (there, back) = this.state.lock().unwrap().trip;
            this.pass(there).await;
            let response = {
                let mut state = this.state.lock().unwrap();
                let now = this.now(state.ahead);
                let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
                let early = signed - i64::try_from(since.as_millis()).unwrap();
                state.heard.push(early);
                let (old, ahead) = state.window;
                let accepted = early < ahead && -early <= old;
                let mut response = Response::builder().status(if accepted { 200 } else { 400 });
                if !accepted {
                    response = response.header("x-error", state.says);
                }
                let date = httpdate(now);
                response = match state.dates {
                    Dates::Right => response.header("date", date),
                    Dates::Missing => response,
                    Dates::Unreadable => response.header("date", "soon"),
                    Dates::Aged => response.header("date", date).header("age", "100"),
                    Dates::These(dates) => dates.iter().fold(response, |response, text| {
                        response.header("date", if *text == "right" { &date } else { *text })
                    }),
                };
                response.body(Full::default()).unwrap()
            };
            this.pass(back).await;
            Ok(response)
        })
    }
}

fn httpdate(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

/// The rule of an API that answers so.
pub(crate) fn classifier() -> HttpClassifier {
    HttpClassifier::builder()
        .head_rule(|seen: Judged<'_>| {
            let error = seen.head.headers.get("x-error")?;
            let reason = match error.as_bytes() {
                b"skew" => Reason::ClockSkew,
                b"nonce" => Reason::InvalidNonce,
                b"unclear" => {
                    return Some(Answer::Unclear {
                        reason: Reason::ClockSkew,
                        after: None,
                        transient: true,
                    });
                }
                _ => return None,
            };
            Some(Answer::Rejected { reason })
        })
        .build()
        .unwrap()
}

struct Client {
    server: Server,
    offset: ClockOffset,
    service: SignService<Server, Stamp>,
}

/// What came of a call: the status, how often it was sent, and the report.
#[derive(Debug, PartialEq)]
struct Came {
    status: u16,
    sent: usize,
    resigned: Option<Resigned>,
    refused: Option<Resigned>,
}

const FINE: Came = Came {
    status: 200,
    sent: 1,
    resigned: None,
    refused: None,
};

const RESIGNED: Came = Came {
    status: 200,
    sent: 2,
    resigned: Some(Resigned::ClockSkew),
    refused: None,
};

const REFUSED: Came = Came {
    status: 400,
    sent: 1,
    resigned: None,
    refused: Some(Resigned::ClockSkew),
};

impl Client {
    fn new(ahead: i64) -> Self {
        Self::with_evidence(ahead, secs(0))
    }

    fn with_evidence(ahead: i64, evidence: Duration) -> Self {
        // Some way into a second, since dates are cut to whole ones.
        let clock = Arc::new(ManualClock::new(at_ms(START + 300)));
        let server = Server {
            clock: Arc::clone(&clock),
            state: Arc::new(Mutex::new(State {
                ahead,
                trip: (ms(40), ms(40)),
                dates: Dates::Right,
                window: (5000, 1000),
                says: "skew",
                heard: Vec::new(),
            })),
        };
        let offset = ClockOffset::new();
        let layer = SignLayer::builder(STAMP)
            .origin("https://venue.test")
            .clock(clock)
            .clock_offset(offset.clone())
            .skew_evidence(evidence)
            .classifier(classifier())
            .build()
            .unwrap();
        let service = layer.layer(server.clone());
        Self {
            server,
            offset,
            service,
        }
    }

    async fn call(&self) -> (Came, Option<SignReport>) {
        self.server.heard();
        let response = self.service.clone().oneshot(order()).await.unwrap();
        let report = SignReport::of(response.extensions());
        let came = Came {
            status: response.status().as_u16(),
            sent: self.server.state.lock().unwrap().heard.len(),
            resigned: report.and_then(SignReport::resigned),
            refused: report.and_then(SignReport::refused),
        };
        (came, report)
    }

    async fn came(&self) -> Came {
        self.call().await.0
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_agree_are_left_alone() {
    let client = Client::new(0);
    for _ in 0..5 {
        assert_eq!(client.came().await, FINE);
        // Nothing is applied: 40 ms on the way.
        assert_eq!(client.server.heard(), [-40]);
        client.server.pass(ms(370)).await;
    }
    assert!(!client.offset.estimate().unwrap().is_significant());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_is_corrected_by_the_refusal_itself() {
    // As far as AWS cares, brokers care, and just beyond the tolerance to either side.
    for ahead in [20 * 60_000, -20 * 60_000, 6_000, 5_000, -2_000, -1_100] {
        let client = Client::new(ahead);
        assert_eq!(client.came().await, RESIGNED, "{ahead}");
        // The second signature uses what the first taught.
        for _ in 0..10 {
            assert_eq!(client.came().await, FINE, "{ahead}");
            let early = client.server.heard()[0];
            assert!((-1200..=0).contains(&early), "{ahead}: {early}");
            client.server.pass(ms(370)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_correction_is_never_early() {
    for ahead in (-9_000..9_000).step_by(170) {
        let client = Client::new(ahead);
        client.server.set(|state| state.window = (60_000, 60_000));
        client.came().await;
        for trip in [(ms(10), ms(500)), (ms(500), ms(10)), (ms(1), ms(1))] {
            client.server.set(|state| state.trip = trip);
            client.came().await;
            let early = client.server.heard()[0];
            let applied = client.offset.estimate().unwrap().is_significant();
            // By no more than the error, which is too small to matter, where nothing is applied.
            assert!(
                if applied { early <= 0 } else { early < 1000 },
                "{ahead}: {early}"
            );
            client.server.pass(ms(130)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_difference_below_its_own_error_is_not_applied() {
    let client = Client::new(400);
    assert_eq!(client.came().await, FINE);
    let estimate = client.offset.estimate().unwrap();
    assert!(!estimate.is_significant(), "{estimate:?}");
    assert_eq!(client.came().await, FINE);
    assert_eq!(client.server.heard(), [-440]);
}

#[tokio::test(start_paused = true)]
async fn a_drift_is_found_when_it_matters() {
    // Measured once at the start, and off by six seconds twenty hours later.
    let client = Client::new(0);
    assert_eq!(client.came().await, FINE);
    client.server.pass(secs(20 * 3600)).await;
    client.server.set(|state| state.ahead = 6_000);
    assert_eq!(client.came().await, RESIGNED);
    assert_eq!(client.came().await, FINE);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_repaired_is_believed_at_once() {
    let client = Client::new(600_000);
    assert_eq!(client.came().await, RESIGNED);
    client.server.set(|state| state.ahead = 0);
    assert_eq!(client.came().await, RESIGNED);
    assert_eq!(client.came().await, FINE);
    assert!(client.offset.estimate().unwrap().millis().abs() < 1000);
    // A success teaches as much.
    client.server.set(|state| state.ahead = 3_000);
    assert_eq!(client.came().await, FINE);
    assert!((client.offset.estimate().unwrap().millis() - 3000).abs() < 1000);
    assert_eq!(client.came().await, FINE);
    let early = client.server.heard()[0];
    assert!((-1200..=0).contains(&early), "{early}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_the_date_does_not_explain_is_final() {
    // The credentials are wrong, and the API calls that a wrong time.
    let client = Client::new(0);
    client.server.set(|state| state.window = (-1, -1));
    assert_eq!(client.came().await, REFUSED);
    // Off, but by less than could be the reason.
    let client = Client::with_evidence(180_000, secs(240));
    client.server.set(|state| state.window = (-1, -1));
    assert_eq!(client.came().await, REFUSED);
    // Although nothing was sent again, the offset is known.
    assert!((client.offset.estimate().unwrap().millis() - 180_000).abs() < 1000);
    let client = Client::with_evidence(20 * 60_000, secs(240));
    assert_eq!(client.came().await, RESIGNED);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_date_to_prove_it_is_final() {
    for dates in [Dates::Missing, Dates::Unreadable, Dates::Aged] {
        let client = Client::new(6_000);
        client.server.set(|state| state.dates = dates);
        assert_eq!(client.came().await, REFUSED);
        assert_eq!(client.offset.estimate(), None);
        let (_, report) = client.call().await;
        assert_eq!(
            report.unwrap().to_string(),
            "time refused: nothing was learned of the server's time from this answer"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bad_dates_leave_the_last_good_offset() {
    let client = Client::new(6_000);
    assert_eq!(client.came().await, RESIGNED);
    for dates in [Dates::Missing, Dates::Unreadable, Dates::Aged] {
        client.server.set(|state| state.dates = dates);
        assert_eq!(client.came().await, FINE);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_took_too_long_teaches_nothing() {
    let client = Client::new(6_000);
    client.server.set(|state| {
        state.window = (i64::MAX, 60_000);
        state.trip = (ms(40), secs(15 * 60 + 1));
    });
    assert_eq!(client.came().await, FINE);
    assert_eq!(client.offset.estimate(), None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_refuses_is_asked_twice() {
    let client = Client::new(-1_100);
    client.server.set(|state| state.window = (-1, -1));
    let (came, report) = client.call().await;
    let twice = Came {
        sent: 2,
        resigned: Some(Resigned::ClockSkew),
        ..REFUSED
    };
    assert_eq!(came, twice);
    // The error names what was measured.
    let text = report.unwrap().to_string();
    assert!(
        text.contains("ms ahead") && text.contains("took 80 ms"),
        "{text}"
    );
    let offset = report.unwrap().offset().unwrap();
    assert!(
        (offset.millis() + 1_100).unsigned_abs() <= 540,
        "{offset:?}"
    );
    assert_eq!(offset.error(), ms(540));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_leaves_open_what_was_done_is_not_sent_again() {
    let client = Client::new(6_000);
    client.server.set(|state| state.says = "unclear");
    let came = client.came().await;
    assert_eq!((came.status, came.sent), (400, 1));
}

#[tokio::test(start_paused = true)]
async fn the_body_is_the_same_the_second_time() {
    let client = Client::new(6_000);
    assert_eq!(client.came().await, RESIGNED);
    let heard = client.server.heard();
    assert_eq!(heard[0], -6_040);
    assert!((-1200..=0).contains(&heard[1]));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_by_what_it_was_off_was_repaired() {
    for ahead in [600_000, 6_000] {
        let client = Client::new(ahead);
        assert_eq!(client.came().await, RESIGNED, "{ahead}");
        assert_eq!(client.came().await, FINE, "{ahead}");
        client.server.pass(ms(370)).await;
        // The wall is set right, so the server is no longer ahead of it.
        client.server.clock.advance(ms(ahead.unsigned_abs()));
        client.server.set(|state| state.ahead = 0);
        for _ in 0..3 {
            assert_eq!(client.came().await, FINE, "{ahead}");
            let early = client.server.heard()[0];
            assert!((-1200..=0).contains(&early), "{ahead}: {early}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_asleep_is_off_as_before() {
    let client = Client::new(6_000);
    assert_eq!(client.came().await, RESIGNED);
    // The clock that nobody sets stood still meanwhile.
    client.server.clock.advance(secs(3600));
    assert_eq!(client.came().await, FINE);
}

fn near(offset: &ClockOffset, expected: i64, within: u64) {
    let estimate = offset.estimate().unwrap();
    let wrong = (estimate.millis() - expected).unsigned_abs();
    assert!(
        wrong <= within,
        "{} is not near {expected}",
        estimate.millis()
    );
}
