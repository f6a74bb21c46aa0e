//! Reset headers that mean something else at each API, and are read only by opt-in.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use super::number::Number;
use super::{Hint, RetryAfter, search};

/// Selects which reset headers are read besides the headers that need no opt-in.
///
/// Nothing is selected at first: one and the same header name holds an epoch at one API and a
/// number of seconds at the next, and to mistake one for the other is to wait for 50 years or not
/// at all.
///
/// Reset headers rank after every other hint. One is read only if its companion header, which
/// counts what is left of the limit, is zero, absent or malformed. If several are selected and
/// hold a hint, the longest wait wins, since all of these limits must be waited for.
///
/// # Example
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use http::{HeaderMap, HeaderValue};
/// use tower_outcome_core::{HintDialects, ResetUnit};
///
/// let github = HintDialects::new().x_rate_limit_reset(ResetUnit::EpochSeconds);
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
/// headers.insert("x-ratelimit-reset", HeaderValue::from_static("1790000060"));
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
/// let hint = github.parse(&headers, now).unwrap();
/// assert_eq!(hint.delay(), Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintDialects {
    x_rate_limit_reset: Option<ResetUnit>,
    rate_limit_reset: Option<ResetUnit>,
    tradier_expiry: bool,
    bybit_reset: bool,
    amz_retry_after: bool,
}

/// Tells what the number in a reset header counts. All may have a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResetUnit {
    /// Seconds since 1970-01-01 UTC, as at GitHub and Alpaca.
    EpochSeconds,
    /// Milliseconds since 1970-01-01 UTC.
    EpochMillis,
    /// Seconds or milliseconds since 1970-01-01 UTC, told apart by size: a number above 10^11
    /// (the year 5138 in seconds, 1973 in milliseconds) counts milliseconds.
    EpochByMagnitude,
    /// Seconds from now.
    DeltaSeconds,
}

/// One reset header, the companion that counts what is left, and the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset {
    pub(super) header: &'static str,
    pub(super) remaining: &'static str,
    pub(super) unit: ResetUnit,
}

/// The largest [`ResetUnit::EpochByMagnitude`] that still counts seconds.
const MAX_EPOCH_SECONDS: u64 = 100_000_000_000;

// === impl HintDialects ===

impl HintDialects {
    /// Creates a set without any dialect.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            x_rate_limit_reset: None,
            rate_limit_reset: None,
            tradier_expiry: false,
            bybit_reset: false,
            amz_retry_after: false,
        }
    }

    /// Reads `x-ratelimit-reset` in this unit, unless `x-ratelimit-remaining` is above zero.
    #[must_use]
    pub const fn x_rate_limit_reset(mut self, unit: ResetUnit) -> Self {
        self.x_rate_limit_reset = Some(unit);
        self
    }

    /// Reads `RateLimit-Reset` in this unit, unless `RateLimit-Remaining` is above zero.
    ///
    /// Early IETF drafts have these headers, with [`ResetUnit::DeltaSeconds`].
    #[must_use]
    pub const fn rate_limit_reset(mut self, unit: ResetUnit) -> Self {
        self.rate_limit_reset = Some(unit);
        self
    }

    /// Reads Tradier's `x-ratelimit-expiry`, unless `x-ratelimit-available` is above zero.
    ///
    /// The unit is [`ResetUnit::EpochByMagnitude`], since clients disagree on what is sent.
    #[must_use]
    pub const fn tradier_expiry(mut self) -> Self {
        self.tradier_expiry = true;
        self
    }

    /// Reads Bybit's `x-bapi-limit-reset-timestamp` ([`ResetUnit::EpochMillis`]), unless
    /// `x-bapi-limit-status` is above zero.
    #[must_use]
    pub const fn bybit_reset(mut self) -> Self {
        self.bybit_reset = true;
        self
    }

    /// Reads `x-amz-retry-after`, milliseconds from now.
    ///
    /// It is a wait, not a reset, so it ranks before `Retry-After` and has no companion.
    #[must_use]
    pub const fn amz_retry_after(mut self) -> Self {
        self.amz_retry_after = true;
        self
    }

    /// Reads the headers of [`RetryAfter::from_headers`] and the selected ones.
    ///
    /// `now` is the wall time at which the response head arrived, used if there is no valid
    /// `Date`.
    #[must_use]
    pub fn parse(self, headers: &HeaderMap, now: SystemTime) -> Option<RetryAfter> {
        self.inspect(headers, now).valid()
    }

    /// Reads the same headers as [`HintDialects::parse`], and reports a malformed value if there
    /// is no valid one.
    #[must_use]
    pub fn inspect(self, headers: &HeaderMap, now: SystemTime) -> Hint {
        search::inspect(self, headers, now)
    }

    pub(super) fn amz_header(self) -> Option<&'static str> {
        self.amz_retry_after.then_some("x-amz-retry-after")
    }

    pub(super) fn resets(self) -> [Option<Reset>; 4] {
        [
            self.x_rate_limit_reset.map(|unit| Reset {
                header: "x-ratelimit-reset",
                remaining: "x-ratelimit-remaining",
                unit,
            }),
            self.rate_limit_reset.map(|unit| Reset {
                header: "ratelimit-reset",
                remaining: "ratelimit-remaining",
                unit,
            }),
            self.tradier_expiry.then_some(Reset {
                header: "x-ratelimit-expiry",
                remaining: "x-ratelimit-available",
                unit: ResetUnit::EpochByMagnitude,
            }),
            self.bybit_reset.then_some(Reset {
                header: "x-bapi-limit-reset-timestamp",
                remaining: "x-bapi-limit-status",
                unit: ResetUnit::EpochMillis,
            }),
        ]
    }
}

// === impl ResetUnit ===

impl ResetUnit {
    /// The wait until `number`, zero if it is past. `now` is the time since the epoch.
    pub(super) fn delay(self, number: Number, now: impl FnOnce() -> Duration) -> Duration {
        let epoch = match self {
            Self::DeltaSeconds => return number.seconds(),
            Self::EpochMillis => number.millis(),
            Self::EpochByMagnitude if number.whole() > MAX_EPOCH_SECONDS => number.millis(),
            Self::EpochByMagnitude | Self::EpochSeconds => number.seconds(),
        };
        epoch.saturating_sub(now())
    }
}
