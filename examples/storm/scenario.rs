//! What is asked and ordered when the market opens, and what the venue makes of it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tower_outcome_testkit as testkit;
use tower_outcome_testkit::{Answer, Ban, Fault, Ledger, Limit, Logins, Plan, Point, Venue};

use crate::{session, signing};

/// A second of market time. Every wait in this program is in market time but one: `Retry-After`
/// counts the whole seconds of the clock on the wall.
pub(crate) const SECOND: Duration = Duration::from_millis(50);

/// A minute of market time, sixty seconds.
pub(crate) const MINUTE: Duration = Duration::from_secs(3);

/// How long everybody waits for the answer to one request.
pub(crate) const PATIENCE: Duration = Duration::from_millis(10 * 50);

/// Enough for one sweep and the orders; not for two sweeps.
pub(crate) const REQUESTS_A_MINUTE: u32 = 200;

const SYMBOLS: usize = 40;
const FEEDS: [&str; 3] = ["price", "candles", "positions"];
/// How many queries a sweep of all symbols takes.
pub(crate) const SWEEP: usize = SYMBOLS * FEEDS.len();
const SWEEPS: usize = 2;
pub(crate) const QUERIES: usize = SWEEPS * SWEEP;
/// Half a minute.
const SWEEP_EVERY: Duration = Duration::from_millis(30 * 50);

pub(crate) const ORDERS: usize = 24;
/// A second and a half.
const ORDER_EVERY: Duration = Duration::from_millis(75);

/// One thing that the program wants from the venue, however many requests it takes.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The header `x-operation-id`, by which the venue's ledger tells calls apart.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// Its row in the picture, among those of its kind; a question's is that of its order.
    pub(crate) row: usize,
    /// When it is due, from the opening of the market.
    pub(crate) due: Duration,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads a feed.
    Query,
    /// Buys something, each time that the venue acts on it.
    Order,
    /// Asks what became of an order.
    Question,
    /// Logs in.
    LogIn,
}

/// Starts a venue with a bad day, the same one for the same seed.
pub(crate) fn venue(seed: u64, logins: Logins) -> Result<Venue, Box<dyn Error>> {
    let book = Mutex::new(HashMap::new());
    let venue = Venue::builder()
        .limit(Limit::sliding(REQUESTS_A_MINUTE, MINUTE))
        // Who is refused as often as it was let in does not listen.
        .ban(Ban::new(REQUESTS_A_MINUTE, MINUTE, 20 * SECOND))
        .latency(Duration::from_millis(3))
        .plan(bad_day(seed))
        .demand(logins)
        .demand(signing::demand()?)
        .answer(move |request| answer(&book, request))
        .start()?;
    Ok(venue)
}

/// Returns everything that the program wants, in no particular order.
pub(crate) fn calls() -> impl Iterator<Item = Call> {
    let sweeps = (0..)
        .take(SWEEPS)
        .flat_map(|sweep| (0..SWEEP).map(move |row| Call::query(sweep, row)));
    let orders = (0..ORDERS)
        .zip(1..)
        .map(|(row, number)| Call::order(row, number));
    sweeps.chain(orders)
}

fn bad_day(seed: u64) -> Plan {
    let close = |at| Fault::Close { at };
    let reset = |at| Fault::Reset { at };
    let stall = |at| Fault::Stall { at };
    Plan::new(seed)
        .rate(0.25)
        // The venue has acted, and the answer is lost, cut off, an error, or does not come.
        .fault(3, close(Point::Applied))
        .fault(2, reset(Point::Applied))
        .fault(2, close(Point::Response))
        .fault(2, Fault::status(500, true))
        .fault(1, Fault::status(503, true))
        .fault(2, stall(Point::Applied))
        .fault(1, stall(Point::Response))
        // The same, one byte at a time: whole after twenty-two seconds.
        .fault(
            1,
            Fault::Drip {
                interval: 2 * SECOND,
            },
        )
        // It has not acted, which from outside looks just the same.
        .fault(1, close(Point::Body))
        .fault(1, stall(Point::Body))
        .fault(2, Fault::status(503, false))
}

/// Keeps the book of orders, and says how often one is in it: `GET /orders/{id}`.
fn answer(book: &Mutex<HashMap<String, u32>>, request: &testkit::Request) -> Answer {
    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(id) = request.path.strip_prefix("/orders/") {
        let times = book.get(id).copied().unwrap_or(0);
        return Answer::json(200, times.to_string());
    }
    if let ("/orders", Some(id)) = (&*request.path, request.header(Ledger::OPERATION_HEADER)) {
        *book.entry(id.to_owned()).or_default() += 1;
    }
    Answer::json(200, r#"{"ok":true}"#)
}

// === impl Call ===

impl Call {
    fn query(sweep: u32, row: usize) -> Self {
        let feed = FEEDS[row / SYMBOLS];
        let symbol = row % SYMBOLS + 1;
        Self {
            id: format!("{feed}-{symbol:02}-{sweep}"),
            kind: Kind::Query,
            row,
            due: sweep * SWEEP_EVERY,
            path: format!("/{feed}/{symbol:02}"),
        }
    }

    fn order(row: usize, number: u32) -> Self {
        Self {
            id: format!("order-{number:02}"),
            kind: Kind::Order,
            row,
            due: number * ORDER_EVERY,
            path: "/orders".to_owned(),
        }
    }

    /// Returns a log-in, whoever needs one.
    pub(crate) fn log_in() -> Self {
        Self {
            id: session::CALL.to_owned(),
            kind: Kind::LogIn,
            row: 0,
            due: Duration::ZERO,
            path: session::PATH.to_owned(),
        }
    }

    /// Returns the question how often this order is in the venue's book.
    pub(crate) fn question(&self) -> Self {
        Self {
            row: self.row,
            due: self.due,
            ..Self::question_about(&self.id)
        }
    }

    /// Returns the question how often an order is in the venue's book, by whoever asks.
    pub(crate) fn question_about(order: &str) -> Self {
        Self {
            id: format!("what-of-{order}"),
            kind: Kind::Question,
            row: 0,
            due: Duration::ZERO,
            path: format!("/orders/{order}"),
        }
    }

    /// Returns the request, the same for every attempt.
    pub(crate) fn request(&self, venue: &Venue) -> Result<Request<Bytes>, http::Error> {
        self.request_to(&venue.url(""))
    }

    /// The same, for a venue at that URL.
    pub(crate) fn request_to(&self, venue: &str) -> Result<Request<Bytes>, http::Error> {
        let url = format!("{}{}", venue.trim_end_matches('/'), self.path);
        let (builder, body) = match self.kind {
            Kind::Query | Kind::Question => (Request::get(url), ""),
            Kind::Order => (Request::post(url), r#"{"side":"buy","quantity":1}"#),
            Kind::LogIn => (Request::post(url), "grant_type=password"),
        };
        builder
            .header(Ledger::OPERATION_HEADER, &self.id)
            .body(Bytes::from(body))
    }
}
