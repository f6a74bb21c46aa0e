//! What became of the calls to one upstream, in numbers.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};
use tower_outcome::Outcome;

/// Counts calls. Shared by those that are under way and by the page that shows them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    answered: ByOutcome,
    abandoned: ByOutcome,
    /// Calls whose caller waits for an answer, or for the end of its body.
    open: AtomicU64,
    cut_short: AtomicU64,
}

#[derive(Debug, Default)]
struct ByOutcome {
    success: AtomicU64,
    retryable: AtomicU64,
    permanent: AtomicU64,
    unknown: AtomicU64,
}

/// One call under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Arc<Counters>);

// === impl Counters ===

impl Counters {
    /// Counts a call that begins.
    pub(crate) fn begin(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// Returns how many calls are under way.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Counts a call whose caller was told.
    pub(crate) fn answered(&self, outcome: &Outcome) {
        self.answered.count(outcome);
    }

    /// Counts a call whose caller went away.
    pub(crate) fn abandoned(&self, outcome: &Outcome) {
        self.abandoned.count(outcome);
    }

    /// Counts an answer whose body failed on its way.
    pub(crate) fn cut_short(&self) {
        self.cut_short.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns all as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "answered": self.answered.json(),
            "abandoned": self.abandoned.json(),
            "open": self.open(),
            "cut_short": self.cut_short.load(Ordering::Relaxed),
        })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl ByOutcome ===

impl ByOutcome {
    fn count(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Success => &self.success,
            Outcome::Retryable { .. } => &self.retryable,
            Outcome::Permanent { .. } => &self.permanent,
            Outcome::Unknown { .. } => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn json(&self) -> Value {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "success": read(&self.success),
            "retryable": read(&self.retryable),
            "permanent": read(&self.permanent),
            "unknown": read(&self.unknown),
        })
    }
}
