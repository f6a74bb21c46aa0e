//! The one grammar for numbers in hint headers.

use std::time::Duration;

/// An unsigned decimal number, saturating, with its fraction rounded up to a billionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    whole: u64,
    billionths: u32,
}

// === impl Number ===

impl Number {
    /// Parses `1*DIGIT [ "." 1*DIGIT ]` with blanks around it, of any length.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let mut parts = value.splitn(2, |byte| *byte == b'.');
        let whole = digits(parts.next()?)?;
        let fraction = match parts.next() {
            Some(fraction) => digits(fraction)?,
            None => &[],
        };

        let whole = whole.iter().fold(0_u64, |sum, digit| {
            sum.saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'))
        });
        let (kept, rest) = fraction.split_at(fraction.len().min(9));
        let mut billionths = kept
            .iter()
            .chain(b"000000000")
            .take(9)
            .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        if rest.iter().any(|digit| *digit != b'0') {
            billionths += 1;
        }
        Some(if billionths == 1_000_000_000 {
            Self {
                whole: whole.saturating_add(1),
                billionths: 0,
            }
        } else {
            Self { whole, billionths }
        })
    }

    pub(super) fn whole(self) -> u64 {
        self.whole
    }

    pub(super) fn is_zero(self) -> bool {
        self.whole == 0 && self.billionths == 0
    }

    pub(super) fn seconds(self) -> Duration {
        Duration::new(self.whole, self.billionths)
    }

    /// The number as milliseconds, rounded up to the next nanosecond.
    pub(super) fn millis(self) -> Duration {
        // A billionth of a millisecond is a thousandth of a nanosecond.
        let nanos = self.billionths.div_ceil(1_000);
        Duration::from_millis(self.whole).saturating_add(Duration::from_nanos(nanos.into()))
    }
}

fn digits(text: &[u8]) -> Option<&[u8]> {
    let valid = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    valid.then_some(text)
}
