//! Where the venue's clock stands, as far as its `Date` headers tell.

/// The distance of the venue's clock from this budget's, as an interval.
///
/// A response with `Date: D`, asked for at `a` and received at `p`, was dated somewhere in between,
/// when the clock of whoever dated it showed something from D to a second later, and that of whoever
/// counts is a little ahead of it or behind. So the distance is between `D - p` and `D + 1 s - a`, and
/// a little to either side. What several responses say is intersected; and since two clocks do not run
/// equally fast, the interval widens with its age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClock {
    /// Venue's nanoseconds since the Unix epoch, minus this budget's since it was built.
    bounds: Option<(i128, i128)>,
    /// How many responses in a row agree with them.
    agreed: u32,
    /// When the bounds were right, in this budget's nanoseconds.
    at: u64,
    /// How much two clocks drift apart, in parts per million.
    ppm: u32,
}

const SECOND: i128 = 1_000_000_000;
/// One response proves nothing: it may be a proxy's own page, or that of a machine whose clock is off.
const ENOUGH: u32 = 3;
/// How far apart the clocks of a venue's machines may be. It belongs to what each of them says: two
/// that differ by so little do not contradict each other.
const APART: i128 = 50_000_000;

// === impl ServerClock ===

impl ServerClock {
    pub(crate) const fn unknown(ppm: u32) -> Self {
        Self {
            bounds: None,
            agreed: 0,
            at: 0,
            ppm,
        }
    }

    /// Takes a response into account; `date` is in seconds since the Unix epoch.
    pub(crate) fn observe(&mut self, sent: u64, received: u64, date: u64) {
        let date = i128::from(date) * SECOND;
        let heard = (
            date - i128::from(received) - APART,
            date + SECOND - i128::from(sent.min(received)) + APART,
        );
        let both = self
            .drifted(received)
            .map(|(low, high)| (low.max(heard.0), high.min(heard.1)))
            .filter(|(low, high)| low <= high);
        // Where they contradict each other, one of the clocks is wrong or was set: it is all to be
        // learned again.
        self.agreed = if both.is_some() {
            self.agreed.saturating_add(1)
        } else {
            1
        };
        self.bounds = Some(both.unwrap_or(heard));
        self.at = self.at.max(received);
    }

    /// The bounds of the distance at an instant, if enough is known of it.
    pub(crate) fn at(&self, now: u64) -> Option<(i128, i128)> {
        self.drifted(now).filter(|_| self.agreed >= ENOUGH)
    }

    /// What has been heard, as far as it is still true.
    fn drifted(&self, now: u64) -> Option<(i128, i128)> {
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

    /// A clock that has heard the same three times.
    fn sure(sent: u64, received: u64, date: u64, ppm: u32) -> ServerClock {
        let mut clock = ServerClock::unknown(ppm);
        for _ in 0..3 {
            clock.observe(sent, received, date);
        }
        clock
    }

    #[test]
    fn responses_tell_the_clock_to_a_second_and_the_round_trip() {
        let clock = sure(100 * MS, 300 * MS, 10, 0);
        let (low, high) = clock.at(300 * MS).unwrap();
        assert_eq!(low, 10 * SECOND - 300_000_000 - APART);
        assert_eq!(high, 11 * SECOND - 100_000_000 + APART);
    }

    #[test]
    fn responses_around_a_tick_narrow_it_down() {
        // The true distance is 9.75 s.
        let mut clock = sure(200 * MS, 210 * MS, 9, 0);
        clock.observe(255 * MS, 265 * MS, 10);
        let (low, high) = clock.at(265 * MS).unwrap();
        assert!(
            low <= 9_750_000_000 && 9_750_000_000 <= high,
            "{low} {high}"
        );
        assert!(high - low <= 65_000_000 + 2 * APART, "{low} {high}");
    }

    #[test]
    fn one_or_two_responses_prove_nothing() {
        let mut clock = ServerClock::unknown(0);
        for _ in 0..2 {
            clock.observe(0, 10 * MS, 1000);
            assert_eq!(clock.at(10 * MS), None);
        }
        clock.observe(0, 10 * MS, 1000);
        assert!(clock.at(10 * MS).is_some());
    }

    #[test]
    fn one_that_contradicts_is_not_believed_and_neither_are_those_before() {
        let mut clock = sure(0, 10 * MS, 1000, 0);
        clock.observe(20 * MS, 30 * MS, 1050);
        assert_eq!(clock.at(30 * MS), None);
        clock.observe(30 * MS, 40 * MS, 1000);
        assert_eq!(clock.at(40 * MS), None);
    }

    #[test]
    fn a_clock_that_was_set_is_learned_again() {
        let mut clock = sure(0, 10 * MS, 1000, 0);
        for _ in 0..3 {
            clock.observe(20 * MS, 30 * MS, 500);
        }
        let (low, high) = clock.at(30 * MS).unwrap();
        assert!(low <= 500 * SECOND && high >= 500 * SECOND);
        assert!(high < 502 * SECOND);
    }

    #[test]
    fn machines_whose_clocks_differ_a_little_agree() {
        let mut clock = ServerClock::unknown(0);
        // Their seconds begin 20 ms apart, and whoever counts may be either.
        for at in [940, 950, 960] {
            clock.observe(at * MS, at * MS, 10);
            clock.observe(at * MS, at * MS, 11);
        }
        let (low, high) = clock.at(960 * MS).unwrap();
        assert!(low <= 10_040_000_000 && 10_060_000_000 <= high);
    }

    #[test]
    fn what_is_known_ages() {
        let clock = sure(0, 0, 10, 500);
        let (low, high) = clock.at(1000 * 1_000_000_000).unwrap();
        // Half a second in a thousand, to either side.
        assert_eq!(high - low, SECOND + SECOND + 2 * APART);
    }

    #[test]
    fn nonsense_neither_panics_nor_wraps() {
        let mut clock = ServerClock::unknown(u32::MAX);
        clock.observe(u64::MAX, 0, u64::MAX);
        clock.observe(0, u64::MAX, 0);
        clock.observe(0, u64::MAX, 0);
        clock.observe(0, u64::MAX, 0);
        assert!(clock.at(u64::MAX).is_some());
    }
}
