//! What a request asks of a budget.

use std::time::Duration;

use http::Extensions;
use tokio::time::Instant;
use tower_outcome_core::{Deadline, Priority};

use crate::Cost;

/// What a request asks of a budget: its class, its cost, and how long it can wait.
///
/// ```
/// use std::time::Duration;
/// use tower_outcome_core::Priority;
/// use tower_outcome_rate_limit::{Cost, Ticket};
///
/// // An order: before everything else, or not at all.
/// let ticket = Ticket::new()
///     .priority(Priority::HIGHEST)
///     .cost(Cost::in_order([1, 4]))
///     .max_wait(Duration::from_millis(500));
/// # let _ = ticket;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Ticket {
    pub(crate) class: ClassOf,
    pub(crate) cost: Cost,
    pub(crate) deadline: Option<Instant>,
    pub(crate) max_wait: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClassOf {
    Index(usize),
    Priority(Priority),
    /// Nobody has said.
    #[default]
    Unsaid,
}

// === impl Ticket ===

impl Ticket {
    /// Creates the ticket of a request that nobody mapped: one unit of each limit, the class of its
    /// priority or of [`Priority::NORMAL`], and no bound of its own on the wait.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the class by its place among the budget's classes, the first and highest being 0. A
    /// number beyond the last means the last.
    pub const fn class(mut self, index: usize) -> Self {
        self.class = ClassOf::Index(index);
        self
    }

    /// Sets the class by priority. The priorities are divided evenly among the budget's classes:
    /// of three, [`HIGHEST`](Priority::HIGHEST) is the first, [`NORMAL`](Priority::NORMAL) the
    /// second and [`LOWEST`](Priority::LOWEST) the third.
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.class = ClassOf::Priority(priority);
        self
    }

    /// Sets the cost.
    pub const fn cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }

    /// Sets the instant after which going out is pointless. A layer takes the earlier of this and
    /// the [`Deadline`](tower_outcome_core::Deadline) in the request's extensions.
    pub const fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets how long this request waits at most, where that is less than its class allows. Zero: it
    /// goes at once or is refused.
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    /// Makes sure that the deadline is not after `instant`.
    pub(crate) fn no_later_than(mut self, instant: Instant) -> Self {
        self.deadline = Some(self.deadline.map_or(instant, |at| at.min(instant)));
        self
    }

    /// Makes sure that it is not after the one in the extensions of a request.
    pub(crate) fn no_later_than_deadline(self, extensions: &Extensions) -> Self {
        match Deadline::of(extensions) {
            Some(deadline) => self.no_later_than(deadline.instant()),
            None => self,
        }
    }

    /// Sets the class where nobody has said.
    pub(crate) fn or_priority(mut self, priority: Priority) -> Self {
        if self.class == ClassOf::Unsaid {
            self.class = ClassOf::Priority(priority);
        }
        self
    }
}

// === impl ClassOf ===

impl ClassOf {
    /// The index among so many classes.
    pub(crate) fn index(self, classes: usize) -> usize {
        match self {
            Self::Index(index) => index.min(classes - 1),
            Self::Priority(priority) => usize::from(priority.class()) * classes / 256,
            Self::Unsaid => Self::Priority(Priority::NORMAL).index(classes),
        }
    }
}
