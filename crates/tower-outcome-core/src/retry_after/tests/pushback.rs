use super::*;

#[test]
fn pushback_is_a_wait_in_milliseconds() {
    for (value, expected) in [
        ("0", 0),
        ("1500", 1500),
        (" 25 ", 25),
        ("2147483647", 2_147_483_647),
    ] {
        let pushback = parse_pushback(&HeaderValue::from_static(value));
        assert_eq!(pushback, Pushback::After(millis(expected)), "{value:?}");
        assert_eq!(
            pushback.retry_after(),
            Some(RetryAfter::new(millis(expected), HintForm::Pushback))
        );
    }
}

#[test]
fn negative_or_malformed_pushback_stops_retries() {
    for value in [
        "-1",
        "-0",
        "+5",
        "",
        " ",
        "1.5",
        "10ms",
        "1e3",
        "0x10",
        "1 0",
        "NaN",
        "2147483648",
        "999999999999999999999999999999",
    ] {
        let pushback = parse_pushback(&HeaderValue::from_static(value));
        assert_eq!(pushback, Pushback::Stop, "{value:?}");
        assert_eq!(pushback.retry_after(), None);
    }
    let bytes = HeaderValue::from_bytes(b"5\xff").unwrap();
    assert_eq!(parse_pushback(&bytes), Pushback::Stop);
}

#[test]
fn pushback_sent_twice_stops_retries() {
    let name = "grpc-retry-pushback-ms";
    let read = |lines: &[(&str, &str)]| Pushback::from_headers(&headers(lines));
    assert_eq!(read(&[]), None);
    assert_eq!(read(&[(name, "5")]), Some(Pushback::After(millis(5))));
    assert_eq!(read(&[(name, "5"), (name, "5")]), Some(Pushback::Stop));
}
