//! Headers that hold one number each.

use std::time::SystemTime;

use http::{HeaderMap, HeaderName};
use tower_outcome_core::{ConfigError, ResetUnit};

use super::{Reported, number, reset};

/// Names the headers that hold what is used of a limit, what remains, the limit and its reset.
///
/// Nothing is named at first. Either what is used or what remains must be.
///
/// # Example
///
/// ```
/// use http::HeaderName;
/// use tower_outcome_core::ResetUnit;
/// use tower_outcome_rate_limit::{UsageHeaders, UsageNames};
///
/// let tradier = UsageHeaders::named(
///     UsageNames::new()
///         .used(HeaderName::from_static("x-ratelimit-used"))
///         .remaining(HeaderName::from_static("x-ratelimit-available"))
///         .limit(HeaderName::from_static("x-ratelimit-allowed"))
///         .reset(
///             HeaderName::from_static("x-ratelimit-expiry"),
///             ResetUnit::EpochByMagnitude,
///         ),
/// )?;
/// # Ok::<(), tower_outcome_core::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct UsageNames {
    used: Option<HeaderName>,
    remaining: Option<HeaderName>,
    limit: Option<HeaderName>,
    reset: Option<(HeaderName, ResetUnit)>,
}

// === impl UsageNames ===

impl UsageNames {
    /// Creates a set of no names.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            used: None,
            remaining: None,
            limit: None,
            reset: None,
        }
    }

    /// Names the header of what is used.
    #[must_use]
    pub fn used(mut self, name: HeaderName) -> Self {
        self.used = Some(name);
        self
    }

    /// Names the header of what remains.
    #[must_use]
    pub fn remaining(mut self, name: HeaderName) -> Self {
        self.remaining = Some(name);
        self
    }

    /// Names the header of the limit.
    #[must_use]
    pub fn limit(mut self, name: HeaderName) -> Self {
        self.limit = Some(name);
        self
    }

    /// Names the header that says when some of the limit comes back, in this unit.
    #[must_use]
    pub fn reset(mut self, name: HeaderName, unit: ResetUnit) -> Self {
        self.reset = Some((name, unit));
        self
    }

    pub(super) fn x_rate_limit(unit: ResetUnit) -> Self {
        Self::new()
            .used(HeaderName::from_static("x-ratelimit-used"))
            .remaining(HeaderName::from_static("x-ratelimit-remaining"))
            .limit(HeaderName::from_static("x-ratelimit-limit"))
            .reset(HeaderName::from_static("x-ratelimit-reset"), unit)
    }

    pub(super) fn bybit() -> Self {
        Self::new()
            .remaining(HeaderName::from_static("x-bapi-limit-status"))
            .limit(HeaderName::from_static("x-bapi-limit"))
            .reset(
                HeaderName::from_static("x-bapi-limit-reset-timestamp"),
                ResetUnit::EpochMillis,
            )
    }

    pub(super) fn prefixed(prefix: &str, unit: ResetUnit) -> Result<Self, ConfigError> {
        let invalid = || ConfigError::new("prefix", prefix, "the beginning of a header's name");
        if prefix.is_empty() {
            return Err(invalid());
        }
        let name = |end: &str| {
            HeaderName::try_from(format!("{prefix}-{end}")).map_err(|_invalid_name| invalid())
        };
        Ok(Self::new()
            .used(name("used")?)
            .remaining(name("remaining")?)
            .limit(name("limit")?)
            .reset(name("reset")?, unit))
    }

    /// The count of what is used per interval at Binance.
    pub(super) fn mbx(prefix: &str, interval: &str) -> Result<Self, ConfigError> {
        let invalid = || {
            let expected = "a number above zero and one of s, m, h and d";
            ConfigError::new("interval", interval, expected)
        };
        let is_interval = interval
            .strip_suffix(|unit: char| "smhdSMHD".contains(unit))
            // The server writes no zero in front, so no header would ever match one.
            .filter(|count| !count.is_empty() && !count.starts_with('0'))
            .is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_interval {
            return Err(invalid());
        }
        HeaderName::try_from(format!("{prefix}-{interval}"))
            .map(|name| Self::new().used(name))
            .map_err(|_invalid_name| invalid())
    }

    pub(super) fn checked(self) -> Result<Self, ConfigError> {
        if self.used.is_none() && self.remaining.is_none() {
            let expected = "a header of what is used or of what remains";
            return Err(ConfigError::new("names", self, expected));
        }
        Ok(self)
    }

    pub(super) fn read(&self, headers: &HeaderMap, now: SystemTime) -> Reported {
        let most = |name| number::most(headers, name);
        let least = |name| number::least(headers, name);
        let reset = |(name, unit): &(_, _)| reset::read(headers, name, *unit, now);
        Reported {
            used: self.used.as_ref().and_then(most),
            remaining: self.remaining.as_ref().and_then(least),
            limit: self.limit.as_ref().and_then(least),
            reset: self.reset.as_ref().and_then(reset),
        }
    }
}
