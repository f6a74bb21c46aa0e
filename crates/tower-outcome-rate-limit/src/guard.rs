//! How it is made up for that requests travel.

use std::time::Duration;

use tower_outcome_core::ConfigError;

/// How a budget makes up for the time that a request takes to reach the venue.
///
/// The venue counts a request when it arrives, not when it left. A log of departures therefore
/// exceeds the venue's window as soon as requests take different times: those that were slow in one
/// window and those that are fast in the next arrive together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// A request counts from its departure until its response head arrives, and one window more.
    /// The default: whatever the venue's clock and however long requests take, its window is never
    /// exceeded, and nothing has to be measured or guessed.
    ///
    /// The cost is a throughput of N per window and round trip instead of N per window.
    UntilResponse {
        /// How long a request may still arrive after it was given up on: dropped, timed out, its
        /// connection broken. By default a second.
        late: Duration,
    },
    /// A request counts from its departure, and each window is longer by this much: the difference
    /// between the slowest and the fastest way to the venue. For callers who see no responses.
    Fixed(Duration),
    /// A request counts from its departure. The venue's window is exceeded whenever requests take
    /// different times; for limits that are this side's own.
    None,
}

// === impl Guard ===

impl Guard {
    /// What every window is longer by, where departures are counted.
    pub(crate) const fn spread(self) -> Duration {
        match self {
            Self::Fixed(spread) => spread,
            Self::UntilResponse { .. } | Self::None => Duration::ZERO,
        }
    }

    pub(crate) fn check(self) -> Result<(), ConfigError> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let (field, span) = match self {
            Self::UntilResponse { late } => ("guard.late", late),
            Self::Fixed(spread) => ("guard.fixed", spread),
            Self::None => return Ok(()),
        };
        if span > DAY {
            return Err(ConfigError::new(field, span, "at most a day"));
        }
        Ok(())
    }
}

impl Default for Guard {
    fn default() -> Self {
        Self::UntilResponse {
            late: Duration::from_secs(1),
        }
    }
}
