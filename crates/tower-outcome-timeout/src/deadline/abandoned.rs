//! What is told of calls that nobody waits for any more.

use http::request;
use tower_outcome_core::{Delivery, Outcome, Phase};

/// What is known of a call whose future was dropped before it was done.
#[derive(Clone, Copy, Debug)]
pub struct Abandoned {
    pub(super) outcome: Outcome,
    pub(super) delivery: Delivery,
    pub(super) phase: Phase,
    pub(super) attempts: u32,
}

/// Told of one call if its future is dropped before it is done.
///
/// It runs in a destructor: it must not block, and a panic in it may abort the program.
pub type OnAbandoned = Box<dyn FnOnce(Abandoned) + Send + Sync>;

/// Looks at a request before it is sent, and keeps of it what is needed to tell which it was.
pub(super) type Watch = dyn Fn(&request::Parts) -> OnAbandoned + Send + Sync;

// === impl Abandoned ===

impl Abandoned {
    /// Returns what became of the call: [`Outcome::Unknown`] if it may have been sent and must not be
    /// repeated.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns how far the call got: the furthest of all its attempts.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Returns where the call stood.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns how many attempts had been made, if a layer counts them.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }
}
