//! Spans of time as people write them.

use std::time::Duration;

/// What a span has to look like, for messages.
pub(crate) const FORM: &str = "1 to 8 digits and a unit, such as 250ms, 10s, 5m or 1h";

/// Reads a span: one to eight digits and `ms`, `s`, `m` or `h`, nothing before, between or after.
///
/// A number without a unit is none: half of the world would take it for seconds, and the other half for
/// milliseconds.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if !(1..=8).contains(&digits) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number * 60)),
        "h" => Some(Duration::from_secs(number * 60 * 60)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_digits_and_a_unit() {
        assert_eq!(parse("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse("10s"), Some(Duration::from_secs(10)));
        assert_eq!(parse("5m"), Some(Duration::from_secs(300)));
        assert_eq!(parse("1h"), Some(Duration::from_secs(3600)));
        assert_eq!(
            parse("99999999h"),
            Some(Duration::from_secs(359_999_996_400))
        );
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            "10",
            "s",
            "-1s",
            "+1s",
            "1.5s",
            " 1s",
            "1s ",
            "1 s",
            "1S",
            "1d",
            "123456789s",
            "1s1s",
            "١s",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
