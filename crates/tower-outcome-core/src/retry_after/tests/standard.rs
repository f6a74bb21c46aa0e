use super::*;

const MALFORMED: [&str; 26] = [
    "", " ", "-3", "-1", "-5", "+3", "120junk", "junk", "1e3", "NaN", "inf", "0x10", "1 0", "1\t0",
    "5.", ".5", ".", "1.5.", "1.2.3", "1,5", "5, 10", "1.-5", "--1", "1_000", "null", "\"5\"",
];

#[test]
fn delta_seconds_are_the_wait() {
    for (value, expected) in [
        ("0", secs(0)),
        ("35", secs(35)),
        ("3600", secs(3600)),
        ("0035", secs(35)),
        (" 5 ", secs(5)),
        ("\t5\t", secs(5)),
    ] {
        let expected = Some((expected, HintForm::Seconds));
        assert_eq!(hint(&[("retry-after", value)]), expected, "{value:?}");
    }
}

#[test]
fn a_fraction_is_kept_and_rounded_up_never_down() {
    for (value, expected) in [
        ("2.0", secs(2)),
        ("1.5", millis(1500)),
        ("0.493", millis(493)),
        ("0.0001", Duration::from_micros(100)),
        ("0.000000001", Duration::from_nanos(1)),
        ("0.0000000001", Duration::from_nanos(1)),
        ("0.0000000000", Duration::ZERO),
        ("0.1234567890", Duration::from_nanos(123_456_789)),
        ("0.1234567891", Duration::from_nanos(123_456_790)),
        ("0.9999999999", secs(1)),
        ("7.99999999999999999999999999999999", secs(8)),
    ] {
        let expected = Some((expected, HintForm::Seconds));
        assert_eq!(hint(&[("retry-after", value)]), expected, "{value:?}");
    }
}

#[test]
fn a_fraction_of_a_millisecond_is_rounded_up_never_down() {
    for (value, expected) in [
        ("250", millis(250)),
        ("250.0", millis(250)),
        ("0.5", Duration::from_micros(500)),
        ("0.0000001", Duration::from_nanos(1)),
        ("1.0000001", Duration::from_nanos(1_000_001)),
        ("1.000001", Duration::from_nanos(1_000_001)),
        ("1.0000011", Duration::from_nanos(1_000_002)),
    ] {
        let expected = Some((expected, HintForm::Milliseconds));
        assert_eq!(hint(&[("retry-after-ms", value)]), expected, "{value:?}");
    }
}

#[test]
fn huge_numbers_saturate_at_the_maximum() {
    let digits = [
        "3153600001",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551620", // ten times a number that still fits
        "99999999999999999999",
        "999999999999999999999999999999",
        "18446744073709551615.9999999999",
    ];
    for value in digits
        .map(str::to_owned)
        .into_iter()
        .chain(["9".repeat(9000)])
    {
        let expected = Some((RetryAfter::MAX, HintForm::Seconds));
        assert_eq!(hint(&[("retry-after", &value)]), expected, "{value:?}");
    }
    assert_eq!(
        hint(&[("retry-after-ms", "999999999999999999999999999999")]),
        Some((RetryAfter::MAX, HintForm::Milliseconds))
    );
}

#[test]
fn malformed_numbers_are_no_hint() {
    for header in ["retry-after", "retry-after-ms", "x-ms-retry-after-ms"] {
        for value in MALFORMED {
            assert_eq!(hint(&[(header, value)]), None, "{header}: {value:?}");
        }
        let bytes = headers(&[(header, b"5\xff")]);
        assert_eq!(RetryAfter::from_headers(&bytes, now()), None);
        let digits = headers(&[(header, "\u{0665}")]); // ARABIC-INDIC DIGIT FIVE
        assert_eq!(RetryAfter::from_headers(&digits, now()), None);
    }
}

#[test]
fn milliseconds_are_read_before_seconds() {
    for (lines, expected) in [
        (
            &[("retry-after", "1"), ("retry-after-ms", "250")][..],
            millis(250),
        ),
        (
            &[("retry-after", "1"), ("x-ms-retry-after-ms", "750")],
            millis(750),
        ),
        (
            &[("x-ms-retry-after-ms", "750"), ("retry-after-ms", "250")],
            millis(250),
        ),
    ] {
        let expected = Some((expected, HintForm::Milliseconds));
        assert_eq!(hint(lines), expected, "{lines:?}");
    }
}

#[test]
fn a_malformed_hint_masks_no_valid_one() {
    for value in MALFORMED {
        assert_eq!(
            hint(&[("retry-after-ms", value), ("retry-after", "7")]),
            Some((secs(7), HintForm::Seconds)),
            "{value:?} in a finer header"
        );
        assert_eq!(
            hint(&[("retry-after", value), ("ratelimit", "\"a\";r=0;t=9")]),
            Some((secs(9), HintForm::RateLimit)),
            "{value:?} in Retry-After"
        );
        assert_eq!(
            hint(&[("retry-after", value), ("retry-after", "7")]),
            Some((secs(7), HintForm::Seconds)),
            "{value:?} in the line before"
        );
    }
}

#[test]
fn the_longest_of_several_lines_wins() {
    for order in [["5", "120", "7"], ["120", "-1", "5"], ["5", "7", "120"]] {
        let lines = order.map(|value| ("retry-after", value));
        assert_eq!(hint(&lines), Some((secs(120), HintForm::Seconds)));
    }
}

#[test]
fn an_exhausted_policy_of_the_rate_limit_field_is_a_hint() {
    for (value, expected) in [
        ("\"default\";r=0;t=30", Some(secs(30))),
        ("default;r=0;t=30", Some(secs(30))),
        ("\"a\";t=30;r=0;pk=:cHNzdA==:", Some(secs(30))),
        ("\"a\";r=0;t=0", Some(secs(0))),
        (
            "\"a\";r=0;t=5, \"b\";r=0;t=60, \"c\";r=0;t=9",
            Some(secs(60)),
        ),
        ("\"a\";r=0;t=5,\"b\";r=9;t=60", Some(secs(5))),
        ("\"a\";r=0;t=999999999999999", Some(RetryAfter::MAX)),
        // Nothing is exhausted, or nobody knows until when.
        ("\"a\";r=1;t=30", None),
        ("\"a\";r=0", None),
        ("\"a\";t=30", None),
        ("\"a\"", None),
        ("", None),
        // Not what the draft says these parameters are.
        ("\"a\";r=0;t=-1", None),
        ("\"a\";r=-1;t=30", None),
        ("\"a\";r=0;t=1.5", None),
        ("\"a\";r=0;t=\"30\"", None),
        ("\"a\";r=0;t", None),
        ("\"a\";r=?0;t=30", None),
        ("(\"a\" \"b\");r=0;t=30", None),
        // No structured field list.
        ("\"a\";r=0;t=30,", None),
        ("\"a;r=0;t=30", None),
        ("\"a\";r=0;t=1000000000000000", None),
        ("limit=100, remaining=0, reset=30", None),
    ] {
        let expected = expected.map(|delay| (delay, HintForm::RateLimit));
        assert_eq!(hint(&[("ratelimit", value)]), expected, "{value:?}");
    }
}

#[test]
fn a_malformed_rate_limit_line_masks_no_other() {
    assert_eq!(
        hint(&[("ratelimit", "\"a"), ("ratelimit", "\"b\";r=0;t=30")]),
        Some((secs(30), HintForm::RateLimit))
    );
    assert_eq!(
        hint(&[
            ("ratelimit", "\"a\";r=0;t=9"),
            ("ratelimit", "\"b\";r=0;t=30")
        ]),
        Some((secs(30), HintForm::RateLimit))
    );
}

#[test]
fn a_rate_limit_policy_alone_is_no_hint() {
    assert_eq!(hint(&[("ratelimit-policy", "\"a\";q=0;w=60")]), None);
}

#[test]
fn a_rate_limit_from_a_cache_is_no_hint() {
    assert_eq!(
        hint(&[("ratelimit", "\"a\";r=0;t=30"), ("age", "12")]),
        None
    );
}

#[test]
fn retry_after_wins_over_the_rate_limit_field() {
    assert_eq!(
        hint(&[("ratelimit", "\"a\";r=0;t=30"), ("retry-after", "3")]),
        Some((secs(3), HintForm::Seconds))
    );
}

#[test]
fn reset_headers_are_not_read_without_opt_in() {
    for header in [
        "x-ratelimit-reset",
        "ratelimit-reset",
        "x-ratelimit-expiry",
        "x-bapi-limit-reset-timestamp",
        "x-amz-retry-after",
    ] {
        let lines = headers(&[(header, "1790000060000")]);
        assert_eq!(RetryAfter::inspect(&lines, now()), Hint::Absent, "{header}");
    }
}
