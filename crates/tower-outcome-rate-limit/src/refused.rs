//! Why a request was not let through.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

/// Says that a budget did not let a request through. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    budget: Arc<str>,
    class: Arc<str>,
    kind: RefusedKind,
    retry_at: Option<Instant>,
}

/// Why a budget did not let a request through.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedKind {
    /// It does not fit now, and was not to wait.
    Busy,
    /// It could not go before its deadline or within the longest wait, or did not.
    Deadline,
    /// The queue is full, and nobody of a lower class waits.
    QueueFull {
        /// How many wait.
        waiting: u32,
    },
    /// It made way in a full queue for a request of a higher class.
    Displaced,
    /// It can never fit.
    TooLarge {
        /// The limit that it does not fit.
        limit: Box<str>,
        /// What it would cost.
        cost: u32,
        /// What its class may use of the limit.
        capacity: u32,
    },
    /// It would have had to wait, and there is no tokio runtime to wait with.
    NoRuntime,
}

// === impl Refused ===

impl Refused {
    pub(crate) const fn new(budget: Arc<str>, class: Arc<str>, kind: RefusedKind) -> Self {
        Self {
            budget,
            class,
            kind,
            retry_at: None,
        }
    }

    pub(crate) fn with_retry_at(mut self, instant: Instant) -> Self {
        self.retry_at = Some(instant);
        self
    }

    /// Finds the refusal in an error's chain of causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        // A chain that bites its own tail ends too.
        std::iter::successors(Some(error), |&error| error.source())
            .take(64)
            .find_map(<dyn Error>::downcast_ref)
    }

    /// Returns why.
    #[must_use]
    pub const fn kind(&self) -> &RefusedKind {
        &self.kind
    }

    /// Returns the name of the budget.
    #[must_use]
    pub fn budget(&self) -> &str {
        &self.budget
    }

    /// Returns the name of the request's class.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.class
    }

    /// Returns the earliest instant at which the request could go, as far as anybody knows: later
    /// if more come that go before it, earlier if some of those give up.
    #[must_use]
    pub const fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Returns how long after `now` that is.
    #[must_use]
    pub fn retry_after(&self, now: Instant) -> Option<Duration> {
        self.retry_at.map(|at| at.saturating_duration_since(now))
    }

    /// Returns whether the request can never go, however long it waits.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self.kind, RefusedKind::TooLarge { .. })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { budget, class, .. } = self;
        write!(
            f,
            "not let through by budget {budget:?} in class {class:?}: "
        )?;
        match &self.kind {
            RefusedKind::Busy => f.write_str("no room now"),
            RefusedKind::Deadline => f.write_str("could not go in time"),
            RefusedKind::QueueFull { waiting } => write!(f, "{waiting} wait already"),
            RefusedKind::Displaced => f.write_str("made way for a higher class"),
            RefusedKind::TooLarge {
                limit,
                cost,
                capacity,
            } => write!(f, "{cost} of {limit:?} can never fit into {capacity}"),
            RefusedKind::NoRuntime => f.write_str("no tokio runtime to wait with"),
        }
    }
}

impl Error for Refused {}
