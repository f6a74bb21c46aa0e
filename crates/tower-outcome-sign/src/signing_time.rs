//! The time that goes into a signature.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{SignError, SignErrorKind};

/// The time that goes into a signature: the wall clock, corrected towards the server's.
///
/// It lies between the years 1970 and 9999; anything else is refused, so a broken clock cannot
/// be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SigningTime(Duration);

/// A unit in which times and nonces are counted from the Unix epoch.
/// The finer one is the lesser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
}

/// The first second of the year 10000.
const END: Duration = Duration::from_secs(253_402_300_800);

// === impl SigningTime ===

impl SigningTime {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(Duration::ZERO);

    /// Takes a point in time.
    ///
    /// # Errors
    ///
    /// If it is before 1970 or after 9999.
    pub fn new(time: SystemTime) -> Result<Self, SignError> {
        let since = time.duration_since(UNIX_EPOCH).ok();
        match since.filter(|since| *since < END) {
            Some(since) => Ok(Self(since)),
            None => Err(SignErrorKind::TimeOutOfRange.into()),
        }
    }

    /// Takes so many units since the Unix epoch.
    ///
    /// # Errors
    ///
    /// If that is after 9999.
    pub fn from_unit(count: u64, unit: Unit) -> Result<Self, SignError> {
        let since = unit.duration(count);
        if since < END {
            Ok(Self(since))
        } else {
            Err(SignErrorKind::TimeOutOfRange.into())
        }
    }

    /// Returns the time since the Unix epoch.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// Returns the time as the wall clock would show it.
    #[must_use]
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + self.0
    }

    /// Returns the whole units since the Unix epoch, rounded down; the largest number where there is none,
    /// as for nanoseconds after the year 2554.
    #[must_use]
    pub fn count(self, unit: Unit) -> u64 {
        unit.count(self.0)
    }

    /// Returns the seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// Returns the milliseconds since the Unix epoch, rounded down.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        self.count(Unit::Millis)
    }

    /// Returns the time that much later, or the last one there is.
    #[must_use]
    pub fn saturating_add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(span)
                .min(END - Duration::from_nanos(1)),
        )
    }

    /// Writes the form of RFC 3339 in UTC with milliseconds, as in `2020-12-08T09:08:57.715Z`.
    #[must_use]
    pub fn to_rfc3339_millis(self) -> String {
        let (year, month, day) = civil(self.0.as_secs() / 86_400);
        let second = self.0.as_secs() % 86_400;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let millis = self.0.subsec_millis();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }

    /// Writes the form of ISO 8601 without separators and parts of a second, as in `20150830T123600Z`.
    #[cfg(feature = "aws-sigv4")]
    pub(crate) fn to_basic(self) -> String {
        let text = self.to_rfc3339_millis();
        let whole = text.split('.').next().unwrap_or_default();
        let mut text = whole.replace(['-', ':'], "");
        text.push('Z');
        text
    }

    /// Reads the form of RFC 3339 in UTC with milliseconds.
    ///
    /// # Errors
    ///
    /// If it is anything else.
    pub fn parse_rfc3339_millis(text: &str) -> Result<Self, SignError> {
        parse_rfc3339(text).ok_or_else(|| SignErrorKind::TimeOutOfRange.into())
    }
}

// === impl Unit ===

impl Unit {
    /// Counts whole units of a span, saturating.
    pub(crate) fn count(self, span: Duration) -> u64 {
        match self {
            Self::Seconds => span.as_secs(),
            Self::Millis => saturated(span.as_millis()),
            Self::Micros => saturated(span.as_micros()),
            Self::Nanos => saturated(span.as_nanos()),
        }
    }

    /// Counts units of a span, a part of one as a whole one, saturating.
    pub(crate) fn count_up(self, span: Duration) -> u64 {
        let count = self.count(span);
        count.saturating_add(u64::from(self.duration(count) < span))
    }

    /// Returns the span of so many units.
    #[must_use]
    pub const fn duration(self, count: u64) -> Duration {
        match self {
            Self::Seconds => Duration::from_secs(count),
            Self::Millis => Duration::from_millis(count),
            Self::Micros => Duration::from_micros(count),
            Self::Nanos => Duration::from_nanos(count),
        }
    }
}

fn saturated(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The date of a day since the epoch, in the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last of one; 400 years have 146,097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// The inverse, from 1970 on.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = (month + 9) % 12;
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era).checked_sub(719_468)
}

fn parse_rfc3339(text: &str) -> Option<SigningTime> {
    let bytes = text.as_bytes();
    let marks = [
        (4, b'-'),
        (7, b'-'),
        (10, b'T'),
        (13, b':'),
        (16, b':'),
        (19, b'.'),
        (23, b'Z'),
    ];
    if bytes.len() != 24 || marks.iter().any(|&(at, mark)| bytes[at] != mark) {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = &bytes[from..to];
        digits.iter().try_fold(0, |sum, digit| {
            digit
                .is_ascii_digit()
                .then(|| sum * 10 + u64::from(digit - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !in_range || year < 1970 {
        return None;
    }
    let since = days(year, month, day)?;
    // The 31st of a short month is another day, written otherwise.
    if civil(since) != (year, month, day) {
        return None;
    }
    let seconds = since * 86_400 + hour * 3600 + minute * 60 + second;
    Some(SigningTime(
        Duration::from_secs(seconds) + Duration::from_millis(number(20, 23)?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_read_back() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_607_418_537_715, "2020-12-08T09:08:57.715Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            let time = SigningTime::from_unit(millis, Unit::Millis).unwrap();
            assert_eq!(time.to_rfc3339_millis(), text);
            assert_eq!(SigningTime::parse_rfc3339_millis(text).unwrap(), time);
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2020-12-08T09:08:57Z",
            "2020-02-30T00:00:00.000Z",
            "2021-02-29T00:00:00.000Z",
            "2020-13-01T00:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "2020-12-08T24:00:00.000Z",
            "2020-12-08 09:08:57.715Z",
            "2020-12-08T09:08:57.71€",
        ] {
            assert!(SigningTime::parse_rfc3339_millis(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_outside_the_calendar_are_refused() {
        let before = UNIX_EPOCH - Duration::from_nanos(1);
        assert!(SigningTime::new(before).is_err());
        assert!(SigningTime::new(UNIX_EPOCH + END).is_err());
        assert!(SigningTime::new(UNIX_EPOCH + END - Duration::from_nanos(1)).is_ok());
        assert!(SigningTime::from_unit(u64::MAX, Unit::Seconds).is_err());
    }
}
