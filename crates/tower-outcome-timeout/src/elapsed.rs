//! What says which bound struck.

use std::{error::Error, fmt, time::Duration};

use tower_outcome_core::Phase;

/// Says that a bound struck: which, how long it was, and where the call stood.
///
/// It is the cause of a [`Failure`](tower_outcome_core::Failure), which says how far the request had
/// got and what that amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    bound: Bound,
    limit: Duration,
    phase: Phase,
}

/// The bounds of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bound {
    /// A connection was not there in time: DNS, TCP and TLS together.
    Connect,
    /// No slot among the requests in flight was free in time.
    Acquire,
    /// The transport took nothing of the request body for too long.
    WriteIdle,
    /// No response head came in time after the request was taken.
    Head,
    /// Nothing of the response body came for too long.
    ReadIdle,
    /// One attempt took too long.
    Attempt,
    /// The whole call took too long.
    Deadline,
}

// === impl Elapsed ===

impl Elapsed {
    pub(crate) const fn new(bound: Bound, limit: Duration, phase: Phase) -> Self {
        Self {
            bound,
            limit,
            phase,
        }
    }

    /// Finds it in an error's chain of causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        // A chain that bites its own tail ends too.
        std::iter::successors(Some(error), |&error| error.source())
            .take(64)
            .find_map(<dyn Error>::downcast_ref)
    }

    /// Returns the bound that struck.
    #[must_use]
    pub const fn bound(&self) -> Bound {
        self.bound
    }

    /// Returns how long the bound was; of the deadline, how long the call had. Zero for a call whose
    /// deadline was over before it began.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns where the call stood.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bound, limit, phase) = (self.bound, self.limit, self.phase.label());
        write!(f, "bound {bound} of {limit:?} elapsed in phase {phase}")
    }
}

impl Error for Elapsed {}

// === impl Bound ===

impl Bound {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Acquire => "acquire",
            Self::WriteIdle => "write_idle",
            Self::Head => "head",
            Self::ReadIdle => "read_idle",
            Self::Attempt => "attempt",
            Self::Deadline => "deadline",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
