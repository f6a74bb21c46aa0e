//! The time until some of a limit comes back.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};
use tower_outcome_core::{HintDialects, ResetUnit};

use super::number::Number;

/// The header that the core reads a reset from, in any unit.
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The longest wait that the lines of one header ask for.
///
/// The core knows what the units mean and how to measure a point in time, so the header goes to it
/// under the name that it reads. Its companion does not: here a reset is read whatever remains.
pub(super) fn read(
    headers: &HeaderMap,
    name: &HeaderName,
    unit: ResetUnit,
    now: SystemTime,
) -> Option<Duration> {
    let mut lines = HeaderMap::with_capacity(2);
    for line in headers.get_all(name) {
        // The core accepts a number of any length, which then is the longest wait it knows.
        if Number::parse(line.as_bytes()).is_some() {
            lines.append(RESET, line.clone());
        }
    }
    if lines.is_empty() {
        return None;
    }
    for date in headers.get_all(header::DATE) {
        lines.append(header::DATE, date.clone());
    }
    let hint = HintDialects::new()
        .x_rate_limit_reset(unit)
        .parse(&lines, now)?;
    Some(hint.delay())
}
