use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;

mod dates;
mod dialects;
mod properties;
mod pushback;
mod rejected;
mod standard;

/// 2026-09-21 14:13:20 UTC.
const NOW_SECONDS: u64 = 1_790_000_000;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW_SECONDS)
}

fn headers<V: AsRef<[u8]>>(lines: &[(&str, V)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_ref()).unwrap());
    }
    headers
}

/// The hint in these headers, without dialects.
fn hint(lines: &[(&str, &str)]) -> Option<(Duration, HintForm)> {
    let hint = RetryAfter::from_headers(&headers(lines), now());
    hint.map(|hint| (hint.delay(), hint.form()))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_hint_made_by_the_user_is_limited_to_the_maximum() {
    let custom = |delay| RetryAfter::new(delay, HintForm::Custom).delay();
    assert_eq!(custom(Duration::MAX), RetryAfter::MAX);
    assert_eq!(
        custom(RetryAfter::MAX + Duration::from_nanos(1)),
        RetryAfter::MAX
    );
    let below = RetryAfter::MAX - Duration::from_nanos(1);
    assert_eq!(custom(below), below);
}

#[test]
fn the_maximum_can_be_added_to_the_time_of_day() {
    assert!(now().checked_add(RetryAfter::MAX).is_some());
}
