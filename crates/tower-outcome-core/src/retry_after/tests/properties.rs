use proptest::prelude::*;

use super::*;

const HINT_HEADERS: [&str; 9] = [
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-amz-retry-after",
    "retry-after",
    "ratelimit",
    "x-ratelimit-reset",
    "ratelimit-reset",
    "x-ratelimit-expiry",
    "x-bapi-limit-reset-timestamp",
];

const OTHER_HEADERS: [&str; 6] = [
    "date",
    "age",
    "x-ratelimit-remaining",
    "ratelimit-remaining",
    "x-ratelimit-available",
    "x-bapi-limit-status",
];

const VALID: [&str; 14] = [
    "0",
    "35",
    "0.493",
    "1790000060",
    "1790000060000",
    "999999999999999999999999999999",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Sat, 31 Dec 2016 23:59:60 GMT",
    "Saturday, 31-Dec-16 23:59:60 GMT",
    "\"default\";r=0;t=30",
    "\"a\";r=0;t=5;pk=:cHNzdA==:, b;r=1;t=60",
];

fn units() -> impl Strategy<Value = ResetUnit> {
    prop_oneof![
        Just(ResetUnit::EpochSeconds),
        Just(ResetUnit::EpochMillis),
        Just(ResetUnit::EpochByMagnitude),
        Just(ResetUnit::DeltaSeconds),
    ]
}

fn every_dialect(unit: ResetUnit) -> HintDialects {
    HintDialects::new()
        .x_rate_limit_reset(unit)
        .rate_limit_reset(unit)
        .tradier_expiry()
        .bybit_reset()
        .amz_retry_after()
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
        prop::sample::select(b" \t0159.-+,:;=\"()eGMTrt\\\x80\xff".as_slice()),
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
    let names = [HINT_HEADERS.as_slice(), OTHER_HEADERS.as_slice()].concat();
    prop::collection::vec((prop::sample::select(names), value), 0..8)
}

/// Any time that the platform can hold within 30,000 years of the epoch.
fn times() -> impl Strategy<Value = SystemTime> {
    (
        -1_000_000_000_000_i64..1_000_000_000_000,
        0..1_000_000_000_u32,
    )
        .prop_map(|(seconds, nanos)| {
            let distance = Duration::new(seconds.unsigned_abs(), nanos);
            if seconds < 0 {
                SystemTime::UNIX_EPOCH - distance
            } else {
                SystemTime::UNIX_EPOCH + distance
            }
        })
}

fn assert_sane(
    lines: &[(&'static str, Vec<u8>)],
    unit: ResetUnit,
    now: SystemTime,
) -> Result<(), TestCaseError> {
    let headers = headers(lines);
    match every_dialect(unit).inspect(&headers, now) {
        Hint::Valid(hint) => prop_assert!(hint.delay() <= RetryAfter::MAX),
        Hint::Invalid(rejected) => {
            prop_assert!(HINT_HEADERS.contains(&rejected.header().as_str()));
            prop_assert!(rejected.value().len() <= 64);
            prop_assert!(
                rejected
                    .value()
                    .bytes()
                    .all(|byte| (b' '..=b'~').contains(&byte))
            );
        }
        Hint::Absent => {}
    }
    for (name, value) in lines {
        let value = HeaderValue::from_bytes(value).unwrap();
        if let Pushback::After(delay) = parse_pushback(&value) {
            prop_assert!(delay <= RetryAfter::MAX, "{}", name);
        }
    }
    Ok(())
}

/// The number grammar, written a second time without looking at the first.
fn is_number(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let text = text.trim_matches([' ', '\t']);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits =
        |text: &str| !text.is_empty() && text.chars().all(|char| char.is_ascii_digit());
    all_digits(whole) && all_digits(fraction)
}

/// The same instant in the other two date forms.
fn other_forms(imf: &str) -> [String; 2] {
    let parts: Vec<&str> = imf
        .split([' ', ','])
        .filter(|part| !part.is_empty())
        .collect();
    let [weekday, day, month, year, time, _gmt] = parts[..] else {
        panic!("not an IMF date: {imf}");
    };
    let long = [
        "Sunday",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
    ];
    let long = long.iter().find(|name| name.starts_with(weekday)).unwrap();
    let unpadded = day.trim_start_matches('0');
    [
        format!("{long}, {day}-{month}-{} {time} GMT", &year[2..]),
        format!("{weekday} {month} {unpadded:>2} {time} {year}"),
    ]
}

proptest! {
    #[test]
    fn no_bytes_panic_any_parser(lines in lines(bytes()), unit in units(), now in times()) {
        assert_sane(&lines, unit, now)?;
    }

    #[test]
    fn no_mutated_value_panics_any_parser(lines in lines(mutated()), unit in units(), now in times()) {
        assert_sane(&lines, unit, now)?;
    }

    #[test]
    fn a_mutated_value_counts_only_if_the_grammar_allows_it(value in mutated()) {
        let seen = |name| {
            let hint = RetryAfter::from_headers(&headers(&[(name, &value)]), now());
            hint.map(|hint| hint.form())
        };
        prop_assert_eq!(seen("retry-after-ms").is_some(), is_number(&value));
        prop_assert_eq!(seen("retry-after") == Some(HintForm::Seconds), is_number(&value));
    }

    #[test]
    fn the_longest_valid_line_wins_whatever_is_beside_it(lines in prop::collection::vec(mutated(), 0..5)) {
        let lines: Vec<_> = lines.into_iter().map(|value| ("retry-after", value)).collect();
        let alone = lines.chunks(1).filter_map(|line| RetryAfter::from_headers(&headers(line), now()));
        let together = RetryAfter::from_headers(&headers(&lines), now());
        prop_assert_eq!(together.map(|hint| hint.delay()), alone.map(|hint| hint.delay()).max());
    }

    #[test]
    fn a_decimal_is_never_rounded_down(whole in 0..1_000_000_000_u64, fraction in "[0-9]{1,15}") {
        let value = format!("{whole}.{fraction}");
        let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap());
        let exact = u128::from(whole) * scale + fraction.parse::<u128>().unwrap();
        for (name, nanos_per_unit) in [("retry-after", 1_000_000_000), ("retry-after-ms", 1_000_000)] {
            let hint = RetryAfter::from_headers(&headers(&[(name, &value)]), now()).unwrap();
            let nanos = hint.delay().as_nanos();
            prop_assert_eq!(nanos, (exact * nanos_per_unit).div_ceil(scale), "{}: {}", name, value);
        }
    }

    #[test]
    fn all_date_forms_are_equal_instants(seconds in 0..6_000_000_000_u64, ahead in -1_500_000_000..1_500_000_000_i64) {
        let date = SystemTime::UNIX_EPOCH + secs(seconds);
        // A two-digit year needs a reader who lives within 50 years of it.
        let near = SystemTime::UNIX_EPOCH + secs(seconds.saturating_add_signed(-ahead));
        let imf = httpdate::fmt_http_date(date);
        let [rfc_850, asctime] = other_forms(&imf);
        for text in [imf, rfc_850, asctime] {
            let parsed = date::parse(&HeaderValue::from_str(&text).unwrap(), near);
            prop_assert_eq!(parsed, Some(date), "{}", text);
        }
    }

    #[test]
    fn a_date_is_never_earlier_than_asked(wait in 0..1_000_000_u64, nanos in 0..1_000_000_000_u32) {
        let now = now() + Duration::new(0, nanos);
        let date = httpdate::fmt_http_date(self::now() + secs(wait));
        let hint = RetryAfter::from_headers(&headers(&[("retry-after", &date)]), now).unwrap();
        prop_assert!(now + hint.delay() >= self::now() + secs(wait));
    }
}
