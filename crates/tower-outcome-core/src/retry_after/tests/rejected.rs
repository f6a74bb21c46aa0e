use super::*;

fn inspect(lines: &[(&str, &[u8])]) -> Hint {
    RetryAfter::inspect(&headers(lines), now())
}

#[track_caller]
fn rejected(hint: Hint) -> RejectedHint {
    match hint {
        Hint::Invalid(rejected) => rejected,
        Hint::Valid(_) | Hint::Absent => panic!("not rejected: {hint:?}"),
    }
}

#[test]
fn no_header_is_an_absent_hint() {
    assert_eq!(inspect(&[]), Hint::Absent);
    assert_eq!(inspect(&[("ratelimit", b"\"a\";r=5;t=3")]), Hint::Absent);
}

#[test]
fn a_valid_hint_is_told_apart_from_a_malformed_one() {
    let valid = RetryAfter::new(secs(7), HintForm::Seconds);
    let hint = inspect(&[("retry-after-ms", b"junk"), ("retry-after", b"7")]);
    assert_eq!(hint, Hint::Valid(valid));
    assert_eq!(hint.valid(), Some(valid));
    assert_eq!(inspect(&[("retry-after", b"junk")]).valid(), None);
}

#[test]
fn a_malformed_value_is_kept_printable() {
    for (value, expected) in [
        (&b""[..], ""),
        (b"-3", "-3"),
        (b"120junk", "120junk"),
        (b"caf\xc3\xa9", "caf\\xc3\\xa9"),
        (b"\xff", "\\xff"),
        (b"a\tb", "a\\tb"),
        (b"a\\\"b\"", "a\\\\\\\"b\\\""),
    ] {
        let rejected = rejected(inspect(&[("retry-after", value)]));
        assert_eq!(rejected.header(), "retry-after");
        assert_eq!(rejected.value(), expected);
    }
}

#[test]
fn a_long_malformed_value_is_cut() {
    for (value, expected) in [
        ("x".repeat(64).into_bytes(), "x".repeat(64)),
        ("x".repeat(65).into_bytes(), "x".repeat(61) + "..."),
        ("x".repeat(9000).into_bytes(), "x".repeat(61) + "..."),
        // No escape is cut in two.
        (vec![0xff; 16], "\\xff".repeat(16)),
        (vec![0xff; 17], "\\xff".repeat(15) + "..."),
    ] {
        let rejected = rejected(inspect(&[("retry-after", &value)]));
        assert_eq!(rejected.value(), expected);
    }
}

#[test]
fn the_first_malformed_value_in_order_of_precedence_is_kept() {
    let rejected = rejected(inspect(&[
        ("ratelimit", b"\"a"),
        ("retry-after", b"-3"),
        ("retry-after", b"-5"),
    ]));
    assert_eq!(rejected.header(), "retry-after");
    assert_eq!(rejected.value(), "-3");
}

#[test]
fn a_malformed_value_reads_as_one_fragment() {
    let rejected = rejected(inspect(&[("retry-after", b"-3")]));
    assert_eq!(rejected.to_string(), "malformed retry-after: \"-3\"");
}

#[test]
fn a_sensitive_value_is_not_kept() {
    let mut value = HeaderValue::from_static("secret");
    value.set_sensitive(true);
    let headers = HeaderMap::from_iter([(http::header::RETRY_AFTER, value)]);
    let rejected = rejected(RetryAfter::inspect(&headers, now()));
    assert_eq!(rejected.value(), "(sensitive)");
}
