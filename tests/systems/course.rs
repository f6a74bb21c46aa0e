//! The bot of a course: sweeps and orders share one budget, and an order goes first, in time, or not at
//! all.

use http::StatusCode;
use tower_outcome::{
    self as outcome, Backoff, Class, Clock, ClockOffset, Deadline, HttpClassifier, Jitter, Judged,
    Limit, Priority, RateBudget, Reason, RetryBudget, RetryLayer, SignLayer, SystemClock, Template,
    Timeouts,
    rate_limit::{Admitted, Observer},
};

use super::*;

mod documented;
mod storm;

const KEY_ID: &str = "course-key";
const SECRET: &str = "the course's secret";
const MINUTE: Duration = Duration::from_secs(60);
const ORDER_ID: &str = "idempotency-key";

/// The design, and what there is to see of it.
struct Course {
    client: Client,
    budget: RateBudget,
    waits: Arc<Waits>,
}

/// What the bot is used with.
struct Setup {
    minute: Duration,
    jitter: Always,
    clock: Arc<dyn Clock>,
}

/// Why an order is placed, and until when that is a reason.
#[derive(Clone, Copy)]
struct Signal {
    symbol: u32,
    at: &'static str,
    expires: Deadline,
}

/// How long each request waited in the budget, by class.
#[derive(Debug, Default)]
struct Waits(Mutex<Vec<(String, Duration)>>);

fn course<C>(wire: &Wire<C>, venue: &Venue, setup: Setup) -> Course
where
    C: Clone,
    WitnessConnector<ConnectTimeout<C>>: Connect + Clone + Send + Sync + 'static,
{
    let transient = [408, 425, 429, 500, 502, 503, 504];
    let classifier = HttpClassifier::builder()
        .transient(transient.map(|code| StatusCode::from_u16(code).unwrap()))
        .idempotency_key_header(ORDER_ID.parse().unwrap())
        .head_rule(|seen: Judged<'_>| {
            // It may be the clock; the answer's date says whether it is.
            let reason = Reason::ClockSkew;
            let is_it = seen.head.status == StatusCode::UNAUTHORIZED;
            is_it.then_some(outcome::Answer::Rejected { reason })
        })
        .body_rule(rejected)
        .build()
        .unwrap();
    let retry = RetryLayer::builder()
        .max_attempts(5)
        .backoff(backoff())
        .resend_if(|head| head.method.is_idempotent() || head.headers.contains_key(ORDER_ID))
        .budget(RetryBudget::unlimited())
        .random(Arc::new(setup.jitter));
    let waits = Arc::<Waits>::default();
    let budget = RateBudget::builder("course")
        .limit(Limit::sliding("requests", 200, setup.minute))
        // Of 200 the sweep leaves 60 to orders.
        .class(Class::new("order"))
        .class(Class::new("sweep").leave_percent(30))
        // A sweep may take its time.
        .max_wait(5 * MINUTE)
        .observer(waits.clone())
        .build()
        .unwrap();
    let sign = SignLayer::builder(template())
        .origin(venue.url(""))
        .clock_offset(ClockOffset::new())
        .clock(setup.clock);
    let outbound = Outbound::builder()
        .classifier(classifier)
        .timeouts(timeouts())
        .retry(retry)
        .rate_limit(budget.clone())
        .sign(sign)
        .build()
        .unwrap();
    Course {
        client: outbound.boxed(wire.client(&outbound)),
        budget,
        waits,
    }
}

fn timeouts() -> Timeouts {
    Timeouts::builder()
        .call(MINUTE)
        .attempt(None)
        .connect(millis(3050))
        .head(secs(15))
        .read_idle(secs(15))
        .build()
        .unwrap()
}

fn backoff() -> Backoff {
    Backoff::new()
        .base(millis(500))
        .throttled_base(millis(500))
        .cap(secs(30))
        .jitter(Jitter::Full)
}

fn template() -> Template {
    Template::bybit(KEY_ID, SECRET).unwrap()
}

/// The API accepts a request with 200 and then says that it has refused it.
fn rejected(seen: Judged<'_>) -> Option<outcome::Answer> {
    let document: serde_json::Value = serde_json::from_slice(seen.body).ok()?;
    let is_rejected = seen.head.status.is_success() && document["status"] == "rejected";
    let reason = Reason::Rejected;
    is_rejected.then_some(outcome::Answer::Rejected { reason })
}

/// The order of a signal: the same id whenever and however often it is placed.
fn order(venue: &Venue, signal: Signal) -> Call {
    let Signal {
        symbol,
        at,
        expires,
    } = signal;
    let mut order = post(venue);
    let id = format!("{symbol}-{at}-buy").parse().unwrap();
    order.headers_mut().insert(ORDER_ID, id);
    order.extensions_mut().insert(expires);
    order.extensions_mut().insert(Priority::HIGHEST);
    order
}

// === impl Setup ===

impl Default for Setup {
    fn default() -> Self {
        Self {
            minute: MINUTE,
            jitter: Always::MOST,
            clock: Arc::new(SystemClock::new()),
        }
    }
}

// === impl Signal ===

impl Signal {
    /// That of a symbol when the market opens, good for so long from now.
    fn of(symbol: u32, good_for: Duration) -> Self {
        Self {
            symbol,
            at: "0930",
            expires: Deadline::after(good_for),
        }
    }
}

// === impl Waits ===

impl Waits {
    fn of(&self, class: &str) -> Vec<Duration> {
        let waits = self.0.lock().unwrap();
        let of_class = waits.iter().filter(|(name, _)| name == class);
        of_class.map(|(_, waited)| *waited).collect()
    }
}

impl Observer for Waits {
    fn admitted(&self, event: &Admitted<'_>) {
        let admitted = (event.class.to_owned(), event.waited);
        self.0.lock().unwrap().push(admitted);
    }
}
