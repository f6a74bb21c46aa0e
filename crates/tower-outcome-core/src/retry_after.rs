//! When a server asks to be left alone, and for how long.
//!
//! Everything here is pure: no clock is read, the time is an argument.
//!
//! # Precedence
//!
//! The first row that holds a valid hint answers; a malformed value never hides a valid one
//! further down. The finest unit comes first, because servers that send it repeat the same wait,
//! rounded, in the coarser header. Within a row the longest valid value wins, so a header that
//! was sent twice is never understated.
//!
//! | | Header | Value | [`HintForm`] |
//! |---|---|---|---|
//! | 1 | `retry-after-ms` | milliseconds | `Milliseconds` |
//! | 2 | `x-ms-retry-after-ms` | milliseconds | `Milliseconds` |
//! | 3 | `x-amz-retry-after`, if [opted in](HintDialects::amz_retry_after) | milliseconds | `Milliseconds` |
//! | 4 | `Retry-After` (RFC 9110, section 10.2.3) | seconds, or one of three date forms | `Seconds`, `Date` |
//! | 5 | `RateLimit` (draft-ietf-httpapi-ratelimit-headers) | structured field list | `RateLimit` |
//! | 6 | reset headers, each by [opt-in](HintDialects) | see there | `Reset` |
//!
//! # Grammar
//!
//! A number is `1*DIGIT [ "." 1*DIGIT ]` with optional blanks around it. RFC 9110 allows digits
//! only; the fraction is there because real servers send `2.0` and `0.493`. Signs, exponents, hex,
//! trailing text and blanks inside make the value malformed. A fraction is rounded up to the next
//! nanosecond, never down. A number of any length is accepted and saturates at
//! [`RetryAfter::MAX`].
//!
//! Points in time (dates and epochs) are measured against the response's own `Date`, which takes
//! the difference between the two clocks out of the wait, or against the given time if `Date` is
//! absent or malformed. A point in the past is a wait of zero, and the difference is never rounded
//! down. `Date` is in whole seconds and older than the arrival of the response, so against it a
//! wait comes out somewhat too long rather than too short.

mod date;
mod dialect;
mod number;
mod pushback;
mod rate_limit;
mod rejected;
mod search;

use std::time::{Duration, SystemTime};

use http::HeaderMap;

pub use self::dialect::{HintDialects, ResetUnit};
pub use self::pushback::{Pushback, parse_pushback};
pub use self::rejected::RejectedHint;

/// Holds how long a server asked the client to wait, counted from the arrival of its answer.
///
/// The wait is what the server said, at most [`RetryAfter::MAX`]. Whether to obey, shorten or
/// refuse it is a matter of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    delay: Duration,
    form: HintForm,
}

/// Names the notation in which a server expressed its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HintForm {
    /// `Retry-After` with a number of seconds, fraction allowed.
    Seconds,
    /// `Retry-After` with a date.
    Date,
    /// A number of milliseconds: `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after`.
    Milliseconds,
    /// The IETF `RateLimit` structured field.
    RateLimit,
    /// A reset header of one API or another, see [`HintDialects`].
    Reset,
    /// `grpc-retry-pushback-ms`.
    Pushback,
    /// Found by code of the user, for instance in a response body.
    Custom,
}

/// Says what a response's hint headers amount to, malformed values included.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a header is absent, valid or malformed"
)]
pub enum Hint {
    /// A valid hint was found; malformed ones beside it are not reported.
    Valid(RetryAfter),
    /// No valid hint was found, but a malformed one, the first in order of precedence.
    Invalid(RejectedHint),
    /// No header that was looked for holds a hint.
    Absent,
}

// === impl RetryAfter ===

impl RetryAfter {
    /// The longest wait that a hint can express: 100 years of 365 days.
    ///
    /// It is far beyond any policy's cap, and small enough to be added to any time of day.
    pub const MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

    /// Creates a hint, with `delay` limited to [`RetryAfter::MAX`].
    #[must_use]
    pub const fn new(delay: Duration, form: HintForm) -> Self {
        // `Ord` is not const; past this comparison only whole seconds are cut off.
        let delay = if delay.as_secs() >= Self::MAX.as_secs() {
            Self::MAX
        } else {
            delay
        };
        Self { delay, form }
    }

    /// Reads the headers that need no opt-in, in the documented order of precedence.
    ///
    /// `now` is the wall time at which the response head arrived. It is used only for a date in a
    /// response without a valid `Date` of its own, and to tell the century of a two-digit year.
    ///
    /// Use [`RetryAfter::inspect`] to learn about malformed values, and [`HintDialects`] for
    /// reset headers.
    ///
    /// # Example
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use http::{HeaderMap, HeaderValue, header};
    /// use tower_outcome_core::{HintForm, RetryAfter};
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert(header::RETRY_AFTER, HeaderValue::from_static("0.493"));
    ///
    /// let hint = RetryAfter::from_headers(&headers, SystemTime::UNIX_EPOCH).unwrap();
    /// assert_eq!(hint.delay(), Duration::from_millis(493));
    /// assert_eq!(hint.form(), HintForm::Seconds);
    /// ```
    #[must_use]
    pub fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Self> {
        HintDialects::new().parse(headers, now)
    }

    /// Reads the same headers as [`RetryAfter::from_headers`], and reports a malformed value if
    /// there is no valid one.
    #[must_use]
    pub fn inspect(headers: &HeaderMap, now: SystemTime) -> Hint {
        HintDialects::new().inspect(headers, now)
    }

    /// The wait, at most [`RetryAfter::MAX`].
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// The notation in which the server expressed the wait.
    #[must_use]
    pub const fn form(&self) -> HintForm {
        self.form
    }
}

// === impl Hint ===

impl Hint {
    /// The hint, if it is a valid one.
    #[must_use]
    pub const fn valid(&self) -> Option<RetryAfter> {
        match self {
            Self::Valid(hint) => Some(*hint),
            Self::Invalid(_) | Self::Absent => None,
        }
    }
}

#[cfg(test)]
mod tests;
