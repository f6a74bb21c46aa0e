use super::*;

fn delay(dialects: HintDialects, lines: &[(&str, &str)]) -> Option<Duration> {
    let hint = dialects.parse(&headers(lines), now());
    hint.map(|hint| hint.delay())
}

const EPOCH_SECONDS: HintDialects = HintDialects::new().x_rate_limit_reset(ResetUnit::EpochSeconds);

/// Each reset header, what counts its remaining requests, and the dialect that reads it as an
/// epoch in milliseconds.
fn epoch_millis_dialects() -> [(&'static str, &'static str, HintDialects); 4] {
    let none = HintDialects::new();
    let unit = ResetUnit::EpochMillis;
    [
        (
            "x-ratelimit-reset",
            "x-ratelimit-remaining",
            none.x_rate_limit_reset(unit),
        ),
        (
            "ratelimit-reset",
            "ratelimit-remaining",
            none.rate_limit_reset(unit),
        ),
        (
            "x-ratelimit-expiry",
            "x-ratelimit-available",
            none.tradier_expiry(),
        ),
        (
            "x-bapi-limit-reset-timestamp",
            "x-bapi-limit-status",
            none.bybit_reset(),
        ),
    ]
}

#[test]
fn a_reset_is_read_in_the_chosen_unit() {
    for (unit, value, expected) in [
        (ResetUnit::EpochSeconds, "1790000060", secs(60)),
        (ResetUnit::EpochSeconds, "1790000060.25", millis(60_250)),
        (ResetUnit::EpochMillis, "1790000000200", millis(200)),
        (ResetUnit::DeltaSeconds, "60", secs(60)),
        (ResetUnit::DeltaSeconds, "0.493", millis(493)),
        (ResetUnit::EpochByMagnitude, "1790000060", secs(60)),
        (ResetUnit::EpochByMagnitude, "1790000060000", secs(60)),
    ] {
        for remaining in ["x-ratelimit-remaining", "ratelimit-remaining"] {
            let (reset, dialects) = if remaining.starts_with('x') {
                (
                    "x-ratelimit-reset",
                    HintDialects::new().x_rate_limit_reset(unit),
                )
            } else {
                (
                    "ratelimit-reset",
                    HintDialects::new().rate_limit_reset(unit),
                )
            };
            let lines = headers(&[(reset, value), (remaining, "0")]);
            assert_eq!(
                dialects.parse(&lines, now()),
                Some(RetryAfter::new(expected, HintForm::Reset)),
                "{reset}: {value} as {unit:?}"
            );
        }
    }
}

#[test]
fn an_epoch_above_ten_to_the_eleven_counts_milliseconds() {
    let dialects = HintDialects::new().tradier_expiry();
    let at = |value, now: u64| {
        let lines = headers(&[("x-ratelimit-expiry", value)]);
        let hint = dialects.parse(&lines, SystemTime::UNIX_EPOCH + secs(now));
        hint.unwrap().delay()
    };
    assert_eq!(at("100000000000", 99_999_999_999), secs(1));
    assert_eq!(at("100000000001", 100_000_000), millis(1));
}

#[test]
fn a_reset_is_read_only_if_nothing_remains() {
    for (reset, remaining, dialects) in epoch_millis_dialects() {
        for (lines, expected) in [
            (&[][..], true),
            (&["0"], true),
            (&["0.0"], true),
            (&["1"], false),
            (&["0.5"], false),
            (&["5000"], false),
            (&["7", "0"], true),
            (&["7", "junk"], false),
            // Says nothing, so it may not mask the reset.
            (&["junk"], true),
            (&["-1"], true),
            (&[""], true),
        ] {
            let mut all = vec![(reset, "1790000000200")];
            all.extend(lines.iter().map(|value| (remaining, *value)));
            assert_eq!(
                delay(dialects, &all),
                expected.then_some(millis(200)),
                "{all:?}"
            );
        }
    }
}

#[test]
fn a_past_reset_is_a_wait_of_zero() {
    for (reset, _, dialects) in epoch_millis_dialects() {
        for value in ["1789999999800", "1790000000000", "0"] {
            assert_eq!(
                delay(dialects, &[(reset, value)]),
                Some(Duration::ZERO),
                "{reset}: {value}"
            );
        }
    }
}

#[test]
fn a_reset_is_measured_against_the_date_of_the_response() {
    // The server's clock is ten minutes ahead of ours.
    let date = httpdate::fmt_http_date(now() + secs(600));
    let lines = [("x-ratelimit-reset", "1790000660"), ("date", &date)];
    assert_eq!(delay(EPOCH_SECONDS, &lines), Some(secs(60)));
}

#[test]
fn a_huge_reset_saturates_at_the_maximum() {
    let huge = "999999999999999999999999999999";
    for (reset, _, dialects) in epoch_millis_dialects() {
        assert_eq!(delay(dialects, &[(reset, huge)]), Some(RetryAfter::MAX));
    }
    for unit in [ResetUnit::EpochSeconds, ResetUnit::DeltaSeconds] {
        let dialects = HintDialects::new().x_rate_limit_reset(unit);
        let lines = [("x-ratelimit-reset", huge)];
        assert_eq!(delay(dialects, &lines), Some(RetryAfter::MAX));
    }
}

#[test]
fn a_malformed_reset_is_no_hint() {
    for (reset, _, dialects) in epoch_millis_dialects() {
        for value in ["", "-3", "+3", "120junk", "1e3", "NaN", "0x10", "1 0"] {
            let lines = headers(&[(reset, value)]);
            assert!(
                matches!(dialects.inspect(&lines, now()), Hint::Invalid(_)),
                "{reset}: {value:?}"
            );
        }
    }
}

#[test]
fn a_reset_ranks_after_every_other_hint() {
    let reset = ("x-ratelimit-reset", "1790000060");
    for (line, expected) in [
        (("retry-after", "2"), secs(2)),
        (("retry-after-ms", "7"), millis(7)),
        (("ratelimit", "\"a\";r=0;t=5"), secs(5)),
        // Malformed or without a wait, so the reset is next.
        (("retry-after", ""), secs(60)),
        (("ratelimit", "\"a\";r=9;t=5"), secs(60)),
    ] {
        assert_eq!(
            delay(EPOCH_SECONDS, &[reset, line]),
            Some(expected),
            "{line:?}"
        );
    }
}

#[test]
fn the_longest_of_several_resets_wins() {
    let dialects = EPOCH_SECONDS.bybit_reset().tradier_expiry();
    let mut lines = vec![
        ("x-bapi-limit-reset-timestamp", "1790000000200"),
        ("x-ratelimit-expiry", "1790000300000"),
        ("x-ratelimit-reset", "1790000060"),
    ];
    assert_eq!(delay(dialects, &lines), Some(secs(300)));
    // The longest one does not apply.
    lines.push(("x-ratelimit-available", "3"));
    assert_eq!(delay(dialects, &lines), Some(secs(60)));
}

#[test]
fn the_amazon_wait_counts_milliseconds_and_ranks_before_retry_after() {
    let dialects = HintDialects::new().amz_retry_after();
    let lines = headers(&[("x-amz-retry-after", "1500"), ("retry-after", "1")]);
    assert_eq!(
        dialects.parse(&lines, now()),
        Some(RetryAfter::new(millis(1500), HintForm::Milliseconds))
    );
}

#[test]
fn without_a_dialect_the_standard_headers_are_read() {
    let lines = headers(&[("retry-after", "35"), ("x-ratelimit-reset", "1790000060")]);
    let hint = HintDialects::default().parse(&lines, now());
    assert_eq!(hint, RetryAfter::from_headers(&lines, now()));
    assert_eq!(hint.map(|hint| hint.delay()), Some(secs(35)));
}
