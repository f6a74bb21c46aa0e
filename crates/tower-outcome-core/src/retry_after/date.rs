//! HTTP dates (RFC 9110, section 5.6.7), and the time they are measured against.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, header};

/// A year of the Gregorian calendar, on average, in seconds.
const YEAR: u64 = 31_556_952;

const LEAP_SECOND: &str = "23:59:60";

const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// The time that a date in this response is measured against.
///
/// Of several `Date` lines the earliest counts, which makes the wait the longest.
pub(super) fn reference(headers: &HeaderMap, now: SystemTime) -> SystemTime {
    headers
        .get_all(header::DATE)
        .iter()
        .filter_map(|value| parse(value, now))
        .min()
        .unwrap_or(now)
}

/// Parses the three date forms, case-sensitive and to the letter.
///
/// `near` tells the century of a two-digit year. A weekday that does not fit the date makes it
/// malformed, and so does a year before 1970.
pub(super) fn parse(value: &HeaderValue, near: SystemTime) -> Option<SystemTime> {
    let text = value.to_str().ok()?.trim();

    // The grammar allows a leap second. POSIX time has none: it is the second that follows.
    if text.contains(LEAP_SECOND) {
        let text = text.replacen(LEAP_SECOND, "23:59:59", 1);
        return parse_form(&text, near)?.checked_add(Duration::from_secs(1));
    }
    parse_form(text, near)
}

fn parse_form(text: &str, near: SystemTime) -> Option<SystemTime> {
    match with_full_year(text, near) {
        Some(text) => httpdate::parse_http_date(&text).ok(),
        None => httpdate::parse_http_date(text).ok(),
    }
}

/// Rewrites `Sunday, 06-Nov-94 08:49:37 GMT` as `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// A parser without a clock has to guess the century; RFC 9110 wants the latest year that is at
/// most 50 years ahead.
fn with_full_year(text: &str, near: SystemTime) -> Option<String> {
    let (weekday, rest) = text.split_once(", ")?;
    if !WEEKDAYS.contains(&weekday) {
        return None;
    }
    let (date, time) = rest.split_once(' ')?;
    let mut date = date.split('-');
    let (day, month, year) = (date.next()?, date.next()?, date.next()?);
    if date.next().is_some() || year.len() != 2 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let year: u64 = year.parse().ok()?;

    let since_epoch = near
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let latest = 1970 + since_epoch.as_secs() / YEAR + 50;
    let year = latest - (latest - year) % 100;
    Some(format!("{}, {day} {month} {year} {time}", &weekday[..3]))
}
