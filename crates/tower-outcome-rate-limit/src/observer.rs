//! What a budget tells those who watch it.

use std::{fmt, time::Duration};

use crate::Refused;

/// Watches a budget, for metrics and logs.
///
/// Each method does nothing by default. They are called outside the budget's lock, by whoever
/// caused the event, so they may look at the budget; they should not take long. A budget that
/// nobody watches pays one comparison for it.
pub trait Observer: Send + Sync {
    /// A request was let through.
    fn admitted(&self, event: &Admitted<'_>) {
        let _ = event;
    }

    /// A request has to wait.
    fn queued(&self, event: &Queued<'_>) {
        let _ = event;
    }

    /// A request was refused, at once or after a wait.
    fn refused(&self, refused: &Refused) {
        let _ = refused;
    }

    /// The gate was closed, or closed for longer.
    fn paused(&self, event: &Paused<'_>) {
        let _ = event;
    }
}

/// A request was let through.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Admitted<'a> {
    /// The name of the budget.
    pub budget: &'a str,
    /// The name of the class.
    pub class: &'a str,
    /// How long it waited in the queue.
    pub waited: Duration,
}

/// A request has to wait.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Queued<'a> {
    /// The name of the budget.
    pub budget: &'a str,
    /// The name of the class.
    pub class: &'a str,
    /// How many wait, this one included, of all classes.
    pub waiting: u32,
}

/// The gate was closed, or closed for longer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Paused<'a> {
    /// The name of the budget.
    pub budget: &'a str,
    /// The name of the limit, if only those who use it have to wait.
    pub limit: Option<&'a str>,
    /// How long from now it stays closed.
    pub lasting: Duration,
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
