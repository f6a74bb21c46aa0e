//! Where the venue's clock stands, as far as its `Date` headers tell.

/// The distance of the venue's clock from this budget's, as an interval.
///
/// A response with `Date: D`, asked for at `a` and received at `p`, was dated somewhere in between,
/// when the venue's clock showed something from D to a second later. So the distance is between
/// `D - p` and `D + 1 s - a`. What several responses say is intersected; and since two clocks do not
/// run equally fast, the interval widens with its age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClock {
    /// Venue's nanoseconds since the Unix epoch, minus this budget's since it was built.
    bounds: Option<(i128, i128)>,
    /// When the bounds were right, in this budget's nanoseconds.
    at: u64,
    /// How much two clocks drift apart, in parts per million.
    ppm: u32,
}

const SECOND: i128 = 1_000_000_000;

// === impl ServerClock ===

impl ServerClock {
    pub(crate) const fn unknown(ppm: u32) -> Self {
        Self {
            bounds: None,
            at: 0,
            ppm,
        }
    }

    /// Takes a response into account; `date` is in seconds since the Unix epoch.
    pub(crate) fn observe(&mut self, sent: u64, received: u64, date: u64) {
        let date = i128::from(date) * SECOND;
        let heard = (
            date - i128::from(received),
            date + SECOND - i128::from(sent.min(received)),
        );
        let bounds = match self.at(received) {
            Some((low, high)) => {
                let both = (low.max(heard.0), high.min(heard.1));
                // One of the clocks was set: what it showed before says nothing any more.
                if both.0 > both.1 { heard } else { both }
            }
            None => heard,
        };
        self.bounds = Some(bounds);
        self.at = self.at.max(received);
    }

    /// The bounds of the distance at an instant.
    pub(crate) fn at(&self, now: u64) -> Option<(i128, i128)> {
        let (low, high) = self.bounds?;
        let age = i128::from(now.saturating_sub(self.at));
        let drift = age * i128::from(self.ppm) / 1_000_000;
        Some((low - drift, high + drift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_response_tells_the_clock_to_a_second_and_the_round_trip() {
        let mut clock = ServerClock::unknown(0);
        clock.observe(100 * MS, 300 * MS, 10);
        let (low, high) = clock.at(300 * MS).unwrap();
        assert_eq!(low, 10 * SECOND - 300_000_000);
        assert_eq!(high, 11 * SECOND - 100_000_000);
    }

    #[test]
    fn responses_around_a_tick_narrow_it_down() {
        let mut clock = ServerClock::unknown(0);
        // The true distance is 9.75 s.
        clock.observe(200 * MS, 210 * MS, 9);
        clock.observe(255 * MS, 265 * MS, 10);
        let (low, high) = clock.at(265 * MS).unwrap();
        assert!(
            low <= 9_750_000_000 && 9_750_000_000 <= high,
            "{low} {high}"
        );
        assert!(high - low <= 65_000_000, "{low} {high}");
    }

    #[test]
    fn a_clock_that_was_set_is_believed_at_once() {
        let mut clock = ServerClock::unknown(0);
        clock.observe(0, 10 * MS, 1000);
        clock.observe(20 * MS, 30 * MS, 500);
        let (low, high) = clock.at(30 * MS).unwrap();
        assert!(low <= 500 * SECOND && high >= 500 * SECOND);
        assert!(high < 502 * SECOND);
    }

    #[test]
    fn what_is_known_ages() {
        let mut clock = ServerClock::unknown(500);
        clock.observe(0, 0, 10);
        let (low, high) = clock.at(1000 * 1_000_000_000).unwrap();
        // Half a second in a thousand, to either side.
        assert_eq!(high - low, SECOND + SECOND);
    }

    #[test]
    fn nonsense_neither_panics_nor_wraps() {
        let mut clock = ServerClock::unknown(u32::MAX);
        clock.observe(u64::MAX, 0, u64::MAX);
        clock.observe(0, u64::MAX, 0);
        assert!(clock.at(u64::MAX).is_some());
    }
}
