//! The one grammar for numbers in usage headers.

use http::{HeaderMap, HeaderName};

/// An unsigned decimal number, of whose fraction only the presence is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    whole: u64,
    has_fraction: bool,
}

/// The largest valid number among the lines of one header, rounded up.
pub(super) fn most(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    numbers(headers, name).map(Number::up).max()
}

/// The smallest valid number among the lines of one header, rounded down.
pub(super) fn least(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    numbers(headers, name).map(Number::down).min()
}

// === impl Number ===

impl Number {
    /// Parses `1*DIGIT [ "." 1*DIGIT ]` with blanks around it, unless the whole part does not fit.
    ///
    /// A count of more than 64 bits would saturate, but no limit is near: it is not a count.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let mut parts = value.splitn(2, |byte| *byte == b'.');
        let whole = digits(parts.next()?)?;
        let fraction = match parts.next() {
            Some(fraction) => digits(fraction)?,
            None => &[],
        };

        let whole = whole.iter().try_fold(0_u64, |sum, digit| {
            sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })?;
        Some(Self {
            whole,
            has_fraction: fraction.iter().any(|digit| *digit != b'0'),
        })
    }

    /// The number, rounded up.
    pub(super) fn up(self) -> u64 {
        self.whole.saturating_add(self.has_fraction.into())
    }

    /// The number, rounded down.
    pub(super) fn down(self) -> u64 {
        self.whole
    }

    /// The number, if it is whole.
    pub(super) fn exact(self) -> Option<u64> {
        (!self.has_fraction).then_some(self.whole)
    }
}

fn numbers(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = Number> {
    let lines = headers.get_all(name).iter();
    lines.filter_map(|line| Number::parse(line.as_bytes()))
}

fn digits(text: &[u8]) -> Option<&[u8]> {
    let valid = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    valid.then_some(text)
}
