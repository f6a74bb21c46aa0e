use super::*;

#[test]
fn a_reset_is_read_in_the_chosen_unit() {
    for (unit, value, reset) in [
        (ResetUnit::DeltaSeconds, "60", secs(60)),
        (ResetUnit::DeltaSeconds, "0.493", millis(493)),
        (ResetUnit::DeltaSeconds, "0", Duration::ZERO),
        (
            ResetUnit::DeltaSeconds,
            "0.0000000001",
            Duration::from_nanos(1),
        ),
        (ResetUnit::EpochSeconds, "1790000060.25", millis(60_250)),
        (ResetUnit::EpochSeconds, "60", Duration::ZERO),
        (ResetUnit::EpochMillis, "1790000000200", millis(200)),
        (ResetUnit::EpochByMagnitude, "1790000060", secs(60)),
        (ResetUnit::EpochByMagnitude, "1790000060000", secs(60)),
        (
            ResetUnit::DeltaSeconds,
            "18446744073709551615",
            RetryAfter::MAX,
        ),
    ] {
        let usage = UsageHeaders::x_rate_limit(unit);
        let reported = read(&usage, &[("x-ratelimit-reset", value)]);
        assert_eq!(reported.reset, Some(reset), "{value} as {unit:?}");
    }
}

#[test]
fn a_point_in_time_is_measured_against_the_date_of_the_response() {
    let usage = UsageHeaders::x_rate_limit(ResetUnit::EpochSeconds);
    let reset = |date| {
        let lines = [("date", date), ("x-ratelimit-reset", "1790000060")];
        read(&usage, &lines).reset
    };
    assert_eq!(reset("Mon, 21 Sep 2026 14:13:10 GMT"), Some(secs(70)));
    assert_eq!(reset("Mon, 21 Sep 2026 15:13:20 GMT"), Some(Duration::ZERO));
    assert_eq!(reset("yesterday"), Some(secs(60)));

    let delta = UsageHeaders::x_rate_limit(ResetUnit::DeltaSeconds);
    let lines = [
        ("date", "Mon, 21 Sep 2026 14:13:10 GMT"),
        ("x-ratelimit-reset", "60"),
    ];
    assert_eq!(read(&delta, &lines).reset, Some(secs(60)));
}
