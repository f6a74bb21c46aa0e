//! One strategy's way through the storm.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tower_outcome_testkit::{Entry, Fault, Venue};

use crate::progress::Progress;
use crate::scenario::{self, Call, Kind};
use crate::session;
use crate::strategy::{Belief, Strategy};

/// What a strategy believes, and what the venue's ledger says.
pub(crate) struct Run {
    pub(crate) strategy: &'static str,
    /// By call.
    pub(crate) orders: BTreeMap<String, Order>,
    /// Every request, in order of arrival.
    pub(crate) sent: Vec<Sent>,
    /// How often the venue banned the program.
    pub(crate) bans: usize,
    /// How often the program logged in.
    pub(crate) log_ins: usize,
    /// Of strategies that have a limiter.
    pub(crate) limits: Option<Limits>,
    /// About how many orders the strategy has asked the venue by itself, if it does.
    pub(crate) asked_about: Option<u64>,
}

/// What a limiter did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) order_longest_wait: Option<Duration>,
    /// How much of what the guarantee allows the sweep arrived while it waited.
    pub(crate) used_percent: Option<f64>,
}

/// What the program knows of an order.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) belief: Belief,
    /// How often it is in the venue's book, if the program knew that it had to ask.
    pub(crate) asked: Option<u32>,
}

/// One request on the wire, as the venue saw it.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) call: String,
    pub(crate) kind: Kind,
    pub(crate) row: usize,
    /// When its call was due, since the market opened.
    pub(crate) due: Duration,
    /// Since the market opened.
    pub(crate) at: Duration,
    pub(crate) fate: Fate,
    /// Whether the venue acted on it.
    pub(crate) applied: bool,
}

/// What the program got to see of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// 429.
    RateLimited,
    /// 418.
    Banned,
    /// 401: its session was over.
    LoggedOut,
    /// 400: its signature was too old.
    Stale,
    /// A server error, or no whole answer in time.
    Failed,
}

// === impl Run ===

impl Run {
    /// Opens a market of its own for the strategy, and waits until everything is over.
    pub(crate) async fn of<S: Strategy>(
        strategy: impl FnOnce(&Venue) -> Result<S, Box<dyn Error>>,
        seed: u64,
    ) -> Result<Self, Box<dyn Error>> {
        let logins = session::logins();
        let venue = scenario::venue(seed, logins.clone())?;
        let opening = Instant::now();
        let strategy = strategy(&venue)?;
        let expiring = logins.clone();
        tokio::spawn(async move {
            sleep_until(opening + session::DIES).await;
            expiring.expire_all();
        });
        let mut progress = Progress::start(S::NAME, opening);
        let log_in = Call::log_in();
        let mut calls = HashMap::from([(log_in.id.clone(), log_in)]);
        let mut under_way = JoinSet::new();
        for call in scenario::calls() {
            let request = call.request(&venue)?;
            let strategy = strategy.clone();
            let (id, due) = (call.id.clone(), opening + call.due);
            under_way.spawn(async move {
                sleep_until(due).await;
                (id, strategy.send(request).await)
            });
            if call.kind == Kind::Order {
                let question = call.question();
                calls.insert(question.id.clone(), question);
            }
            calls.insert(call.id.clone(), call);
        }

        let mut orders = BTreeMap::new();
        let mut done = HashSet::new();
        while let Some(over) = under_way.join_next().await {
            let (id, belief) = over?;
            let kind = calls[&id].kind;
            progress.note(kind, &belief);
            if matches!(belief, Belief::Done(_)) {
                done.insert(id.clone());
            }
            if kind == Kind::Order {
                let asked = None;
                orders.insert(id, Order { belief, asked });
            }
        }

        // What nobody here can know, the venue can.
        for (id, order) in &mut orders {
            if order.belief == Belief::Unknown {
                let question = calls[id].question();
                if let Belief::Done(answer) = strategy.send(question.request(&venue)?).await {
                    order.asked = Some(String::from_utf8_lossy(&answer).parse()?);
                    done.insert(question.id);
                }
            }
        }
        progress.finish();

        let ledger = venue.ledger();
        ledger.settled().await;
        // Backwards: the last request of a call that is done is the one that was answered.
        let entries = ledger.entries().into_iter().rev();
        let mut sent: Vec<_> = entries
            .filter_map(|entry| Sent::of(entry, &calls, &mut done))
            .collect();
        sent.reverse();
        let limits = strategy.limiter().map(|limiter| Limits {
            order_longest_wait: limiter.watch.longest_wait("order"),
            used_percent: limiter.used_percent(opening, &sent),
        });
        Ok(Self {
            strategy: S::NAME,
            orders,
            sent,
            bans: ledger.bans(None),
            log_ins: logins.logins(),
            limits,
            asked_about: strategy.asked_about(),
        })
    }
}

// === impl Sent ===

impl Sent {
    fn of(entry: Entry, calls: &HashMap<String, Call>, done: &mut HashSet<String>) -> Option<Self> {
        let call = calls.get(entry.operation.as_deref()?)?;
        let heard_out = done.remove(&call.id);
        let cut_off = match entry.fault {
            Some(Fault::Close { .. } | Fault::Reset { .. } | Fault::Stall { .. }) => true,
            Some(Fault::Drip { .. }) => !heard_out,
            _ => false,
        };
        Some(Self {
            call: call.id.clone(),
            kind: call.kind,
            row: call.row,
            due: call.due,
            at: entry.at,
            fate: match entry.answered {
                Some(429) => Fate::RateLimited,
                Some(418) => Fate::Banned,
                Some(401) => Fate::LoggedOut,
                Some(400) => Fate::Stale,
                Some(200) if !cut_off => Fate::Answered,
                _ => Fate::Failed,
            },
            applied: entry.applied,
        })
    }
}
