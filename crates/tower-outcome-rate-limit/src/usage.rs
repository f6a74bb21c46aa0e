//! What the headers of a response say about the use of a limit.
//!
//! Everything here is pure: no clock is read, the time is an argument, and nothing that a server
//! sends is trusted to be true. Whether it is believed is for the limiter to decide.
//!
//! # Dialects
//!
//! | Constructor | Headers | Says |
//! |---|---|---|
//! | [`UsageHeaders::mbx_used_weight`] | `X-MBX-USED-WEIGHT-1M: 4213` | used |
//! | [`UsageHeaders::mbx_order_count`] | `X-MBX-ORDER-COUNT-10S: 3` | used |
//! | [`UsageHeaders::x_rate_limit`] | `X-RateLimit-Limit`, `-Remaining`, `-Used`, `-Reset` | all four |
//! | [`UsageHeaders::x_rate_limit_with`] | the same after another prefix | all four |
//! | [`UsageHeaders::ietf`] | `RateLimit`, `RateLimit-Policy`, and what older drafts had | remaining, limit, reset |
//! | [`UsageHeaders::bybit`] | `X-Bapi-Limit`, `-Limit-Status`, `-Limit-Reset-Timestamp` | remaining, limit, reset |
//! | [`UsageHeaders::riot_app`], [`UsageHeaders::riot_method`] | `X-App-Rate-Limit: 20:1,100:120`, `-Count` | used, limit |
//! | [`UsageHeaders::shopify`] | `X-Shopify-Shop-Api-Call-Limit: 32/40` | used, limit |
//! | [`UsageHeaders::named`] | any, see [`UsageNames`] | what was named |
//!
//! # Grammar
//!
//! A number is `1*DIGIT [ "." 1*DIGIT ]` with optional blanks around it, and its whole part fits
//! 64 bits. Everything else (signs, exponents, trailing text, more digits) is malformed and
//! ignored, without a loss of the valid values beside it. Structured fields have their own grammar
//! (RFC 9651), in which a syntax error spoils the whole line.
//!
//! All rounding and all choices err towards less room: what is used is rounded up, what remains
//! and the limit are rounded down, and of a header that was sent several times the largest use,
//! the smallest remainder, the smallest limit and the longest reset count.
//!
//! A response that a cache answered says nothing about the limit now, so it is ignored if `Age` is
//! anything but zero.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, header};
use tower_outcome_core::{ConfigError, ResetUnit, RetryAfter};

use self::{
    ietf::Ietf,
    number::Number,
    pairs::{Quotient, Windows},
};

mod ietf;
mod names;
mod number;
mod pairs;
mod reported;
mod reset;

pub use self::{names::UsageNames, reported::Reported};

/// Tells in which headers an API says how much of one limit is used.
///
/// None is a default, since one and the same header name counts different things at different
/// APIs. Clones share what was configured.
///
/// # Example
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use http::{HeaderMap, HeaderValue};
/// use tower_outcome_core::ResetUnit;
/// use tower_outcome_rate_limit::UsageHeaders;
///
/// let github = UsageHeaders::x_rate_limit(ResetUnit::EpochSeconds);
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-ratelimit-limit", HeaderValue::from_static("5000"));
/// headers.insert("x-ratelimit-remaining", HeaderValue::from_static("4987"));
/// headers.insert("x-ratelimit-reset", HeaderValue::from_static("1790000060"));
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
/// let reported = github.read(&headers, now).unwrap();
/// assert_eq!(reported.limit, Some(5000));
/// assert_eq!(reported.remaining, Some(4987));
/// assert_eq!(reported.used, None);
/// assert_eq!(reported.reset, Some(Duration::from_secs(60)));
/// ```
#[derive(Clone, Debug)]
pub struct UsageHeaders {
    /// Shared, because every clone of a service has one.
    kind: Arc<Kind>,
}

#[derive(Debug)]
enum Kind {
    Named(UsageNames),
    Ietf(Ietf),
    Windows(Windows),
    Quotient(Quotient),
    Custom(Custom),
}

struct Custom(Box<Read>);

type Read = dyn Fn(&HeaderMap) -> Option<Reported> + Send + Sync;

// === impl UsageHeaders ===

impl UsageHeaders {
    /// Reads Binance's `X-MBX-USED-WEIGHT-<interval>`, the weight that this IP address has used.
    ///
    /// `interval` is the end of the header's name, such as `1m`, in either case.
    ///
    /// # Errors
    ///
    /// If `interval` is not a number above zero and one of `s`, `m`, `h` and `d`.
    pub fn mbx_used_weight(interval: &str) -> Result<Self, ConfigError> {
        UsageNames::mbx("x-mbx-used-weight", interval).map(Self::from_names)
    }

    /// Reads Binance's `X-MBX-ORDER-COUNT-<interval>`, the unfilled orders of this account.
    ///
    /// `interval` is the end of the header's name, such as `10s`, in either case. The count falls
    /// when an order is filled, so it may be lower than the number of orders sent.
    ///
    /// # Errors
    ///
    /// If `interval` is not a number above zero and one of `s`, `m`, `h` and `d`.
    pub fn mbx_order_count(interval: &str) -> Result<Self, ConfigError> {
        UsageNames::mbx("x-mbx-order-count", interval).map(Self::from_names)
    }

    /// Reads `X-RateLimit-Limit`, `-Remaining`, `-Used` and `-Reset`, the last in this unit.
    ///
    /// GitHub and Alpaca send [`ResetUnit::EpochSeconds`].
    #[must_use]
    pub fn x_rate_limit(unit: ResetUnit) -> Self {
        Self::from_names(UsageNames::x_rate_limit(unit))
    }

    /// Reads `<prefix>-Limit`, `-Remaining`, `-Used` and `-Reset`, the last in this unit.
    ///
    /// `prefix` is without the hyphen at its end, such as `X-Rate-Limit`, in either case. Use
    /// [`UsageHeaders::named`] where the ends of the names differ, too.
    ///
    /// # Errors
    ///
    /// If `prefix` is empty or cannot begin the name of a header.
    pub fn x_rate_limit_with(prefix: &str, unit: ResetUnit) -> Result<Self, ConfigError> {
        UsageNames::prefixed(prefix, unit).map(Self::from_names)
    }

    /// Reads headers of any name that hold one number each.
    ///
    /// # Errors
    ///
    /// If neither the header of what is used nor that of what remains is named.
    pub fn named(names: UsageNames) -> Result<Self, ConfigError> {
        names.checked().map(Self::from_names)
    }

    /// Reads the IETF fields `RateLimit` and `RateLimit-Policy`
    /// (draft-ietf-httpapi-ratelimit-headers-10).
    ///
    /// `policy` selects a policy by its name. A policy that was sent several times, once for each
    /// partition, is read where the least remains.
    ///
    /// Without a name, the policy of which the least remains is read, so name it if the server
    /// has several. Policies that count anything but requests (`qu`) are then left out. If there
    /// is none, the older notations are read, in which policies have no names: the dictionary
    /// `RateLimit: limit=100, remaining=50, reset=30` of draft 7, and what that does not say from
    /// `RateLimit-Limit`, `-Remaining` and `-Reset` (seconds from now) of the drafts before it.
    ///
    /// # Errors
    ///
    /// If `policy` is empty or holds anything but printable ASCII.
    pub fn ietf(policy: Option<&str>) -> Result<Self, ConfigError> {
        Ietf::try_new(policy).map(|ietf| Self::from_kind(Kind::Ietf(ietf)))
    }

    /// Reads Bybit's `X-Bapi-Limit`, `X-Bapi-Limit-Status` (what remains) and
    /// `X-Bapi-Limit-Reset-Timestamp` (milliseconds since 1970-01-01 UTC).
    ///
    /// Bybit sends the present time as the reset while the limit is not reached.
    #[must_use]
    pub fn bybit() -> Self {
        Self::from_names(UsageNames::bybit())
    }

    /// Reads Riot's `X-App-Rate-Limit` and `X-App-Rate-Limit-Count` for the limit of this window.
    ///
    /// Both are lists of `<count>:<seconds>`, one for each window.
    ///
    /// # Errors
    ///
    /// If `window` is zero or not in whole seconds.
    pub fn riot_app(window: Duration) -> Result<Self, ConfigError> {
        let windows = Windows::riot_app(window)?;
        Ok(Self::from_kind(Kind::Windows(windows)))
    }

    /// Reads Riot's `X-Method-Rate-Limit` and `X-Method-Rate-Limit-Count` for the limit of this
    /// window.
    ///
    /// Both are lists of `<count>:<seconds>`, one for each window.
    ///
    /// # Errors
    ///
    /// If `window` is zero or not in whole seconds.
    pub fn riot_method(window: Duration) -> Result<Self, ConfigError> {
        let windows = Windows::riot_method(window)?;
        Ok(Self::from_kind(Kind::Windows(windows)))
    }

    /// Reads Shopify's `X-Shopify-Shop-Api-Call-Limit`, `<used>/<limit>`.
    #[must_use]
    pub fn shopify() -> Self {
        Self::from_kind(Kind::Quotient(Quotient::shopify()))
    }

    /// Reads what `read` finds.
    ///
    /// It is not asked about a response that a cache answered.
    #[must_use]
    pub fn custom(read: impl Fn(&HeaderMap) -> Option<Reported> + Send + Sync + 'static) -> Self {
        Self::from_kind(Kind::Custom(Custom(Box::new(read))))
    }

    /// Reads what a response says, `None` if it says nothing valid.
    ///
    /// `now` is the wall time at which the response head arrived. A reset that is a point in time
    /// is measured against the response's own `Date`, or against `now` if there is no valid one. A
    /// reset in the past is zero.
    ///
    /// A malformed value is ignored, and hides no valid one. All rounding errs towards less room,
    /// and so does the choice between the values of a header that was sent several times. A
    /// response that a cache answered (its `Age` is not zero) says nothing.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap, now: SystemTime) -> Option<Reported> {
        if is_cached(headers) {
            return None;
        }
        let mut reported = match &*self.kind {
            Kind::Named(names) => names.read(headers, now),
            Kind::Ietf(ietf) => ietf.read(headers, now),
            Kind::Windows(windows) => windows.read(headers),
            Kind::Quotient(quotient) => quotient.read(headers),
            Kind::Custom(custom) => (custom.0)(headers)?,
        };
        reported.reset = reported.reset.map(|reset| reset.min(RetryAfter::MAX));
        reported.said()
    }

    fn from_names(names: UsageNames) -> Self {
        Self::from_kind(Kind::Named(names))
    }

    fn from_kind(kind: Kind) -> Self {
        Self {
            kind: Arc::new(kind),
        }
    }
}

/// Whether a cache answered. Caches that passed the request on may say `Age: 0`.
fn is_cached(headers: &HeaderMap) -> bool {
    let mut ages = headers.get_all(header::AGE).iter();
    ages.any(|age| Number::parse(age.as_bytes()).is_none_or(|age| age.up() > 0))
}

// === impl Custom ===

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Custom")
    }
}

#[cfg(test)]
mod tests;
