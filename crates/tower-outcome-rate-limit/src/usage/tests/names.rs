use super::*;

/// Counts that are no counts.
const MALFORMED: [&str; 14] = [
    "",
    "-1",
    "+1",
    "1,2",
    "1 2",
    "10x",
    "0x10",
    "1e3",
    ".5",
    "5.",
    "1.2.3",
    "many",
    // One more than fits.
    "18446744073709551616",
    "99999999999999999999999999999999999999999999999999",
];

#[test]
fn binance_counts_what_is_used_per_interval() {
    let lines = [
        ("X-MBX-USED-WEIGHT", "17"),
        ("X-MBX-USED-WEIGHT-1M", "4213"),
        ("X-MBX-ORDER-COUNT-10S", "3"),
        ("X-MBX-ORDER-COUNT-1D", "1500"),
    ];
    let weight = |interval| UsageHeaders::mbx_used_weight(interval).unwrap();
    let orders = |interval| UsageHeaders::mbx_order_count(interval).unwrap();
    for (usage, used) in [
        (weight("1m"), Some(4213)),
        (weight("1M"), Some(4213)),
        (weight("5m"), None),
        (weight("10s"), None),
        (orders("10s"), Some(3)),
        (orders("1d"), Some(1500)),
        (orders("1m"), None),
    ] {
        let expected = Reported { used, ..NOTHING };
        assert_eq!(read(&usage, &lines), expected, "{usage:?}");
    }
}

#[test]
fn an_interval_is_a_number_and_a_unit() {
    for interval in [
        "", "m", "1", "0m", "01m", "-1m", "1.5m", "1w", "1mm", " 1m", "1m ", "1 m", "1ü", "ü1m",
    ] {
        for built in [
            UsageHeaders::mbx_used_weight(interval),
            UsageHeaders::mbx_order_count(interval),
        ] {
            let error = built.unwrap_err();
            assert_eq!(error.field(), "interval");
            assert_eq!(error.value(), format!("{interval:?}"));
        }
    }
    let too_long = format!("{}m", "1".repeat(100_000));
    assert!(UsageHeaders::mbx_used_weight(&too_long).is_err());
}

#[test]
fn github_says_all_four() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::EpochSeconds);
    let lines = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "4987"),
        ("x-ratelimit-used", "13"),
        ("x-ratelimit-reset", "1790003600"),
        ("x-ratelimit-resource", "core"),
    ];
    let expected = Reported {
        used: Some(13),
        remaining: Some(4987),
        limit: Some(5000),
        reset: Some(secs(3600)),
    };
    assert_eq!(read(&usage, &lines), expected);
}

#[test]
fn alpaca_says_all_but_what_is_used() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::EpochSeconds);
    let lines = [
        ("X-RateLimit-Limit", "200"),
        ("X-RateLimit-Remaining", "199"),
        ("X-RateLimit-Reset", "1790000060"),
    ];
    let expected = Reported {
        used: None,
        remaining: Some(199),
        limit: Some(200),
        reset: Some(secs(60)),
    };
    assert_eq!(read(&usage, &lines), expected);
}

#[test]
fn a_prefix_is_put_before_the_usual_ends() {
    let lines = [
        ("x-rate-limit-limit", "900"),
        ("x-rate-limit-remaining", "899"),
        ("x-rate-limit-used", "1"),
        ("x-rate-limit-reset", "1790000900"),
        ("x-ratelimit-remaining", "5"),
    ];
    let expected = Reported {
        used: Some(1),
        remaining: Some(899),
        limit: Some(900),
        reset: Some(secs(900)),
    };
    for prefix in ["x-rate-limit", "X-Rate-Limit"] {
        let usage = UsageHeaders::x_rate_limit_with(prefix, ResetUnit::EpochSeconds).unwrap();
        assert_eq!(read(&usage, &lines), expected, "{prefix}");
    }
}

#[test]
fn a_prefix_can_begin_a_header() {
    let too_long = "x".repeat(100_000);
    for prefix in ["", " ", "x rate", "x:", "grün", "x\n", too_long.as_str()] {
        let built = UsageHeaders::x_rate_limit_with(prefix, ResetUnit::DeltaSeconds);
        assert_eq!(built.unwrap_err().field(), "prefix", "{prefix:.20}");
    }
}

#[test]
fn tradier_names_its_own_headers() {
    let usage = UsageHeaders::named(
        UsageNames::new()
            .used(HeaderName::from_static("x-ratelimit-used"))
            .remaining(HeaderName::from_static("x-ratelimit-available"))
            .limit(HeaderName::from_static("x-ratelimit-allowed"))
            .reset(
                HeaderName::from_static("x-ratelimit-expiry"),
                ResetUnit::EpochByMagnitude,
            ),
    )
    .unwrap();
    for expiry in ["1790000046500", "1790000046.5"] {
        let lines = [
            ("X-Ratelimit-Allowed", "120"),
            ("X-Ratelimit-Used", "1"),
            ("X-Ratelimit-Available", "119"),
            ("X-Ratelimit-Expiry", expiry),
        ];
        let expected = Reported {
            used: Some(1),
            remaining: Some(119),
            limit: Some(120),
            reset: Some(millis(46_500)),
        };
        assert_eq!(read(&usage, &lines), expected, "{expiry}");
    }
}

#[test]
fn a_reader_has_something_to_count() {
    let limit = HeaderName::from_static("x-limit");
    let reset = HeaderName::from_static("x-reset");
    let names = UsageNames::new()
        .limit(limit)
        .reset(reset, ResetUnit::DeltaSeconds);
    for names in [UsageNames::new(), names] {
        assert_eq!(UsageHeaders::named(names).unwrap_err().field(), "names");
    }
}

#[test]
fn bybit_counts_what_remains() {
    let usage = UsageHeaders::bybit();
    for (timestamp, reset) in [
        ("1790000000750", millis(750)),
        // What it sends while the limit is not reached, as seen a moment later.
        ("1790000000000", Duration::ZERO),
        ("1789999999250", Duration::ZERO),
        ("0", Duration::ZERO),
    ] {
        let lines = [
            ("X-Bapi-Limit", "10"),
            ("X-Bapi-Limit-Status", "9"),
            ("X-Bapi-Limit-Reset-Timestamp", timestamp),
        ];
        let expected = Reported {
            used: None,
            remaining: Some(9),
            limit: Some(10),
            reset: Some(reset),
        };
        assert_eq!(read(&usage, &lines), expected, "{timestamp}");
    }
}

#[test]
fn a_fraction_never_makes_room() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
    for (value, up, down) in [
        ("598.0", 598, 598),
        ("598.2", 599, 598),
        ("598.000000000000000000001", 599, 598),
        (" 598.9\t", 599, 598),
        ("18446744073709551615.5", u64::MAX, u64::MAX),
        ("0000000000000000000000007", 7, 7),
    ] {
        let lines = [
            ("x-ratelimit-used", value),
            ("x-ratelimit-remaining", value),
            ("x-ratelimit-limit", value),
        ];
        let expected = Reported {
            used: Some(up),
            remaining: Some(down),
            limit: Some(down),
            reset: None,
        };
        assert_eq!(read(&usage, &lines), expected, "{value}");
    }
}

#[test]
fn a_malformed_value_hides_no_other() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
    let valid = [
        ("x-ratelimit-used", "1"),
        ("x-ratelimit-remaining", "2"),
        ("x-ratelimit-limit", "3"),
        ("x-ratelimit-reset", "4"),
    ];
    let all = read(&usage, &valid);
    for value in MALFORMED {
        for (spoilt, expected) in [
            Reported { used: None, ..all },
            Reported {
                remaining: None,
                ..all
            },
            Reported { limit: None, ..all },
            Reported { reset: None, ..all },
        ]
        .into_iter()
        .enumerate()
        {
            let mut lines = valid;
            lines[spoilt].1 = value;
            assert_eq!(read(&usage, &lines), expected, "{lines:?}");
        }
        // A second line with the same name is a value of its own.
        for (name, _) in valid {
            let lines = [&[(name, value)], valid.as_slice()].concat();
            assert_eq!(read(&usage, &lines), all, "{lines:?}");
        }
        let lines = valid.map(|(name, _)| (name, value));
        assert_eq!(read(&usage, &lines), NOTHING, "{value}");
    }
}

#[test]
fn a_value_that_is_not_ascii_is_ignored() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
    // The digits of other scripts are digits to Unicode.
    for value in ["12\u{e9}".as_bytes(), "\u{661}\u{662}".as_bytes(), b"\xff7"] {
        let headers = headers(&[("x-ratelimit-remaining", value)]);
        assert_eq!(usage.read(&headers, now()), None);
    }
}

#[test]
fn of_several_lines_the_one_with_less_room_counts() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
    let lines = [
        ("x-ratelimit-used", "5"),
        ("x-ratelimit-used", "7"),
        ("x-ratelimit-remaining", "5"),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-limit", "12"),
        ("x-ratelimit-reset", "20"),
        ("x-ratelimit-reset", "9"),
    ];
    let expected = Reported {
        used: Some(7),
        remaining: Some(3),
        limit: Some(10),
        reset: Some(secs(20)),
    };
    assert_eq!(read(&usage, &lines), expected);
}

#[test]
fn numbers_that_do_not_fit_each_other_are_passed_on() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
    let lines = [
        ("x-ratelimit-used", "900"),
        ("x-ratelimit-remaining", "700"),
        ("x-ratelimit-limit", "0"),
    ];
    let expected = Reported {
        used: Some(900),
        remaining: Some(700),
        limit: Some(0),
        reset: None,
    };
    assert_eq!(read(&usage, &lines), expected);
}
