//! gRPC's `grpc-timeout` header: reading and writing, no clock.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The most that the eight digits of a value can say.
const MOST: u128 = 99_999_999;

/// The units, finest first, and how many nanoseconds each has.
const UNITS: [(char, u128); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    ('H', 3_600_000_000_000),
];

/// Reads how long a caller gives its call. What is no time by gRPC's grammar says nothing.
pub(crate) fn read(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(GRPC_TIMEOUT)?.to_str().ok()?;
    let mut digits = value.chars();
    let unit = digits.next_back()?;
    let digits = digits.as_str();
    // Checked because `parse` takes a sign.
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        'n' => Some(Duration::from_nanos(number)),
        'u' => Some(Duration::from_micros(number)),
        'm' => Some(Duration::from_millis(number)),
        'S' => Some(Duration::from_secs(number)),
        'M' => Some(Duration::from_secs(number.saturating_mul(60))),
        'H' => Some(Duration::from_secs(number.saturating_mul(3_600))),
        _ => None,
    }
}

/// Writes how long there is left, in the finest unit that eight digits can say it in; never more.
pub(crate) fn write(left: Duration) -> HeaderValue {
    let nanos = left.as_nanos();
    let said = UNITS
        .into_iter()
        .map(|(unit, size)| (nanos / size, unit))
        .find(|(number, _)| *number <= MOST);
    let (number, unit) = said.unwrap_or((MOST, 'H'));
    HeaderValue::try_from(format!("{number}{unit}")).expect("digits and a letter")
}

#[cfg(test)]
mod tests;
