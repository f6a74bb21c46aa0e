//! What is believed of the dates of a venue, and what is not.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tower_outcome_rate_limit::{Budget, Limit, RateLimitLayer, Ticket};

use crate::support::{exact, ms, secs};

type Body = Full<Bytes>;

/// What the clock of the venue showed when the test began: a full minute.
const BEGIN: Duration = secs(1_700_000_040);

fn order() -> Ticket {
    Ticket::new().class(0)
}

fn minute(requests: u32) -> Budget {
    exact("key")
        .limit(Limit::aligned("requests", requests, secs(60)))
        .build()
        .unwrap()
}

/// A response that took no time, from a clock that is ahead by so much.
fn hear(budget: &Budget, start: Instant, ahead: Duration) {
    let now = Instant::now();
    let shows = BEGIN + start.elapsed() + ahead;
    budget.observe_date(now, now, shows.as_secs());
}

/// How many can go now.
fn rush(budget: &Budget) -> usize {
    let go = || budget.try_acquire(&order()).ok();
    std::iter::from_fn(go)
        .map(tower_outcome_rate_limit::Permit::responded)
        .count()
}

/// One page of a proxy whose clock was ahead ended the minute, and 200 of 100 went in sixteen
/// seconds.
#[tokio::test(start_paused = true)]
async fn one_odd_date_ends_no_window() {
    for known in [0, 1, 2, 3, 10] {
        let (budget, start) = (minute(100), Instant::now());
        for _ in 0..known {
            hear(&budget, start, Duration::ZERO);
            sleep(ms(510)).await;
        }
        assert_eq!(rush(&budget), 100);
        hear(&budget, start, secs(50));
        sleep(secs(10)).await;
        assert_eq!(rush(&budget), 0, "after {known} that were right");
    }
}

/// Every other answer comes from a machine whose clock is wrong.
#[tokio::test(start_paused = true)]
async fn dates_that_contradict_each_other_are_never_believed() {
    let (budget, start) = (minute(100), Instant::now());
    let mut gone = 0;
    while start.elapsed() < secs(59) {
        hear(&budget, start, Duration::ZERO);
        gone += rush(&budget);
        hear(&budget, start, secs(50));
        gone += rush(&budget);
        sleep(ms(190)).await;
    }
    assert_eq!(gone, 100);
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_learned_again_after_an_odd_date() {
    let (budget, start) = (minute(10), Instant::now());
    for _ in 0..3 {
        hear(&budget, start, Duration::ZERO);
    }
    hear(&budget, start, secs(50));
    sleep(secs(40)).await;
    assert_eq!(rush(&budget), 10);
    for _ in 0..3 {
        hear(&budget, start, Duration::ZERO);
    }
    sleep(secs(22)).await;
    assert_eq!(rush(&budget), 10, "not sixty seconds, but with the minute");
}

/// The machine that dates is ahead of the one that counts, or behind it: 108 of 100 in a window.
#[tokio::test(start_paused = true)]
async fn a_front_whose_clock_is_a_little_off_exceeds_no_window() {
    for (ahead, behind) in [(40, 0), (0, 40)] {
        let budget = exact("key")
            .limit(Limit::aligned("requests", 100, secs(10)))
            .build()
            .unwrap();
        let start = Instant::now();
        // What the front shows is never before the beginning.
        let counts = |at: Duration| (at + ms(behind)).as_millis() / 10_000;
        let (mut window, mut count) = (0, 0);
        for _ in 0..6000 {
            let began = start.elapsed();
            if let Ok(permit) = budget.try_acquire(&order()) {
                if counts(began) != window {
                    (window, count) = (counts(began), 0);
                }
                count += 1;
                assert!(
                    count <= 100,
                    "at {began:?}, {ahead} ms ahead, {behind} behind"
                );
                permit.responded();
            }
            hear(&budget, start, ms(ahead));
            sleep(ms(5)).await;
        }
        assert!(window >= 2, "{window}");
    }
}

/// Two machines whose seconds begin 80 ms apart: they must not look like a clock that is set again
/// and again, of which nothing is ever known.
#[tokio::test(start_paused = true)]
async fn fronts_that_differ_a_little_do_not_contradict_each_other() {
    let (budget, start) = (minute(10), Instant::now());
    sleep(secs(20)).await;
    while start.elapsed() < secs(50) {
        hear(&budget, start, Duration::ZERO);
        hear(&budget, start, ms(80));
        sleep(ms(70)).await;
    }
    assert_eq!(rush(&budget), 10);
    sleep(secs(12)).await;
    assert_eq!(rush(&budget), 10, "the minute is over");
}

// === behind a layer ===

/// Sends so many requests, which are answered with such a status at 08:49:37 of the venue plus the
/// time since the beginning.
async fn send(layer: &RateLimitLayer, requests: usize, status: StatusCode, start: Instant) {
    let inner = service_fn(move |_: Request<Body>| async move {
        let at = std::time::SystemTime::UNIX_EPOCH + secs(784_111_777) + start.elapsed();
        let mut response = Response::new(Body::default());
        *response.status_mut() = status;
        let date = httpdate::fmt_http_date(at).parse()?;
        response.headers_mut().insert(header::DATE, date);
        Ok::<_, BoxError>(response)
    });
    for _ in 0..requests {
        let mut request = Request::new(Body::default());
        let highest = tower_outcome_core::Priority::HIGHEST;
        request.extensions_mut().insert(highest);
        layer.layer(inner).oneshot(request).await.unwrap();
    }
}

/// When the next one can go, after six requests.
async fn next_after(layer: &RateLimitLayer, budget: &Budget, status: StatusCode) -> Duration {
    let start = Instant::now();
    send(layer, 6, status, start).await;
    let refused = budget.try_acquire(&order()).unwrap_err();
    refused.retry_after(start).unwrap()
}

/// Whether a budget counts by the venue's clock was asked once, when the layer was built.
#[tokio::test(start_paused = true)]
async fn a_limit_that_becomes_aligned_behind_a_layer_learns_the_clock() {
    let new = |budget| RateLimitLayer::new(budget);
    let built = |budget: Budget| RateLimitLayer::builder(budget).build().unwrap();
    for layer in [new, built] {
        let budget = exact("key")
            .limit(Limit::sliding("weight", 6, secs(60)))
            .build()
            .unwrap();
        let layer = layer(budget.clone());
        budget
            .reconfigure(&Limit::aligned("weight", 6, secs(60)))
            .unwrap();
        let next = next_after(&layer, &budget, StatusCode::OK).await;
        assert!(next >= secs(23) && next <= ms(24_200), "{next:?}");
    }
}

/// A gateway that got nothing from the venue dates its answer itself.
#[tokio::test(start_paused = true)]
async fn the_date_of_a_gateway_that_answers_by_itself_tells_nothing() {
    for status in [StatusCode::BAD_GATEWAY, StatusCode::GATEWAY_TIMEOUT] {
        let budget = minute(6);
        let layer = RateLimitLayer::new(budget.clone());
        assert_eq!(next_after(&layer, &budget, status).await, secs(60));
    }
    let budget = minute(6);
    let layer = RateLimitLayer::new(budget.clone());
    let next = next_after(&layer, &budget, StatusCode::SERVICE_UNAVAILABLE).await;
    assert!(next <= ms(24_200), "{next:?}");
}
