use super::*;

const IMF: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const RFC_850: &str = "Sunday, 06-Nov-94 08:49:37 GMT";
const ASCTIME: &str = "Sun Nov  6 08:49:37 1994";
const INSTANT: u64 = 784_111_777;

fn date(text: &str) -> Option<u64> {
    let date = date::parse(&HeaderValue::from_str(text).unwrap(), now())?;
    Some(
        date.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs(),
    )
}

fn in_seconds(seconds: u64) -> String {
    httpdate::fmt_http_date(now() + secs(seconds))
}

#[test]
fn the_three_date_forms_are_the_same_instant() {
    for text in [IMF, RFC_850, ASCTIME] {
        assert_eq!(date(text), Some(INSTANT), "{text}");
    }
}

#[test]
fn a_date_is_measured_against_the_date_of_the_response() {
    // The server's clock is years away from ours.
    for text in [IMF, RFC_850, ASCTIME] {
        for sent in [
            "Sun, 06 Nov 1994 08:48:07 GMT",
            "Sunday, 06-Nov-94 08:48:07 GMT",
            "Sun Nov  6 08:48:07 1994",
        ] {
            assert_eq!(
                hint(&[("retry-after", text), ("date", sent)]),
                Some((secs(90), HintForm::Date)),
                "{text} at {sent}"
            );
        }
    }
}

#[test]
fn a_date_is_measured_against_now_without_a_valid_date() {
    let retry_after = in_seconds(90);
    for lines in [
        &[("retry-after", retry_after.as_str())][..],
        &[("retry-after", &retry_after), ("date", "yesterday")],
        &[("retry-after", &retry_after), ("date", "")],
        &[("retry-after", &retry_after), ("date", "1790000000")],
        &[("retry-after", "Monday, 21-Sep-26 14:14:50 GMT")],
    ] {
        assert_eq!(hint(lines), Some((secs(90), HintForm::Date)), "{lines:?}");
    }
}

#[test]
fn the_earliest_of_several_dates_of_the_response_counts() {
    for dates in [[10, 0], [0, 10]] {
        let (retry_after, dates) = (in_seconds(90), dates.map(in_seconds));
        let lines = [
            ("retry-after", retry_after.as_str()),
            ("date", &dates[0]),
            ("date", &dates[1]),
        ];
        assert_eq!(hint(&lines), Some((secs(90), HintForm::Date)));
    }
}

#[test]
fn a_date_difference_is_not_truncated() {
    let lines = headers(&[("retry-after", in_seconds(2))]);
    let hint = RetryAfter::from_headers(&lines, now() + millis(100)).unwrap();
    assert_eq!(hint.delay(), millis(1900));
}

#[test]
fn a_past_date_is_a_wait_of_zero() {
    let epoch = "Thu, 01 Jan 1970 00:00:00 GMT";
    for text in [IMF, RFC_850, ASCTIME, epoch, &in_seconds(0)] {
        assert_eq!(
            hint(&[("retry-after", text)]),
            Some((Duration::ZERO, HintForm::Date)),
            "{text}"
        );
    }
}

#[test]
fn the_year_9999_saturates_at_the_maximum() {
    let end = "Fri, 31 Dec 9999 23:59:59 GMT";
    let now_then = httpdate::parse_http_date(end).unwrap() - secs(30);
    let lines = headers(&[("retry-after", end)]);

    let hint = RetryAfter::from_headers(&lines, now()).unwrap();
    assert_eq!(hint.delay(), RetryAfter::MAX);
    let hint = RetryAfter::from_headers(&lines, now_then).unwrap();
    assert_eq!(hint.delay(), secs(30));
}

#[test]
fn the_longest_of_a_date_and_seconds_wins() {
    let date = in_seconds(90);
    assert_eq!(
        hint(&[("retry-after", "30"), ("retry-after", &date)]),
        Some((secs(90), HintForm::Date))
    );
    assert_eq!(
        hint(&[("retry-after", "300"), ("retry-after", &date)]),
        Some((secs(300), HintForm::Seconds))
    );
}

#[test]
fn a_leap_second_is_the_second_that_follows() {
    for text in [
        "Wed, 31 Dec 2025 23:59:60 GMT",
        "Wednesday, 31-Dec-25 23:59:60 GMT",
        "Wed Dec 31 23:59:60 2025",
    ] {
        assert_eq!(date(text), date("Thu, 01 Jan 2026 00:00:00 GMT"), "{text}");
    }
    assert_eq!(date("Wed, 31 Dec 2025 22:59:60 GMT"), None);
}

#[test]
fn a_two_digit_year_is_at_most_50_years_ahead() {
    let at = |text: &'static str, year_of_now: &str| {
        let now = httpdate::parse_http_date(year_of_now).unwrap();
        date::parse(&HeaderValue::from_static(text), now).map(httpdate::fmt_http_date)
    };
    let (in_2026, in_2060) = (
        "Mon, 21 Sep 2026 14:13:20 GMT",
        "Tue, 21 Sep 2060 14:13:20 GMT",
    );
    // The weekday fits one century only, and the other one is refused.
    for (text, now, expected) in [
        ("Sunday, 06-Nov-94 08:49:37 GMT", in_2026, Some(IMF)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", in_2060, None),
        ("Saturday, 06-Nov-94 08:49:37 GMT", in_2026, None),
        (
            "Saturday, 06-Nov-94 08:49:37 GMT",
            in_2060,
            Some("Sat, 06 Nov 2094 08:49:37 GMT"),
        ),
        (
            "Friday, 06-Nov-76 08:49:37 GMT",
            in_2026,
            Some("Fri, 06 Nov 2076 08:49:37 GMT"),
        ),
        (
            "Sunday, 06-Nov-77 08:49:37 GMT",
            in_2026,
            Some("Sun, 06 Nov 1977 08:49:37 GMT"),
        ),
    ] {
        assert_eq!(at(text, now).as_deref(), expected, "{text} in {now}");
    }
}

#[test]
fn dates_in_any_other_notation_are_malformed() {
    for text in [
        "2026-09-21T14:13:20Z",
        "Mon, 21 Sep 2026 14:13:20 UTC",
        "Mon, 21 Sep 2026 14:13:20 +0000",
        "Mon, 21 Sep 2026 14:13:20",
        "mon, 21 sep 2026 14:13:20 gmt",
        "Mon, 21 Sep 26 14:13:20 GMT",
        "Mon, 21-Sep-26 14:13:20 GMT",
        "Monday, 21 Sep 2026 14:13:20 GMT",
        "Monday, 21-Sep-2026 14:13:20 GMT",
        "Thursday, 21-Sep-+6 14:13:20 GMT",
        "Monday, 21-Sep-26-1 14:13:20 GMT",
        "Mon, 1 Sep 2026 14:13:20 GMT",
        "Mon, 21 Sep 2026 14:13:20 GMT junk",
        "Tue, 21 Sep 2026 14:13:20 GMT", // a Monday
        "Tue, 31 Sep 2026 14:13:20 GMT",
        "Mon, 21 Sep 2026 24:13:20 GMT",
        "Mon, 21 Sep 2026 14:13:61 GMT",
        "Thu, 31 Dec 1969 23:59:59 GMT",
        "Mon Sep 21 14:13:20 GMT 2026",
        "Mon, 21 Sep 2026 14:13:20 GMT, Mon, 21 Sep 2026 14:13:20 GMT",
    ] {
        assert_eq!(hint(&[("retry-after", text)]), None, "{text}");
    }
}
