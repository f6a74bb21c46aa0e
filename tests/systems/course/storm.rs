//! What the opening of the market does to the bot, and what a sweep does to orders.

use futures_util::future::join_all;
use tokio::time::sleep;

use super::*;

const SYMBOLS: u32 = 40;

fn query(venue: &Venue, feed: &str, symbol: u32) -> Call {
    let mut call = request(Method::GET, venue, &format!("/{feed}/{symbol}"));
    call.extensions_mut().insert(Deadline::after(5 * MINUTE));
    call
}

/// A quote and a chart of each of 40 symbols, and an order for it: 120 requests in one second.
fn opening(venue: &Venue) -> Vec<Call> {
    let each = |symbol| {
        [
            query(venue, "quotes", symbol),
            query(venue, "charts", symbol),
            order(venue, Signal::of(symbol, MINUTE)),
        ]
    };
    (0..SYMBOLS).flat_map(each).collect()
}

/// The venue counts on its own clock, and a minute of it is less than a second. A sweep went before, so
/// that the minute is too short for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_storm_of_9_30_completes_without_a_429() {
    const MINUTE: Duration = Duration::from_millis(600);
    let limit = testkit::Limit::sliding(200, MINUTE);
    let venue = Venue::builder().limit(limit).start().unwrap();
    let setup = Setup {
        minute: MINUTE,
        ..Setup::default()
    };
    let course = course(&Wire::to(&venue), &venue, setup);
    let sweep = (0..100).map(|symbol| query(&venue, "quotes", symbol));
    let storm = opening(&venue);
    assert_eq!(storm.len(), 120);
    let calls = sweep.chain(storm).map(|call| course.client.send(call));
    for result in join_all(calls).await {
        assert_eq!(result.unwrap().status(), 200);
    }
    let ledger = venue.ledger();
    assert_eq!(ledger.answered(429), 0);
    assert_eq!(ledger.applied_total(), 220);
    assert_eq!(ledger.len(), 220, "and nothing was sent twice");
}

/// Two sweeps of a hundred symbols, which are more than a minute has room for, and orders all the time.
#[tokio::test(start_paused = true)]
async fn a_sweep_of_a_hundred_symbols_never_delays_an_order() {
    let venue = Venue::start().unwrap();
    let wire = Wire::to(&venue);
    let course = course(&wire, &venue, Setup::default());
    let swept = ["quotes", "charts"].map(|feed| {
        let sweep = (0..100).map(|symbol| course.client.send(query(&venue, feed, symbol)));
        tokio::spawn(join_all(sweep))
    });
    for symbol in 0..SYMBOLS {
        // All of it has gone that can go.
        sleep(millis(100)).await;
        let signal = Signal::of(symbol, secs(1));
        let (result, _) = make(&course.client, order(&venue, signal)).await;
        assert_eq!(result.unwrap().status(), 200);
    }
    let of_sweep = course.budget.snapshot().class("sweep").unwrap().queued;
    assert_eq!(of_sweep, 60, "the sweep waits for the next minute");
    for sweep in swept {
        assert!(sweep.await.unwrap().iter().all(Result::is_ok));
    }
    assert_eq!(course.waits.of("order"), [Duration::ZERO; 40]);
    let waits = course.waits.of("sweep");
    assert_eq!(waits.len(), 200);
    assert!(waits[140..].iter().all(|wait| *wait >= secs(50)));
}
