//! What the calls were told.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tower_outcome::{BoxError, CallReport, Elapsed, Failure, Outcome, Reason, Witnessed};

use crate::call::Protocol;

/// How a call ended, as its caller saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// `None` for an error that does not say what became of the call.
    pub(crate) outcome: Option<Outcome>,
    /// Whether the caller was told that the server did not act on any attempt.
    pub(crate) proves_not_applied: bool,
    /// Whether the caller stopped waiting.
    pub(crate) gave_up: bool,
    /// How long after its deadline the call ended.
    pub(crate) late: Duration,
}

/// What the calls were told.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Told>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) endings: BTreeMap<u64, Ending>,
    /// The attempts that were told that the server did not act on them, by operation and number, and
    /// the error that said so.
    pub(crate) disowned: HashMap<(String, u32), String>,
    /// How many errors that prove nothing by themselves a witness turned into proofs.
    pub(crate) rescued: BTreeMap<(Protocol, &'static str), u64>,
    /// How many calls ended by which bound.
    pub(crate) struck: BTreeMap<&'static str, u64>,
}

// === impl Ending ===

impl Ending {
    /// The caller stopped waiting after the request was handed down.
    pub(crate) const GAVE_UP: Self = Self {
        outcome: Some(Outcome::Unknown {
            reason: Reason::TimedOut,
        }),
        proves_not_applied: false,
        gave_up: true,
        late: Duration::ZERO,
    };

    pub(crate) fn of_response(outcome: Outcome, report: Option<&CallReport>) -> Self {
        Self {
            outcome: Some(outcome),
            proves_not_applied: report.is_some_and(|report| report.delivery().proves_not_applied()),
            gave_up: false,
            late: Duration::ZERO,
        }
    }

    pub(crate) fn of_error(error: &BoxError) -> Self {
        let failure = Failure::of(&**error);
        if failure.is_none() {
            eprintln!("soak: unclassified: {error:?}");
        }
        Self {
            outcome: failure.map(Failure::outcome),
            proves_not_applied: failure
                .is_some_and(|failure| failure.delivery().proves_not_applied()),
            gave_up: false,
            late: Duration::ZERO,
        }
    }
}

// === impl Tally ===

impl Tally {
    pub(crate) fn note(&self, call: u64, ending: Ending) {
        self.lock().endings.insert(call, ending);
    }

    pub(crate) fn observe(
        &self,
        protocol: Protocol,
        operation: String,
        attempt: u32,
        failure: &Failure,
    ) {
        let mut told = self.lock();
        if failure.delivery().proves_not_applied() {
            told.disowned.insert((operation, attempt), chain(failure));
        }
        if let Some(witness @ (Witnessed::Body | Witnessed::Connection)) = failure.proven_by() {
            *told.rescued.entry((protocol, witness.label())).or_default() += 1;
        }
    }

    /// Notes the bound that ended a call, if one did.
    pub(crate) fn observe_end(&self, error: &BoxError) {
        if let Some(elapsed) = Elapsed::of(&**error) {
            let bound = elapsed.bound().label();
            *self.lock().struck.entry(bound).or_default() += 1;
        }
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, Told> {
        self.lock()
    }

    pub(crate) fn copy(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every error of the chain, as `Debug` prints it.
fn chain(failure: &Failure) -> String {
    let mut text = format!("{:?}: {failure}", failure.proven_by());
    let mut next = failure.source();
    while let Some(error) = next {
        // Writing to a string cannot fail.
        let _ = write!(text, " <- {error:?}");
        next = error.source();
    }
    text
}
