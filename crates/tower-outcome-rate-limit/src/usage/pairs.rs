//! Headers that hold two numbers in one value.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use tower_outcome_core::ConfigError;

use super::{Reported, number::Number};

/// Two lists of `<count>:<seconds>`, of which one window is read.
#[derive(Debug)]
pub(super) struct Windows {
    used: HeaderName,
    limit: HeaderName,
    seconds: u64,
}

/// `<used>/<limit>`.
#[derive(Debug)]
pub(super) struct Quotient {
    name: HeaderName,
}

// === impl Windows ===

impl Windows {
    pub(super) fn riot_app(window: Duration) -> Result<Self, ConfigError> {
        Ok(Self {
            used: HeaderName::from_static("x-app-rate-limit-count"),
            limit: HeaderName::from_static("x-app-rate-limit"),
            seconds: whole_seconds(window)?,
        })
    }

    pub(super) fn riot_method(window: Duration) -> Result<Self, ConfigError> {
        Ok(Self {
            used: HeaderName::from_static("x-method-rate-limit-count"),
            limit: HeaderName::from_static("x-method-rate-limit"),
            seconds: whole_seconds(window)?,
        })
    }

    pub(super) fn read(&self, headers: &HeaderMap) -> Reported {
        Reported {
            used: self.counts(headers, &self.used).map(Number::up).max(),
            limit: self.counts(headers, &self.limit).map(Number::down).min(),
            ..Reported::new()
        }
    }

    /// The counts of this window, in every line of one header.
    fn counts(&self, headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = Number> {
        let lines = headers.get_all(name).iter();
        let members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        members.filter_map(|member| {
            let (count, seconds) = pair(member, b':')?;
            (seconds.exact()? == self.seconds).then_some(count)
        })
    }
}

// === impl Quotient ===

impl Quotient {
    pub(super) fn shopify() -> Self {
        Self {
            name: HeaderName::from_static("x-shopify-shop-api-call-limit"),
        }
    }

    pub(super) fn read(&self, headers: &HeaderMap) -> Reported {
        let pairs = || {
            let lines = headers.get_all(&self.name).iter();
            lines.filter_map(|line| pair(line.as_bytes(), b'/'))
        };
        Reported {
            used: pairs().map(|(used, _)| used.up()).max(),
            limit: pairs().map(|(_, limit)| limit.down()).min(),
            ..Reported::new()
        }
    }
}

fn pair(text: &[u8], separator: u8) -> Option<(Number, Number)> {
    // A second separator is left in the second part, which it makes malformed.
    let mut parts = text.splitn(2, |byte| *byte == separator);
    Some((Number::parse(parts.next()?)?, Number::parse(parts.next()?)?))
}

fn whole_seconds(window: Duration) -> Result<u64, ConfigError> {
    if window.is_zero() || window.subsec_nanos() != 0 {
        let expected = "a whole number of seconds above zero";
        return Err(ConfigError::new("window", window, expected));
    }
    Ok(window.as_secs())
}
