use super::*;

fn header(value: &str) -> HeaderMap {
    HeaderMap::from_iter([(GRPC_TIMEOUT, HeaderValue::from_str(value).unwrap())])
}

#[test]
fn a_time_is_written_in_at_most_eight_digits_and_never_as_more() {
    for (nanos, expected) in [
        (1, "1n"),
        (99_999_999, "99999999n"),
        (100_000_000, "100000u"),
        (99_999_999_999, "99999999u"),
        (100_000_000_999, "100000m"),
        (29_999_999_999, "29999999u"),
        // 100,000,000 s would have a digit too many.
        (100_000_000_000_000_000, "1666666M"),
    ] {
        assert_eq!(write(Duration::from_nanos(nanos)), expected, "{nanos}");
    }
    assert_eq!(write(Duration::MAX), "99999999H");
}

#[test]
fn a_time_that_was_written_is_read_as_at_most_itself() {
    let mut left = Duration::from_nanos(1);
    while let Some(longer) = left.checked_mul(7) {
        let value = write(left);
        let read = read(&header(value.to_str().unwrap())).unwrap();
        assert!(read <= left && value.len() <= 9, "{left:?}: {value:?}");
        // Nothing is lost that matters: less than a hundred thousandth.
        let most_of_it = left - left / 100_000;
        assert!(read >= most_of_it || value == "99999999H", "{left:?}");
        left = longer;
    }
}

#[test]
fn every_unit_is_read() {
    for (value, expected) in [
        ("7n", Duration::from_nanos(7)),
        ("7u", Duration::from_micros(7)),
        ("00000007m", Duration::from_millis(7)),
        ("0S", Duration::ZERO),
        ("7M", Duration::from_secs(420)),
        ("99999999H", Duration::from_secs(359_999_996_400)),
    ] {
        assert_eq!(read(&header(value)), Some(expected), "{value}");
    }
}

#[test]
fn what_is_no_time_says_nothing() {
    for value in [
        "",
        "7",
        "S",
        "+7S",
        "-7S",
        "7s",
        "7 S",
        "7.5S",
        "123456789n",
        "7Sm",
        "٧S",
    ] {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        let headers = HeaderMap::from_iter([(GRPC_TIMEOUT, value.clone())]);
        assert_eq!(read(&headers), None, "{value:?}");
    }
    assert_eq!(read(&HeaderMap::new()), None);
}
