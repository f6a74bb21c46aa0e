//! Every exchange that there is a template for, on a bad day.
//!
//! Their windows are half a minute, and a minute is two seconds here: client and venue have the same
//! fast clock.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};
use tower_outcome::{
    Clock, Limit, Nonces, RateBudget, RateLimitLayer, ReplayLayer, SealLayer, SignLayer,
    SystemClock, Template, Verifier, WitnessLayer,
    sign::{SigningTime, Strict, Unit},
};
use tower_outcome_testkit::{Fault, Ledger, Plan, Point, Signature, Signed, Venue};

use super::{CALLS, calls, http, retry, unmarked};

/// How old a signature may be, by the fast clock.
const WINDOW: Duration = Duration::from_secs(30);

/// How fast the clock is: the window is a second long, and the last call waits for more than two.
const SCALE: u32 = 30;

/// A key in base64, for those who want one.
const KEY: &str =
    "kQH5HW/8p1uGOVjbgWA7FunAmGO8lsSUXNsu3eow76sz84Q18fWxnyRzBHCd3pd5nE9qa99HAZtuZuj6F1huXg==";

/// The seed of an Ed25519 key.
const SEED: &str = "xQnTJVeQLmw1/Mg2YimEViSpw/SdJcgNXZ5kQkAXNPU=";

/// A clock that is as fast as the tests want it.
#[derive(Clone, Debug)]
struct Fast {
    start: SystemTime,
    begun: Instant,
}

impl Fast {
    fn new() -> Self {
        Self {
            start: SystemClock::new().now(),
            begun: Instant::now(),
        }
    }

    fn signing_time(&self) -> SigningTime {
        SigningTime::new(self.now()).unwrap()
    }
}

impl Clock for Fast {
    fn now(&self) -> SystemTime {
        self.start + self.begun.elapsed() * SCALE
    }
}

/// An exchange: its template, where orders go, and what its signatures have.
struct Exchange {
    name: &'static str,
    template: Template,
    target: &'static str,
    ages: bool,
    counts: bool,
}

fn exchanges() -> Vec<Exchange> {
    let exchange = |name, template: Result<Template, _>, target| Exchange {
        name,
        template: template.unwrap().with_window(WINDOW).unwrap(),
        target,
        ages: true,
        counts: false,
    };
    let counting = |name, template: Result<Template, _>, target| Exchange {
        name,
        template: template.unwrap(),
        target,
        ages: false,
        counts: true,
    };
    vec![
        exchange(
            "binance",
            Template::binance("key", "secret"),
            "/api/v3/order?side=BUY",
        ),
        exchange(
            "bybit",
            Template::bybit("key", "secret"),
            "/v5/order/create",
        ),
        exchange(
            "okx",
            Template::okx("key", "secret", "pass"),
            "/api/v5/trade/order",
        ),
        exchange(
            "coinbase",
            Template::coinbase_exchange("key", KEY, "pass"),
            "/orders",
        ),
        exchange(
            "bitstamp",
            Template::bitstamp("key", "secret"),
            "/api/v2/buy/btcusd/",
        ),
        exchange(
            "deribit",
            Template::deribit("key", "secret"),
            "/api/v2/private/buy?amount=40",
        ),
        exchange("bitmex", Template::bitmex("key", "secret"), "/api/v1/order"),
        exchange(
            "robinhood",
            Template::robinhood("key", SEED),
            "/api/v1/crypto/trading/orders/",
        ),
        counting(
            "kraken",
            Template::kraken("key", KEY),
            "/0/private/AddOrder",
        ),
        counting(
            "kraken_futures",
            Template::kraken_futures("key", KEY),
            "/derivatives/api/v3/sendorder",
        ),
    ]
}

impl Exchange {
    /// A venue that checks everything that is in the signatures of this exchange, and every fifth
    /// time fails, before or after it has acted.
    fn venue(&self, clock: &Fast) -> Venue {
        let verifier = Verifier::new(self.template.clone())
            .unwrap()
            .tolerance(WINDOW);
        let (seen, ages, counts) = (clock.clone(), self.ages, self.counts);
        let mut demand = Signature::new(move |received: &Request<Bytes>| {
            let verified = verifier.verify(received, seen.now()).ok()?;
            // Some say only when it ends.
            let end = verified.expires().map(SigningTime::since_epoch);
            let time = verified.time().map(SigningTime::since_epoch);
            let time = time.or_else(|| end.map(|end| end.saturating_sub(WINDOW)));
            assert_eq!((time.is_some(), verified.nonce().is_some()), (ages, counts));
            let mut signed = Signed::new();
            if let Some(time) = time {
                signed = signed.time(time);
            }
            if let Some(nonce) = verified.nonce() {
                signed = signed.nonce(nonce.get());
            }
            Some(match verified.token() {
                Some(token) => signed.token(token),
                None => signed,
            })
        });
        if self.ages {
            let clock = clock.clone();
            demand = demand.window(WINDOW, move || clock.signing_time().since_epoch());
        }
        let plan = Plan::new(5)
            .rate(0.2)
            .fault(1, Fault::status(503, false))
            .fault(1, Fault::Close { at: Point::Applied });
        Venue::builder().demand(demand).plan(plan).start().unwrap()
    }

    fn sign(&self, venue: &Venue, clock: &Fast) -> SignLayer<Template> {
        let mut layer = SignLayer::builder(self.template.clone())
            .origin(venue.url(""))
            .clock(Arc::new(clock.clone()));
        if self.counts {
            let nonces = Nonces::builder(Unit::Millis).strict(Strict::UntilAnswered);
            layer = layer.nonces(nonces.build(clock.signing_time()).unwrap());
        }
        layer.build().unwrap()
    }

    fn order(&self, venue: &Venue, call: usize) -> Request<Full<Bytes>> {
        Request::post(venue.url(self.target))
            .header(Ledger::OPERATION_HEADER, call.to_string())
            .header("idempotency-key", call.to_string())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from("pair=XBTUSD&volume=1")))
            .unwrap()
    }
}

/// Lets all calls through in the time of three windows.
fn limit() -> RateLimitLayer {
    let limit = Limit::sliding("requests", 10, Duration::from_millis(400));
    let budget = RateBudget::builder("venue").limit(limit).build().unwrap();
    RateLimitLayer::new(budget)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_signature_of_any_exchange_is_refused() {
    let exchanges = exchanges();
    assert_eq!(exchanges.len(), 10);
    join_all(exchanges.iter().map(async |exchange| {
        let clock = Fast::new();
        let venue = exchange.venue(&clock);
        let client = WitnessLayer::new().layer(SealLayer::new().layer(http()));
        let signed = exchange.sign(&venue, &clock).layer(client);
        let stack = retry().layer(limit().layer(signed));
        let attempts = calls(stack, |call| exchange.order(&venue, call)).await;
        let ledger = venue.ledger();
        let refused = (ledger.answered(400), ledger.answered(401));
        assert_eq!(refused, (0, 0), "{}", exchange.name);
        assert_eq!(ledger.applied_total(), CALLS, "{}", exchange.name);
        assert!(
            attempts as usize > CALLS,
            "{}: some are sent again",
            exchange.name
        );
        let waited = clock.now().duration_since(clock.start).unwrap();
        assert!(
            waited > WINDOW * 2,
            "{}: the limit is longer",
            exchange.name
        );
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn above_the_limiter_every_signature_with_a_time_ages() {
    let exchanges = exchanges();
    let aging = exchanges.iter().filter(|exchange| exchange.ages);
    join_all(aging.map(async |exchange| {
        let clock = Fast::new();
        let venue = exchange.venue(&clock);
        let limited = limit().layer(WitnessLayer::new().layer(http()));
        // Otherwise the stack is refused.
        let limited = limited.map_request(unmarked);
        let stack = retry().layer(exchange.sign(&venue, &clock).layer(limited));
        calls(stack, |call| exchange.order(&venue, call)).await;
        assert!(venue.ledger().answered(401) > 0, "{}", exchange.name);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn above_the_retries_what_is_good_for_once_is_sent_twice() {
    let exchanges = exchanges();
    let once = ["bitstamp", "deribit", "kraken", "kraken_futures"];
    let single = exchanges
        .iter()
        .filter(|exchange| once.contains(&exchange.name));
    join_all(single.map(async |exchange| {
        let clock = Fast::new();
        let venue = exchange.venue(&clock);
        let retried = ReplayLayer::new().layer(retry().layer(WitnessLayer::new().layer(http())));
        // Otherwise the stack is refused.
        let retried = retried.map_request(unmarked);
        let stack = exchange.sign(&venue, &clock).layer(retried);
        calls(stack, |call| exchange.order(&venue, call)).await;
        assert!(venue.ledger().answered(400) > 0, "{}", exchange.name);
    }))
    .await;
}
