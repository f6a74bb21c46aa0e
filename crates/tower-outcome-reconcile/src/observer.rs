//! What the layer tells those who watch it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tower_outcome_core::Reason;

use crate::{How, OperationId, Reconciled};

/// Watches a layer, for metrics and logs.
///
/// Each method does nothing by default. They are called outside of all locks, in the task of the call,
/// and should not take long. Two observers make one as a pair.
pub trait Observer: Send + Sync {
    /// The outcome of an attempt is unknown, and the server is going to be asked.
    fn unknown(&self, event: &Unknown<'_>) {
        let _ = event;
    }

    /// It is known now.
    fn resolved(&self, event: &Resolved<'_>) {
        let _ = event;
    }

    /// It stays unknown.
    fn unresolved(&self, event: &Unresolved<'_>) {
        let _ = event;
    }

    /// Somebody has told what became of a call that nobody had to ask about: before its attempt was sent or
    /// while it was under way, or before it was sent again.
    fn told(&self, event: &Told<'_>) {
        let _ = event;
    }
}

/// The outcome of an attempt is unknown, and the server is going to be asked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unknown<'a> {
    /// The name of the operation.
    pub id: &'a OperationId,
    /// Why the outcome is unknown.
    pub reason: Reason,
}

/// It is known now what became of a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Resolved<'a> {
    /// The name of the operation.
    pub id: &'a OperationId,
    /// Why its outcome was unknown.
    pub reason: Reason,
    /// How it became known.
    pub how: How,
    /// How often the server was asked.
    pub inquiries: u32,
    /// How long it took.
    pub took: Duration,
}

/// It stays unknown what became of a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unresolved<'a> {
    /// The name of the operation.
    pub id: &'a OperationId,
    /// Why its outcome is unknown.
    pub reason: Reason,
    /// Why asking ended.
    pub why: Ended,
    /// How often the server was asked.
    pub inquiries: u32,
    /// How long it took.
    pub took: Duration,
}

/// Somebody has told what became of a call, whose outcome was not unknown at the time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Told<'a> {
    /// The name of the operation.
    pub id: &'a OperationId,
    /// What was told.
    pub how: How,
}

/// Why asking ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ended {
    /// Time ran out.
    TimedOut,
    /// The call was dropped.
    Dropped,
}

/// Counts what a layer meets. Clones share the counts.
///
/// ```
/// use tower_outcome_reconcile::{Counts, How};
///
/// let counts = Counts::new();
/// // The layer has a clone.
/// assert_eq!(counts.unknown(), 0);
/// assert_eq!(counts.resolved(How::Found), 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    unknown: AtomicU64,
    resolved: [AtomicU64; HOWS.len()],
    told: [AtomicU64; HOWS.len()],
    timed_out: AtomicU64,
    dropped: AtomicU64,
    inquiries: AtomicU64,
}

const HOWS: [How; 7] = [
    How::Found,
    How::Refused,
    How::Denied,
    How::Absent,
    How::ToldApplied,
    How::ToldRejected,
    How::ToldNotApplied,
];

/// Nobody watches.
#[derive(Debug)]
pub(crate) struct Nobody;

/// Tells of a call that was dropped while the server was asked.
pub(crate) struct Watch<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) id: &'a OperationId,
    pub(crate) since: tokio::time::Instant,
    pub(crate) reason: Reason,
    pub(crate) inquiries: u32,
    pub(crate) is_over: bool,
}

// === impl Observer ===

impl Observer for Nobody {}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn unknown(&self, event: &Unknown<'_>) {
        self.0.unknown(event);
        self.1.unknown(event);
    }

    fn resolved(&self, event: &Resolved<'_>) {
        self.0.resolved(event);
        self.1.resolved(event);
    }

    fn unresolved(&self, event: &Unresolved<'_>) {
        self.0.unresolved(event);
        self.1.unresolved(event);
    }

    fn told(&self, event: &Told<'_>) {
        self.0.told(event);
        self.1.told(event);
    }
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

// === impl Ended ===

impl Ended {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Dropped => "dropped",
        }
    }
}

// === impl Counts ===

impl Counts {
    /// Creates counts of zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many attempts ended unknown and were asked about.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.0.unknown.load(Ordering::Relaxed)
    }

    /// Returns how many unknown ones became known in that way.
    #[must_use]
    pub fn resolved(&self, how: How) -> u64 {
        self.0.resolved[how as usize].load(Ordering::Relaxed)
    }

    /// Returns how many unknown ones became known in any way.
    #[must_use]
    pub fn all_resolved(&self) -> u64 {
        HOWS.iter().map(|how| self.resolved(*how)).sum()
    }

    /// Returns how many stayed unknown for that reason.
    #[must_use]
    pub fn unresolved(&self, why: Ended) -> u64 {
        self.ended(why).load(Ordering::Relaxed)
    }

    /// Returns how many calls ended with what somebody told and were never unknown, in that way.
    #[must_use]
    pub fn told(&self, how: How) -> u64 {
        self.0.told[how as usize].load(Ordering::Relaxed)
    }

    /// Returns how often the server was asked, for all that ended.
    #[must_use]
    pub fn inquiries(&self) -> u64 {
        self.0.inquiries.load(Ordering::Relaxed)
    }

    fn ended(&self, why: Ended) -> &AtomicU64 {
        match why {
            Ended::TimedOut => &self.0.timed_out,
            Ended::Dropped => &self.0.dropped,
        }
    }
}

impl Observer for Counts {
    fn unknown(&self, _: &Unknown<'_>) {
        self.0.unknown.fetch_add(1, Ordering::Relaxed);
    }

    fn resolved(&self, event: &Resolved<'_>) {
        let inquiries = u64::from(event.inquiries);
        self.0.inquiries.fetch_add(inquiries, Ordering::Relaxed);
        self.0.resolved[event.how as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn unresolved(&self, event: &Unresolved<'_>) {
        let inquiries = u64::from(event.inquiries);
        self.0.inquiries.fetch_add(inquiries, Ordering::Relaxed);
        self.ended(event.why).fetch_add(1, Ordering::Relaxed);
    }

    fn told(&self, event: &Told<'_>) {
        self.0.told[event.how as usize].fetch_add(1, Ordering::Relaxed);
    }
}

// === impl Watch ===

impl Watch<'_> {
    /// Tells what came of it.
    pub(crate) fn end(&mut self, report: &Reconciled) {
        self.is_over = true;
        match report.how {
            Some(how) => self.observer.resolved(&Resolved {
                id: self.id,
                reason: self.reason,
                how,
                inquiries: report.inquiries,
                took: report.took,
            }),
            None => self.tell_unresolved(Ended::TimedOut),
        }
    }

    fn tell_unresolved(&self, why: Ended) {
        self.observer.unresolved(&Unresolved {
            id: self.id,
            reason: self.reason,
            why,
            inquiries: self.inquiries,
            took: self.since.elapsed(),
        });
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.tell_unresolved(Ended::Dropped);
        }
    }
}
