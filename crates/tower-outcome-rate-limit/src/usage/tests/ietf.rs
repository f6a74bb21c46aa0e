use super::*;

fn any() -> UsageHeaders {
    UsageHeaders::ietf(None).unwrap()
}

fn policy(name: &str) -> UsageHeaders {
    UsageHeaders::ietf(Some(name)).unwrap()
}

/// The remainder, the limit and the reset in seconds, as `RateLimit` says them.
fn left(remaining: u64, limit: impl Into<Option<u64>>, reset: impl Into<Option<u64>>) -> Reported {
    Reported {
        used: None,
        remaining: Some(remaining),
        limit: limit.into(),
        reset: reset.into().map(secs),
    }
}

#[test]
fn a_policy_is_read_by_its_name() {
    let lines = [
        (
            "RateLimit-Policy",
            "\"burst\";q=100;w=60,\"daily\";q=1000;w=86400",
        ),
        ("RateLimit", "\"burst\";r=50;t=30, \"daily\";r=870;t=3600"),
    ];
    assert_eq!(read(&policy("burst"), &lines), left(50, 100, 30));
    assert_eq!(read(&policy("daily"), &lines), left(870, 1000, 3600));
    assert_eq!(read(&policy("weekly"), &lines), NOTHING);
    assert_eq!(read(&policy("Burst"), &lines), NOTHING);
}

#[test]
fn lists_may_be_split_over_lines() {
    let lines = [
        ("RateLimit-Policy", "\"burst\";q=100;w=60"),
        ("RateLimit-Policy", "\"daily\";q=1000;w=86400"),
        ("RateLimit", "\"burst\";r=50;t=30"),
        ("RateLimit", "\"daily\";r=870;t=3600"),
    ];
    assert_eq!(read(&policy("burst"), &lines), left(50, 100, 30));
    assert_eq!(read(&policy("daily"), &lines), left(870, 1000, 3600));
}

#[test]
fn without_a_name_the_policy_with_the_least_left_is_read() {
    for (state, expected) in [
        ("\"burst\";r=50;t=30", left(50, 100, 30)),
        (
            "\"burst\";r=50;t=30, \"daily\";r=870;t=3600",
            left(50, 100, 30),
        ),
        (
            "\"burst\";r=50;t=30, \"daily\";r=3;t=3600",
            left(3, 1000, 3600),
        ),
        (
            "\"burst\";r=0;t=30, \"daily\";r=0;t=3600",
            left(0, 1000, 3600),
        ),
        // No word on what remains is no reason to be read first.
        (
            "\"burst\";t=30, \"daily\";r=870;t=3600",
            left(870, 1000, 3600),
        ),
        ("\"other\";r=7", left(7, None, None)),
    ] {
        let lines = [
            ("ratelimit-policy", "\"burst\";q=100, \"daily\";q=1000"),
            ("ratelimit", state),
        ];
        assert_eq!(read(&any(), &lines), expected, "{state}");
    }
}

#[test]
fn what_is_not_known_to_be_requests_is_read_by_name_only() {
    for (unit, counts_requests) in [
        ("\"requests\"", true),
        ("requests", true),
        ("\"content-bytes\"", false),
        ("\"concurrent-requests\"", false),
        ("7", false),
        ("?1", false),
    ] {
        let described = format!("\"a\";q=65535;qu={unit}, \"b\";q=100");
        let lines = [
            ("ratelimit-policy", described.as_str()),
            ("ratelimit", "\"a\";r=3;t=10, \"b\";r=50;t=30"),
        ];
        let a = left(3, 65_535, 10);
        let unnamed = if counts_requests {
            a
        } else {
            left(50, 100, 30)
        };
        assert_eq!(read(&any(), &lines), unnamed, "{unit}");
        assert_eq!(read(&policy("a"), &lines), a, "{unit}");
    }
}

#[test]
fn of_several_partitions_the_one_with_the_least_left_is_read() {
    let lines = [
        ("ratelimit-policy", "\"a\";q=100;pk=:cHNzdA==:, \"a\";q=90"),
        (
            "ratelimit",
            "\"a\";r=8;t=60;pk=:cHNzdA==:, \"a\";r=5;t=9, \"a\";r=5;t=10, \"b\";r=0;t=1",
        ),
    ];
    assert_eq!(read(&policy("a"), &lines), left(5, 90, 10));
}

#[test]
fn a_policy_alone_says_the_limit() {
    let limit = |limit| Reported { limit, ..NOTHING };
    for (described, unnamed, named) in [
        ("\"a\";q=100;w=60", Some(100), Some(100)),
        ("\"a\";q=100, \"a\";q=90", Some(90), Some(90)),
        ("\"a\";q=100, \"b\";q=50", None, Some(100)),
        (
            "\"a\";q=100, \"b\";q=50;qu=\"content-bytes\"",
            Some(100),
            Some(100),
        ),
        ("\"a\";q=-100", None, None),
        ("\"a\";w=60", None, None),
        ("\"b\";q=50", Some(50), None),
    ] {
        let lines = [("ratelimit-policy", described)];
        assert_eq!(read(&any(), &lines), limit(unnamed), "{described}");
        assert_eq!(read(&policy("a"), &lines), limit(named), "{described}");
    }
}

#[test]
fn a_malformed_parameter_hides_no_other() {
    for (state, expected) in [
        ("\"a\";r=-1;t=30", Reported::new().with_reset(secs(30))),
        ("\"a\";r=1.5;t=30", Reported::new().with_reset(secs(30))),
        ("\"a\";r=\"1\";t=30", Reported::new().with_reset(secs(30))),
        ("\"a\";r=5;t=-30", Reported::new().with_remaining(5)),
        ("\"a\";r=5;t", Reported::new().with_remaining(5)),
        ("\"a\";r=-1, \"a\";r=5", Reported::new().with_remaining(5)),
        ("(\"a\");r=1, \"a\";r=5", Reported::new().with_remaining(5)),
        ("1;r=1, \"a\";r=5", Reported::new().with_remaining(5)),
        ("a;r=5", Reported::new().with_remaining(5)),
        ("\"a\"; r=5; t=9", left(5, None, 9)),
        ("\"a\";r=-1", NOTHING),
        ("\"a\"", NOTHING),
        ("", NOTHING),
    ] {
        let lines = [("ratelimit", state)];
        assert_eq!(read(&any(), &lines), expected, "{state}");
        assert_eq!(read(&policy("a"), &lines), expected, "{state}");
    }
}

#[test]
fn a_malformed_line_takes_no_other_with_it() {
    for malformed in [
        "\"a\";r=1 junk",
        "\"a\";r=1,",
        "\"a;r=1",
        "\"a\";r=1234567890123456",
        "\"\u{e9}\";r=1",
        "\"a\" ;r=1",
    ] {
        let lines = [("ratelimit", malformed)];
        assert_eq!(read(&policy("a"), &lines), NOTHING, "{malformed}");
        let lines = [("ratelimit", malformed), ("ratelimit", "\"a\";r=5;t=9")];
        assert_eq!(read(&policy("a"), &lines), left(5, None, 9), "{malformed}");
        assert_eq!(read(&any(), &lines), left(5, None, 9), "{malformed}");
    }
}

#[test]
fn a_reset_beyond_the_maximum_is_the_maximum() {
    let lines = [("ratelimit", "\"a\";r=999999999999999;t=999999999999999")];
    let reported = read(&any(), &lines);
    assert_eq!(reported.remaining, Some(999_999_999_999_999));
    assert_eq!(reported.reset, Some(RetryAfter::MAX));
}

#[test]
fn the_dictionary_of_draft_7_is_read_without_a_name() {
    for (lines, expected) in [
        (
            [
                ("ratelimit", "limit=100, remaining=50, reset=30"),
                ("ratelimit-policy", "100;w=60"),
            ],
            left(50, 100, 30),
        ),
        (
            [
                ("ratelimit", "limit=100, remaining=50"),
                ("ratelimit", "reset=30, remaining=40, x=1"),
            ],
            left(40, 100, 30),
        ),
        (
            [
                ("ratelimit", "limit=-1, remaining=50, reset=(30)"),
                ("ratelimit", "limit=100;r=50, reset=?1 junk"),
            ],
            left(50, None, None),
        ),
    ] {
        assert_eq!(read(&any(), &lines), expected, "{lines:?}");
        assert_eq!(read(&policy("limit"), &lines), NOTHING, "{lines:?}");
    }
}

#[test]
fn the_three_headers_of_early_drafts_are_read_without_a_name() {
    for (limit, expected) in [
        ("100", Some(100)),
        ("100, 100;w=60, 1000;w=86400", Some(100)),
        ("100;w=60", Some(100)),
        ("-100", None),
        ("burst, 100;w=60", None),
        (", 100;w=60", None),
    ] {
        let lines = [
            ("RateLimit-Limit", limit),
            ("RateLimit-Remaining", "50"),
            ("RateLimit-Reset", "30"),
            // Of draft 6, where policies have no names.
            ("RateLimit-Policy", "100;w=60"),
            // Counted from the arrival, so the server's clock does not matter.
            ("Date", "Mon, 21 Sep 2026 14:13:10 GMT"),
        ];
        assert_eq!(read(&any(), &lines), left(50, expected, 30), "{limit}");
        assert_eq!(read(&policy("100"), &lines), NOTHING, "{limit}");
    }
}

#[test]
fn of_several_unnamed_policies_the_one_with_less_room_counts() {
    for lines in [
        [
            ("ratelimit", "limit=100, remaining=50, reset=30"),
            ("ratelimit", "limit=90, remaining=40, reset=20"),
        ]
        .as_slice(),
        &[
            ("ratelimit-limit", "100"),
            ("ratelimit-limit", "90.5, 1000;w=60"),
            ("ratelimit-remaining", "50"),
            ("ratelimit-remaining", "40.5"),
            ("ratelimit-reset", "30"),
            ("ratelimit-reset", "20"),
        ],
    ] {
        for lines in [lines.to_vec(), lines.iter().rev().copied().collect()] {
            assert_eq!(read(&any(), &lines), left(40, 90, 30), "{lines:?}");
        }
    }
}

#[test]
fn the_newest_notation_that_says_something_is_read() {
    let triplet = [
        ("ratelimit-limit", "3"),
        ("ratelimit-remaining", "2"),
        ("ratelimit-reset", "1"),
    ];
    for (fields, expected) in [
        (
            &[
                ("ratelimit", "\"a\";r=50;t=30"),
                ("ratelimit-policy", "\"a\";q=100"),
            ][..],
            left(50, 100, 30),
        ),
        (&[("ratelimit", "remaining=50")], left(50, 3, 1)),
        (&[("ratelimit-policy", "\"a\";q=100")], left(2, 3, 1)),
        (&[("ratelimit", "\"a\"")], left(2, 3, 1)),
        (&[("ratelimit", "junk junk")], left(2, 3, 1)),
    ] {
        let lines = [&triplet[..], fields].concat();
        assert_eq!(read(&any(), &lines), expected, "{fields:?}");
    }
}

#[test]
fn a_policy_has_a_name_that_can_be_sent() {
    for name in ["", "grün", "a\tb", "a\n", "\u{7f}"] {
        let error = UsageHeaders::ietf(Some(name)).unwrap_err();
        assert_eq!(error.field(), "policy");
        assert_eq!(error.value(), format!("{name:?}"));
    }
    let quoted = [("ratelimit", r#""a \"b\" \\";r=5"#)];
    assert_eq!(read(&policy(r#"a "b" \"#), &quoted), left(5, None, None));
}
