//! The transport of a client for Robinhood Crypto: signed requests, and a retry of reads alone.

use std::{sync::Arc, time::SystemTime};

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use tower::Layer;
use tower_outcome::{
    self as outcome, Backoff, Class, Clock, HintPolicy, Hints, HttpClassifier, Jitter, Judged,
    Limit, ManualClock, NotRetried, Outcome, RateBudget, RateLimitLayer, Reason, RetryBudget,
    RetryLayer, SealLayer, SignLayer, SystemClock, Template, Verifier, sign::SigningTime,
};
use tower_outcome_testkit::{Answer, Fault, Point, Signature, Signed, Venue};

use super::*;

const KEY_ID: &str = "rh-api-key";
/// The seed of an Ed25519 key, in base64.
const SEED: &str = "xQnTJVeQLmw1/Mg2YimEViSpw/SdJcgNXZ5kQkAXNPU=";

/// The design.
fn robinhood<C>(wire: &Wire<C>, venue: &Venue, clock: Arc<dyn Clock>) -> Client
where
    C: Clone,
    WitnessConnector<ConnectTimeout<C>>: Connect + Clone + Send + Sync + 'static,
{
    let transient = [429, 500, 502, 503, 504].map(|code| StatusCode::from_u16(code).unwrap());
    let classifier = HttpClassifier::builder()
        .transient(transient)
        // Too early is a refusal as any other: it is not listed.
        .head_rule(|seen: Judged<'_>| {
            let reason = Reason::Rejected;
            let is_it = seen.head.status == StatusCode::TOO_EARLY;
            is_it.then_some(outcome::Answer::Rejected { reason })
        });
    let hints = Hints::new()
        .policy(HintPolicy::Replace)
        .clamp(secs(8))
        .dates(false);
    let retry = RetryLayer::builder()
        .max_attempts(4)
        .backoff(backoff())
        .hints(hints)
        .resend_if(|head| head.method == Method::GET)
        .budget(RetryBudget::unlimited());
    // One class: nobody leaves anything to anybody.
    let budget = RateBudget::builder("robinhood")
        .class(Class::new("all"))
        .limit(Limit::token_bucket("requests", 100, secs(60)).burst(300));
    // A refusal is between its own call and the venue, as there.
    let limit = RateLimitLayer::builder(budget.build().unwrap()).closes_gate(false);
    let sign = SignLayer::builder(Template::robinhood(KEY_ID, SEED).unwrap())
        .origin(venue.url(""))
        .clock(clock);
    let outbound = Outbound::builder()
        .classifier(classifier.build().unwrap())
        .retry(retry)
        .rate_limit(limit)
        .sign(sign)
        .build()
        .unwrap();
    outbound.boxed(SealLayer::new().layer(wire.client(&outbound)))
}

fn backoff() -> Backoff {
    Backoff::new()
        .base(millis(500))
        .throttled_base(millis(500))
        .cap(secs(8))
        .jitter(Jitter::None)
}

/// Takes no request without a signature of the last 30 seconds.
fn signature(clock: &Arc<ManualClock>) -> Signature {
    const WINDOW: Duration = Duration::from_secs(30);
    let verifier = Verifier::new(Template::robinhood(KEY_ID, SEED).unwrap()).unwrap();
    let (verifying, telling) = (Arc::clone(clock), Arc::clone(clock));
    let verify = move |received: &Request<Bytes>| {
        let verified = verifier.verify(received, verifying.now()).ok()?;
        Some(Signed::new().time(verified.time()?.since_epoch()))
    };
    Signature::new(verify).window(WINDOW, move || {
        SigningTime::new(telling.now()).unwrap().since_epoch()
    })
}

/// A venue that refuses the first requests with these, and a client of it.
fn venue(refusals: impl IntoIterator<Item = Answer>) -> (Venue, Wire, Client) {
    let clock = Arc::new(ManualClock::new(SystemClock::new().now()));
    let venue = Venue::builder().demand(signature(&clock));
    let venue = venue.demand(refuses(refusals)).start().unwrap();
    let wire = Wire::to(&venue);
    let client = robinhood(&wire, &venue, clock);
    (venue, wire, client)
}

#[tokio::test(start_paused = true)]
async fn a_get_is_sent_up_to_four_times_on_429_500_502_503_and_504() {
    for code in [429, 500, 502, 503, 504] {
        let (venue, wire, client) = venue(always(Answer::status(code)));
        make(&client, get(&venue)).await.0.unwrap();
        assert_eq!(wire.departures().len(), 4, "{code}");
        assert_eq!(venue.ledger().answered(code), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_is_sent_no_more_once_it_is_answered() {
    let (venue, wire, client) = venue([Answer::status(503), Answer::status(429)]);
    let (result, _) = make(&client, get(&venue)).await;
    assert_eq!(result.unwrap().status(), 200);
    assert_eq!(wire.departures().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn waits_begin_with_half_a_second_and_double_without_jitter() {
    for code in [429, 503] {
        let (venue, wire, client) = venue(always(Answer::status(code)));
        make(&client, get(&venue)).await.0.unwrap();
        assert_eq!(wire.gaps(), [500, 1000, 2000].map(millis), "{code}");
    }
}

/// Four attempts do not come to it.
#[test]
fn waits_are_capped_at_eight_seconds() {
    let waits = (0..7).map(|failures| {
        let reason = Reason::ServerError;
        backoff().delay(failures, reason, &Always::MOST)
    });
    let expected = [500, 1000, 2000, 4000, 8000, 8000, 8000].map(millis);
    assert!(waits.eq(expected));
}

#[tokio::test(start_paused = true)]
async fn a_404_a_401_and_whatever_is_not_listed_is_not_retried() {
    for code in [404, 401, 400, 403, 408, 409, 422, 425, 501, 505] {
        let (venue, wire, client) = venue(always(Answer::status(code)));
        let (result, report) = make(&client, get(&venue)).await;
        assert_eq!(result.unwrap().status(), code);
        assert_eq!(wire.departures().len(), 1, "{code}");
        assert!(report.unwrap().outcome().is_permanent());
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_is_never_retried_even_on_429_one_call_and_zero_sleeps() {
    for code in [429, 500, 502, 503, 504] {
        let refusal = Answer::status(code).header("retry-after", "1");
        let (venue, wire, client) = venue(always(refusal));
        let (result, report) = make(&client, post(&venue)).await;
        assert_eq!(result.unwrap().status(), code);
        assert_eq!(wire.departures(), [Duration::ZERO], "{code}");
        assert_eq!(wire.start.elapsed(), Duration::ZERO);
        assert_eq!(report.unwrap().waited(), Duration::ZERO);
    }
}

/// Not even where it is proven that it did not arrive.
#[tokio::test(start_paused = true)]
async fn a_post_whose_connection_fails_is_not_retried_either() {
    let close = |at| Fault::Close { at };
    for fault in [close(Point::Head), close(Point::Applied)] {
        let (venue, wire, client) = venue([]);
        let (result, report) = make(&client, failing(&fault, post(&venue))).await;
        assert!(result.is_err());
        assert!(report.unwrap().outcome().is_unknown());
        assert_eq!(wire.departures(), [Duration::ZERO]);
        assert_eq!(wire.start.elapsed(), Duration::ZERO);
    }
    let (venue, wire, client) = venue([]);
    let order = post(&venue);
    drop(venue);
    let (result, report) = make(&client, order).await;
    assert!(result.is_err());
    assert!(report.unwrap().outcome().is_retryable(), "it may be");
    assert_eq!(wire.departures(), [Duration::ZERO]);
    assert_eq!(wire.start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_in_seconds_wins_over_the_backoff() {
    let asks = |seconds| Answer::status(429).header("retry-after", seconds);
    let (venue, wire, client) = venue([asks("3"), asks("0"), asks("5")]);
    make(&client, get(&venue)).await.0.unwrap();
    assert_eq!(wire.gaps(), [3, 0, 5].map(secs));
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_clamped_to_eight_seconds() {
    let asks = |seconds| Answer::status(503).header("retry-after", seconds);
    let (venue, wire, client) = venue([asks("9"), asks("3600"), asks("99999999999")]);
    make(&client, get(&venue)).await.0.unwrap();
    assert_eq!(wire.gaps(), [8, 8, 8].map(secs));
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_in_the_form_of_a_date_is_ignored() {
    let refusal = Answer::status(503)
        .header("date", "Fri, 07 Nov 2025 09:30:00 GMT")
        .header("retry-after", "Fri, 07 Nov 2025 09:30:04 GMT");
    let (venue, wire, client) = venue([refusal]);
    make(&client, get(&venue)).await.0.unwrap();
    assert_eq!(wire.gaps(), [millis(500)]);
}

#[tokio::test(start_paused = true)]
async fn a_retryable_status_that_survives_every_attempt_stays_visible() {
    let refusal = Answer::json(503, r#"{"type":"server_error"}"#).header("x-trace", "7");
    let (venue, _, client) = venue(always(refusal));
    let (result, report) = make(&client, get(&venue)).await;
    let (head, body) = result.unwrap().into_parts();
    assert_eq!(head.status, 503);
    assert_eq!(head.headers["x-trace"], "7");
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"type":"server_error"}"#);
    let report = report.unwrap();
    assert!(matches!(
        report.outcome(),
        Outcome::Retryable {
            reason: Reason::Overloaded,
            ..
        }
    ));
    assert_eq!(report.attempts(), 4);
    assert!(matches!(report.not_retried(), Some(NotRetried::Exhausted)));
}

/// The clock goes on by 40 seconds between two attempts, and the venue takes nothing that is older
/// than 30.
#[tokio::test(start_paused = true)]
async fn each_attempt_is_signed_with_ed25519_within_the_loop_for_thirty_seconds() {
    let clock = Arc::new(ManualClock::new(SystemTime::UNIX_EPOCH + secs(1 << 30)));
    let (mut refuses, going_on) = (refuses(always(Answer::status(503))), Arc::clone(&clock));
    let busy = move |request: &testkit::Request| {
        going_on.advance(secs(40));
        refuses(request)
    };
    let venue = Venue::builder().demand(signature(&clock)).demand(busy);
    let venue = venue.start().unwrap();
    let wire = Wire::to(&venue);
    let client = robinhood(&wire, &venue, clock);
    make(&client, get(&venue)).await.0.unwrap();
    let ledger = venue.ledger();
    assert_eq!((ledger.answered(401), ledger.answered(400)), (0, 0));
    assert_eq!(ledger.answered(503), 4);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_requests_a_minute_go_after_a_burst_of_three_hundred() {
    let venue = Venue::start().unwrap();
    let wire = Wire::to(&venue);
    let client = robinhood(&wire, &venue, Arc::new(SystemClock::new()));
    for _ in 0..303 {
        make(&client, get(&venue)).await.0.unwrap();
    }
    let departures = wire.departures();
    assert_eq!(departures[299], Duration::ZERO);
    for gap in &wire.gaps()[299..] {
        // As slow a clock as is in order is made up for.
        assert!((millis(600)..=millis(602)).contains(gap), "{gap:?}");
    }
}
