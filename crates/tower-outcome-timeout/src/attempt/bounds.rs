//! Other bounds for one request.

use std::time::Duration;

use http::Extensions;
use tower_outcome_core::ConfigError;

use crate::{
    Timeouts,
    timeouts::{Setting, above},
};

/// Replaces bounds of [`TimeoutLayer`](crate::TimeoutLayer) for the request in whose extensions it
/// is; those it does not name stay as they are.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use tower_outcome_timeout::AttemptBounds;
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// // A report that takes its time, and then comes in one piece.
/// let patient = AttemptBounds::builder()
///     .attempt(Duration::from_secs(120))
///     .read_idle(None)
///     .build()?;
/// let request = Request::get("https://venue.example/statement")
///     .extension(patient)
///     .body(())
///     .unwrap();
/// # let _ = request;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptBounds {
    attempt: Setting,
    head: Setting,
    write_idle: Setting,
    read_idle: Setting,
}

/// Builds [`AttemptBounds`]; start with [`AttemptBounds::builder`].
///
/// Each bound takes a duration, or `None` to go without.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct AttemptBoundsBuilder(AttemptBounds);

/// The bounds that hold for an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) attempt: Option<Duration>,
    pub(crate) head: Option<Duration>,
    pub(crate) write_idle: Option<Duration>,
    pub(crate) read_idle: Option<Duration>,
    /// Whether what is left of the deadline is sent along.
    pub(crate) grpc_timeout: bool,
}

// === impl AttemptBounds ===

impl AttemptBounds {
    /// Starts with what the layer has, to change some.
    pub fn builder() -> AttemptBoundsBuilder {
        AttemptBoundsBuilder::default()
    }
}

// === impl AttemptBoundsBuilder ===

impl AttemptBoundsBuilder {
    /// Bounds the attempt up to its response head.
    pub fn attempt(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.0.attempt = Setting::of(bound);
        self
    }

    /// Bounds the time from when the transport has taken the whole request to the response head.
    pub fn head(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.0.head = Setting::of(bound);
        self
    }

    /// Bounds the time for which the transport takes nothing of a request body that is there.
    pub fn write_idle(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.0.write_idle = Setting::of(bound);
        self
    }

    /// Bounds the time for which nothing of the response body comes while somebody reads it.
    pub fn read_idle(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.0.read_idle = Setting::of(bound);
        self
    }

    /// Checks the bounds.
    ///
    /// # Errors
    ///
    /// If a bound is zero, or if `head` or `write_idle` is above an `attempt` that is set here too.
    pub fn build(self) -> Result<AttemptBounds, ConfigError> {
        let AttemptBounds {
            attempt,
            head,
            write_idle,
            read_idle,
        } = self.0;
        attempt.check("attempt")?;
        head.check("head")?;
        write_idle.check("write_idle")?;
        read_idle.check("read_idle")?;
        let attempt = attempt.over(None);
        above("head", head.over(None), "attempt", attempt)?;
        above("write_idle", write_idle.over(None), "attempt", attempt)?;
        Ok(self.0)
    }
}

// === impl Bounds ===

impl Bounds {
    pub(super) const fn new(timeouts: &Timeouts) -> Self {
        Self {
            attempt: timeouts.attempt,
            head: timeouts.head,
            write_idle: timeouts.write_idle,
            read_idle: timeouts.read_idle,
            grpc_timeout: timeouts.grpc_timeout,
        }
    }

    /// Returns these, replaced by what a request brings.
    #[inline]
    pub(super) fn with(self, extensions: &Extensions) -> Self {
        // Mostly there are none, and then nothing is looked up.
        if extensions.is_empty() {
            return self;
        }
        let Some(of_request) = extensions.get::<AttemptBounds>() else {
            return self;
        };
        Self {
            attempt: of_request.attempt.over(self.attempt),
            head: of_request.head.over(self.head),
            write_idle: of_request.write_idle.over(self.write_idle),
            read_idle: of_request.read_idle.over(self.read_idle),
            grpc_timeout: self.grpc_timeout,
        }
    }
}
