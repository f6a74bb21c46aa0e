//! What the storm did to the orders, counted.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::run::{Fate, Order, Run, Sent};
use crate::scenario::Kind;
use crate::strategy::Belief;

/// One strategy's numbers, under the names that they have in the JSON.
///
/// What was sent and applied is the venue's word; what is unknown is the strategy's; an order is
/// lost where the two contradict each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tally {
    pub(crate) name: &'static str,
    pub(crate) requests: usize,
    /// Requests answered 429.
    pub(crate) rate_limited: usize,
    /// Requests refused because their signature was too old.
    pub(crate) stale: usize,
    /// How often the program logged in.
    pub(crate) log_ins: usize,
    /// How often the venue banned the program.
    pub(crate) banned: usize,
    /// Orders that were applied, however often.
    pub(crate) orders_applied: usize,
    pub(crate) applied_twice: usize,
    /// How often the strategy did not know what became of an order, and asked the venue.
    pub(crate) asked_about: Option<u64>,
    /// Orders that the strategy says it does not know about.
    pub(crate) unknown: usize,
    /// Orders that were applied although the strategy says they were not.
    pub(crate) lost: usize,
    /// When the last of the applied orders was applied for the first time.
    pub(crate) last_order_ms: u64,
    /// The longest time for which an order waited for the limiter, rounded up.
    pub(crate) order_longest_wait_ms: Option<u64>,
    /// How much of what the limiter's guarantee allows arrived at the venue while the sweep waited,
    /// rounded down to tenths.
    pub(crate) limit_used_percent: Option<f64>,
}

/// Added, so that milliseconds are rounded up.
const ALMOST_A_MILLISECOND: Duration = Duration::from_nanos(999_999);

/// What `--json` prints.
#[derive(Serialize)]
struct Results<'a> {
    seed: u64,
    strategies: &'a [Tally],
}

// === impl Tally ===

impl Tally {
    pub(crate) fn of(run: &Run) -> Self {
        // When each order was applied; more than once is once too often.
        let mut applied = BTreeMap::<_, Vec<_>>::new();
        for sent in &run.sent {
            if sent.kind == Kind::Order && sent.applied {
                applied.entry(&sent.call).or_default().push(sent.at);
            }
        }
        let rate_limited = |sent: &&Sent| sent.fate == Fate::RateLimited;
        let stale = |sent: &&Sent| sent.fate == Fate::Stale;
        let unknown = |order: &&Order| order.belief == Belief::Unknown;
        let lost = |(call, order): &(&String, &Order)| {
            order.belief == Belief::Failed && applied.contains_key(call)
        };
        let limits = run.limits;
        Self {
            name: run.strategy,
            requests: run.sent.len(),
            rate_limited: run.sent.iter().filter(rate_limited).count(),
            stale: run.sent.iter().filter(stale).count(),
            log_ins: run.log_ins,
            banned: run.bans,
            orders_applied: applied.len(),
            applied_twice: applied.values().filter(|times| times.len() > 1).count(),
            asked_about: run.asked_about,
            unknown: run.orders.values().filter(unknown).count(),
            lost: run.orders.iter().filter(lost).count(),
            last_order_ms: applied
                .values()
                .filter_map(|times| times.first())
                .max()
                .map_or(0, milliseconds),
            order_longest_wait_ms: limits
                .and_then(|limits| limits.order_longest_wait)
                .map(|wait| milliseconds(&(wait + ALMOST_A_MILLISECOND))),
            limit_used_percent: limits
                .and_then(|limits| limits.used_percent)
                .map(|percent| (percent * 10.0).floor() / 10.0),
        }
    }
}

fn milliseconds(time: &Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the one object that `--json` prints.
pub(crate) fn json(seed: u64, strategies: &[Tally]) -> serde_json::Result<String> {
    serde_json::to_string(&Results { seed, strategies })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn sent(call: &str, at: u64, fate: Fate, applied: bool) -> Sent {
        Sent {
            call: call.to_owned(),
            kind: Kind::Order,
            row: 0,
            due: Duration::ZERO,
            at: Duration::from_millis(at),
            fate,
            applied,
        }
    }

    fn run(belief: Belief, sent: Vec<Sent>) -> Run {
        let order = Order {
            belief,
            asked: None,
        };
        Run {
            strategy: "any",
            orders: BTreeMap::from([("order".to_owned(), order)]),
            sent,
            bans: 0,
            log_ins: 0,
            limits: None,
            asked_about: None,
        }
    }

    #[test]
    fn an_order_applied_three_times_counts_once_as_applied_and_once_as_twice() {
        let tally = Tally::of(&run(
            Belief::Done(Bytes::new()),
            vec![
                sent("order", 1, Fate::Failed, true),
                sent("order", 2, Fate::RateLimited, false),
                sent("order", 3, Fate::Failed, true),
                sent("order", 4, Fate::Answered, true),
            ],
        ));
        assert_eq!((tally.orders_applied, tally.applied_twice), (1, 1));
        assert_eq!((tally.requests, tally.rate_limited), (4, 1));
        assert_eq!((tally.lost, tally.last_order_ms), (0, 1));
    }

    #[test]
    fn an_applied_order_is_lost_if_it_is_believed_to_have_failed() {
        let applied = || vec![sent("order", 1, Fate::Failed, true)];
        assert_eq!(Tally::of(&run(Belief::Failed, applied())).lost, 1);
        assert_eq!(Tally::of(&run(Belief::Unknown, applied())).lost, 0);
        let refused = vec![sent("order", 1, Fate::RateLimited, false)];
        assert_eq!(Tally::of(&run(Belief::Failed, refused)).lost, 0);
    }
}
