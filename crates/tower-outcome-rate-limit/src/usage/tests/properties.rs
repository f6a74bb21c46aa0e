use proptest::prelude::*;

use super::*;

const NAMES: [&str; 21] = [
    "age",
    "date",
    "ratelimit",
    "ratelimit-limit",
    "ratelimit-policy",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-app-rate-limit",
    "x-app-rate-limit-count",
    "x-bapi-limit",
    "x-bapi-limit-reset-timestamp",
    "x-bapi-limit-status",
    "x-mbx-order-count-10s",
    "x-mbx-used-weight-1m",
    "x-method-rate-limit",
    "x-method-rate-limit-count",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-used",
    "x-shopify-shop-api-call-limit",
];

const VALID: [&str; 14] = [
    "0",
    "35",
    "0.493",
    "1790000060",
    "1790000060000",
    "18446744073709551615",
    "999999999999999999999999999999",
    "20:1,100:120",
    "32/40",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "\"a\";r=50;t=30, \"daily\";r=870;t=3600;pk=:cHNzdA==:",
    "\"a\";q=100;w=60, daily;q=1000;qu=\"content-bytes\"",
    "limit=100, remaining=50, reset=30",
    "100, 100;w=60",
];

fn units() -> impl Strategy<Value = ResetUnit> {
    prop_oneof![
        Just(ResetUnit::EpochSeconds),
        Just(ResetUnit::EpochMillis),
        Just(ResetUnit::EpochByMagnitude),
        Just(ResetUnit::DeltaSeconds),
    ]
}

fn readers(unit: ResetUnit) -> [UsageHeaders; 9] {
    [
        UsageHeaders::mbx_used_weight("1m").unwrap(),
        UsageHeaders::mbx_order_count("10s").unwrap(),
        UsageHeaders::x_rate_limit(unit),
        UsageHeaders::ietf(None).unwrap(),
        UsageHeaders::ietf(Some("a")).unwrap(),
        UsageHeaders::bybit(),
        UsageHeaders::riot_app(secs(120)).unwrap(),
        UsageHeaders::riot_method(secs(1)).unwrap(),
        UsageHeaders::shopify(),
    ]
}

/// Any bytes that a header value can hold.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(b'\t'), b' '..=b'~', 0x80..=0xff_u8];
    prop::collection::vec(byte, 0..48)
}

/// A valid value of some header, after up to three small accidents.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let accident = (
        0..5_u8,
        any::<prop::sample::Index>(),
        prop::sample::select(b" \t0159.-+,:;=/\"()qrtw\\\x80\xff".as_slice()),
    );
    (
        prop::sample::select(VALID.as_slice()),
        prop::collection::vec(accident, 0..4),
    )
        .prop_map(|(value, accidents)| {
            let mut value = value.as_bytes().to_vec();
            for (kind, at, byte) in accidents {
                let at = at.index(value.len() + 1);
                match kind {
                    0 => value.insert(at, byte),
                    1 => value.truncate(at),
                    2 => value.extend_from_within(at..),
                    _ if at == value.len() => value.push(byte),
                    3 => value[at] = byte,
                    _ => _ = value.remove(at),
                }
            }
            value
        })
}

fn lines(
    value: impl Strategy<Value = Vec<u8>>,
) -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    prop::collection::vec((prop::sample::select(NAMES.as_slice()), value), 0..12)
}

/// Any time that the platform can hold within 30,000 years of the epoch.
fn times() -> impl Strategy<Value = SystemTime> {
    let seconds = -1_000_000_000_000_i64..1_000_000_000_000;
    (seconds, 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| {
        let distance = Duration::new(seconds.unsigned_abs(), nanos);
        if seconds < 0 {
            SystemTime::UNIX_EPOCH - distance
        } else {
            SystemTime::UNIX_EPOCH + distance
        }
    })
}

fn assert_sane(
    lines: &[(&str, Vec<u8>)],
    unit: ResetUnit,
    now: SystemTime,
) -> Result<(), TestCaseError> {
    let headers = headers(lines);
    for usage in readers(unit) {
        let Some(reported) = usage.read(&headers, now) else {
            continue;
        };
        prop_assert_ne!(reported, NOTHING, "{:?}", usage);
        prop_assert!(reported.reset.unwrap_or_default() <= RetryAfter::MAX);
    }
    Ok(())
}

/// The number grammar, written a second time without looking at the first.
fn parse_number(value: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(value).ok()?;
    let text = text.trim_matches([' ', '\t']);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits =
        |text: &str| !text.is_empty() && text.chars().all(|char| char.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    Some((whole.parse().ok()?, fraction.contains(|digit| digit != '0')))
}

proptest! {
    #[test]
    fn no_bytes_panic_any_reader(lines in lines(bytes()), unit in units(), now in times()) {
        assert_sane(&lines, unit, now)?;
    }

    #[test]
    fn no_mutated_value_panics_any_reader(lines in lines(mutated()), unit in units(), now in times()) {
        assert_sane(&lines, unit, now)?;
    }

    #[test]
    fn a_mutated_value_counts_only_if_the_grammar_allows_it(value in mutated()) {
        let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
        let names = ["x-ratelimit-used", "x-ratelimit-remaining", "x-ratelimit-limit", "x-ratelimit-reset"];
        let lines = names.map(|name| (name, &value));
        let reported = usage.read(&headers(&lines), now()).unwrap_or_default();

        let number = parse_number(&value);
        let up = number.map(|(whole, has_fraction)| whole.saturating_add(has_fraction.into()));
        let down = number.map(|(whole, _)| whole);
        prop_assert_eq!(reported.used, up);
        prop_assert_eq!(reported.remaining, down);
        prop_assert_eq!(reported.limit, down);
        prop_assert_eq!(reported.reset.is_some(), number.is_some());
    }

    #[test]
    fn a_reset_is_never_rounded_down(whole in 0..1_000_000_000_u64, fraction in "[0-9]{1,15}") {
        let value = format!("{whole}.{fraction}");
        let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap());
        let exact = u128::from(whole) * scale + fraction.parse::<u128>().unwrap();
        let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
        let reset = read(&usage, &[("x-ratelimit-reset", &value)]).reset.unwrap();
        prop_assert_eq!(reset.as_nanos(), (exact * 1_000_000_000).div_ceil(scale));
    }

    #[test]
    fn a_point_in_time_is_never_earlier_than_said(wait in 0..1_000_000_000_u64, nanos in 0..1_000_000_000_u32) {
        let arrival = now() + Duration::new(0, nanos);
        let timestamp = (NOW_SECONDS * 1000 + wait).to_string();
        let headers = headers(&[("x-bapi-limit-reset-timestamp", &timestamp)]);
        let reset = UsageHeaders::bybit().read(&headers, arrival).unwrap().reset.unwrap();
        prop_assert!(arrival + reset >= now() + millis(wait));
    }

    #[test]
    fn more_lines_never_make_room(lines in prop::collection::vec(mutated(), 1..5)) {
        let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
        let read = |lines: &[Vec<u8>]| {
            let names = ["x-ratelimit-used", "x-ratelimit-remaining"];
            let lines: Vec<_> = names
                .into_iter()
                .flat_map(|name| lines.iter().map(move |line| (name, line)))
                .collect();
            usage.read(&headers(&lines), now()).unwrap_or_default()
        };
        let together = read(&lines);
        let alone = || lines.chunks(1).map(read);
        prop_assert_eq!(together.used, alone().filter_map(|one| one.used).max());
        prop_assert_eq!(together.remaining, alone().filter_map(|one| one.remaining).min());
    }
}
