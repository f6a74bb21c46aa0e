use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use tower_outcome_core::{ResetUnit, RetryAfter};

use super::*;

mod ietf;
mod names;
mod pairs;
mod properties;
mod resets;

/// 2026-09-21 14:13:20 UTC.
const NOW_SECONDS: u64 = 1_790_000_000;

/// What an assertion says about a response that says nothing.
const NOTHING: Reported = Reported::new();

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + secs(NOW_SECONDS)
}

fn headers<N: AsRef<str>, V: AsRef<[u8]>>(lines: &[(N, V)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_ref().as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_ref()).unwrap());
    }
    headers
}

/// What is read from these lines, [`NOTHING`] if nothing is.
fn read(usage: &UsageHeaders, lines: &[(&str, &str)]) -> Reported {
    let reported = usage.read(&headers(lines), now());
    assert_ne!(reported, Some(NOTHING), "an empty report of {lines:?}");
    reported.unwrap_or_default()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Each dialect, with a response that says something in it.
fn dialects() -> Vec<(UsageHeaders, Vec<(&'static str, &'static str)>)> {
    let unit = ResetUnit::DeltaSeconds;
    let second = secs(1);
    let names = UsageNames::new().used(HeaderName::from_static("x-sapi-used-ip-weight-1m"));
    vec![
        (
            UsageHeaders::mbx_used_weight("1m").unwrap(),
            vec![("x-mbx-used-weight-1m", "1")],
        ),
        (
            UsageHeaders::mbx_order_count("10s").unwrap(),
            vec![("x-mbx-order-count-10s", "1")],
        ),
        (
            UsageHeaders::x_rate_limit(unit),
            vec![("x-ratelimit-remaining", "1")],
        ),
        (
            UsageHeaders::x_rate_limit_with("x-rate-limit", unit).unwrap(),
            vec![("x-rate-limit-remaining", "1")],
        ),
        (
            UsageHeaders::named(names).unwrap(),
            vec![("x-sapi-used-ip-weight-1m", "1")],
        ),
        (
            UsageHeaders::ietf(None).unwrap(),
            vec![("ratelimit", "\"default\";r=50;t=30")],
        ),
        (
            UsageHeaders::ietf(None).unwrap(),
            vec![("ratelimit-remaining", "50")],
        ),
        (UsageHeaders::bybit(), vec![("x-bapi-limit-status", "1")]),
        (
            UsageHeaders::riot_app(second).unwrap(),
            vec![("x-app-rate-limit-count", "1:1")],
        ),
        (
            UsageHeaders::riot_method(second).unwrap(),
            vec![("x-method-rate-limit-count", "1:1")],
        ),
        (
            UsageHeaders::shopify(),
            vec![("x-shopify-shop-api-call-limit", "32/40")],
        ),
        (
            UsageHeaders::custom(|_| Some(Reported::new().with_used(1))),
            vec![],
        ),
    ]
}

#[test]
fn an_answer_of_a_cache_says_nothing() {
    for (usage, lines) in dialects() {
        let with_ages = |ages: &[&'static str]| {
            let ages = ages.iter().map(|age| ("age", *age));
            let lines: Vec<_> = lines.iter().copied().chain(ages).collect();
            read(&usage, &lines)
        };
        assert_ne!(with_ages(&[]), NOTHING, "{usage:?}");
        for fresh in ["0", "00", " 0 "] {
            assert_ne!(with_ages(&[fresh]), NOTHING, "{usage:?}, age {fresh}");
        }
        for cached in ["1", "86400", "0.5", "99999999999999999999", "-1", "", "x"] {
            assert_eq!(with_ages(&[cached]), NOTHING, "{usage:?}, age {cached}");
        }
        assert_eq!(with_ages(&["0", "7"]), NOTHING, "{usage:?}");
    }
}

#[test]
fn an_answer_without_headers_says_nothing() {
    for (usage, lines) in dialects() {
        let is_custom = lines.is_empty();
        let reported = usage.read(&HeaderMap::new(), now());
        assert_eq!(reported.is_some(), is_custom, "{usage:?}");
    }
}

#[test]
fn a_custom_reader_sees_the_headers_and_may_say_nothing() {
    let usage = UsageHeaders::custom(|headers| {
        let used = headers.get("x-used")?.to_str().ok()?.parse().ok()?;
        Some(Reported::new().with_used(used))
    });
    assert_eq!(read(&usage, &[("x-used", "7")]).used, Some(7));
    assert_eq!(read(&usage, &[("x-used", "many")]), NOTHING);
    assert_eq!(read(&usage, &[]), NOTHING);
}

#[test]
fn a_custom_report_of_nothing_is_none() {
    let usage = UsageHeaders::custom(|_| Some(Reported::default()));
    assert_eq!(usage.read(&HeaderMap::new(), now()), None);
}

#[test]
fn a_custom_reset_is_limited_to_the_maximum() {
    let usage = UsageHeaders::custom(|_| Some(Reported::new().with_reset(Duration::MAX)));
    assert_eq!(read(&usage, &[]).reset, Some(RetryAfter::MAX));
}

#[test]
fn a_report_is_put_together_field_by_field() {
    let reported = Reported::new()
        .with_used(1)
        .with_remaining(2)
        .with_limit(3)
        .with_reset(secs(4));
    assert_eq!(
        reported,
        Reported {
            used: Some(1),
            remaining: Some(2),
            limit: Some(3),
            reset: Some(secs(4)),
        }
    );
}

#[test]
fn clones_and_threads_share_a_reader() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    for (usage, lines) in dialects() {
        shared(&usage);
        assert_eq!(read(&usage, &lines), read(&usage.clone(), &lines));
    }
}
