use super::*;

fn app(seconds: u64) -> UsageHeaders {
    UsageHeaders::riot_app(secs(seconds)).unwrap()
}

fn method(seconds: u64) -> UsageHeaders {
    UsageHeaders::riot_method(secs(seconds)).unwrap()
}

fn used_of(used: Option<u64>, limit: Option<u64>) -> Reported {
    Reported {
        used,
        limit,
        ..NOTHING
    }
}

#[test]
fn riot_lists_a_count_for_each_window() {
    let lines = [
        ("X-App-Rate-Limit", "20:1,100:120"),
        ("X-App-Rate-Limit-Count", "1:1,17:120"),
        ("X-Method-Rate-Limit", "2000:60"),
        ("X-Method-Rate-Limit-Count", "8:60"),
    ];
    for (usage, expected) in [
        (app(1), used_of(Some(1), Some(20))),
        (app(120), used_of(Some(17), Some(100))),
        (app(60), NOTHING),
        (app(12), NOTHING),
        (method(60), used_of(Some(8), Some(2000))),
        (method(1), NOTHING),
    ] {
        assert_eq!(read(&usage, &lines), expected, "{usage:?}");
    }
}

#[test]
fn a_malformed_pair_hides_no_other() {
    for (limits, counts, expected) in [
        ("20:1,x:120", "1:1,17:120", used_of(Some(17), None)),
        (
            "20:1 , 100:120",
            "1:1,\t17:120",
            used_of(Some(17), Some(100)),
        ),
        ("20:1,,100:120,", "-17:120", used_of(None, Some(100))),
        ("100:120:1", "17:120s", NOTHING),
        ("100", "17:", NOTHING),
        (":120", "17;120", NOTHING),
        ("", "18446744073709551616:120", NOTHING),
        ("100:120.0", "17:120.5", used_of(None, Some(100))),
        (
            "100:18446744073709551736",
            "17:120",
            used_of(Some(17), None),
        ),
        ("99.5:120", "16.5:120", used_of(Some(17), Some(99))),
    ] {
        let lines = [
            ("x-app-rate-limit", limits),
            ("x-app-rate-limit-count", counts),
        ];
        assert_eq!(read(&app(120), &lines), expected, "{limits} {counts}");
    }
}

#[test]
fn a_window_that_is_listed_twice_counts_with_less_room() {
    let lines = [
        ("x-app-rate-limit", "100:120,90:120"),
        ("x-app-rate-limit", "95:120"),
        ("x-app-rate-limit-count", "17:120"),
        ("x-app-rate-limit-count", "18:120,3:120"),
    ];
    assert_eq!(read(&app(120), &lines), used_of(Some(18), Some(90)));
}

#[test]
fn a_window_is_in_whole_seconds() {
    for window in [
        Duration::ZERO,
        millis(500),
        millis(1500),
        secs(1) + Duration::from_nanos(1),
        Duration::MAX,
    ] {
        for built in [
            UsageHeaders::riot_app(window),
            UsageHeaders::riot_method(window),
        ] {
            let error = built.unwrap_err();
            assert_eq!(error.field(), "window");
            assert_eq!(error.value(), format!("{window:?}"));
        }
    }
    assert!(UsageHeaders::riot_app(secs(u64::MAX)).is_ok());
}

#[test]
fn shopify_says_what_is_used_of_the_bucket() {
    let shopify = UsageHeaders::shopify();
    for (value, expected) in [
        ("32/40", used_of(Some(32), Some(40))),
        ("0/80", used_of(Some(0), Some(80))),
        (" 32 / 40 ", used_of(Some(32), Some(40))),
        ("41/40", used_of(Some(41), Some(40))),
        ("31.5/39.5", used_of(Some(32), Some(39))),
        ("32", NOTHING),
        ("32/", NOTHING),
        ("/40", NOTHING),
        ("32/40/2", NOTHING),
        ("-1/40", NOTHING),
        ("32/40 calls", NOTHING),
        ("32/18446744073709551616", NOTHING),
    ] {
        let lines = [("X-Shopify-Shop-Api-Call-Limit", value)];
        assert_eq!(read(&shopify, &lines), expected, "{value}");
    }
    let lines = [
        ("x-shopify-shop-api-call-limit", "many/40"),
        ("x-shopify-shop-api-call-limit", "32/80"),
        ("x-shopify-shop-api-call-limit", "30/40"),
    ];
    assert_eq!(read(&shopify, &lines), used_of(Some(32), Some(40)));
}
