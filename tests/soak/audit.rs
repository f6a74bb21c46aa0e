//! Holding what the calls were told against the venue's ledger.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tower_outcome::Outcome;
use tower_outcome_testkit::{Entry, Received};

use crate::{args::Args, call::Call, tally::Tally};

/// What the comparison found.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Requests that must not be repeated and were applied more than once.
    pub(crate) applied_twice: u64,
    /// Claims that the server did not act, of a call or of one attempt, that the ledger contradicts.
    pub(crate) false_proofs: u64,
    /// Calls that ended without an outcome.
    pub(crate) unclassified: u64,
    /// Complete request bodies that differ from what the caller sent.
    pub(crate) altered: u64,
    /// Calls that were told success although the venue never acted.
    pub(crate) false_successes: u64,
    /// Calls that were told for good that they were not applied, or would not be, although they were.
    pub(crate) false_failures: u64,
    /// Calls that had time and were left unknown all the same.
    pub(crate) left_unknown: u64,
    /// Calls whose caller stopped waiting.
    pub(crate) gave_up: u64,
    /// Calls that ended long after their deadline: half a second, since the machine is busy and a timer
    /// can be no better than its threads.
    pub(crate) overdue: u64,
    /// How long after its deadline the latest call ended.
    pub(crate) latest: Duration,
    /// Requests that the venue saw.
    pub(crate) requests: u64,
    /// Outcomes by the protocol that the call was made over.
    pub(crate) by_protocol: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Outcomes by the fault that the first request of the call met.
    pub(crate) by_fault: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

const OVERDUE: Duration = Duration::from_millis(500);

pub(crate) fn audit(args: &Args, tally: &Tally, entries: Vec<Entry>) -> Audit {
    let mut audit = Audit::default();
    let mut seen: HashMap<String, Vec<Entry>> = HashMap::new();
    for entry in entries {
        audit.requests += 1;
        if let Some(operation) = entry.operation.clone() {
            seen.entry(operation).or_default().push(entry);
        }
    }
    let told = tally.told();
    for number in 0..args.calls {
        let call = Call::random(args.seed, number);
        let operation = Call::operation(number);
        let entries = seen.get(&operation).map_or(&[][..], Vec::as_slice);
        let applied = entries.iter().filter(|entry| entry.applied).count();
        if applied > 1 && !call.is_repeatable() {
            audit.applied_twice += 1;
        }
        let hash = call.body_hash();
        for entry in entries {
            let whole = entry.received == Received::Complete;
            if whole && Some(entry.body_hash) != hash {
                audit.altered += 1;
            }
            let claim = (operation.clone(), attempt(&entry.path));
            if let (true, Some(proof)) = (entry.applied, told.disowned.get(&claim)) {
                eprintln!("soak: false proof: {proof}\n  {call:?}\n  {entries:?}");
                audit.false_proofs += 1;
            }
        }
        let ending = told.endings.get(&number);
        audit.gave_up += u64::from(ending.is_some_and(|ending| ending.gave_up));
        let late = ending.map_or(Duration::ZERO, |ending| ending.late);
        audit.overdue += u64::from(late > OVERDUE);
        audit.latest = audit.latest.max(late);
        let outcome = ending.and_then(|ending| ending.outcome);
        let Some(outcome) = outcome else {
            audit.unclassified += 1;
            continue;
        };
        let claims_not_applied = ending.is_some_and(|ending| ending.proves_not_applied)
            || outcome.is_retryable() && !call.is_repeatable();
        if claims_not_applied && applied > 0 {
            audit.false_proofs += 1;
        }
        if matches!(outcome, Outcome::Permanent { .. }) && applied > 0 && !call.is_repeatable() {
            audit.false_failures += 1;
        }
        audit.left_unknown += u64::from(outcome.is_unknown() && call.deadline.is_none());
        let replayed = entries.iter().any(|entry| entry.replayed);
        if outcome == Outcome::Success && applied == 0 && !replayed {
            audit.false_successes += 1;
        }
        let fault = match entries.first() {
            None => "not seen by the venue".to_owned(),
            Some(Entry { fault: None, .. }) => "none".to_owned(),
            Some(Entry {
                fault: Some(fault), ..
            }) => fault.to_string(),
        };
        *audit
            .by_protocol
            .entry(call.protocol.label())
            .or_default()
            .entry(outcome.label())
            .or_default() += 1;
        *audit
            .by_fault
            .entry(fault)
            .or_default()
            .entry(outcome.label())
            .or_default() += 1;
    }
    audit
}

/// The number of the attempt, which the stack has written into the query.
fn attempt(path: &str) -> u32 {
    path.rsplit_once('=')
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(0)
}
