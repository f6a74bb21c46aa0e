//! A venue that counts what arrives, and the dice that everything here is drawn with.

use std::time::Duration;

/// How a venue counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counting {
    /// Whatever is younger than the window.
    Sliding { window: Duration },
    /// What came since the last tick; ticks are a window apart, the first one at `phase`.
    Fixed { window: Duration, phase: Duration },
    /// Up by what comes, down by `tokens` in `per`.
    Bucket { tokens: u32, per: Duration },
}

/// When something arrived, and how much.
pub(crate) type Arrival = (Duration, u32);

/// The most that the venue ever counted, of these arrivals.
pub(crate) fn worst(counting: Counting, arrivals: &[Arrival]) -> u64 {
    let mut arrivals: Vec<_> = arrivals
        .iter()
        .map(|&(at, units)| (at.as_nanos(), u64::from(units)))
        .collect();
    arrivals.sort_unstable();
    match counting {
        Counting::Sliding { window } => {
            let (mut from, mut sum, mut worst) = (0, 0, 0);
            for &(at, units) in &arrivals {
                sum += units;
                while arrivals[from].0 + window.as_nanos() <= at {
                    sum -= arrivals[from].1;
                    from += 1;
                }
                worst = worst.max(sum);
            }
            worst
        }
        Counting::Fixed { window, phase } => {
            let (mut tick, mut sum, mut worst) = (0, 0, 0);
            for &(at, units) in &arrivals {
                let own = (at + (window - phase).as_nanos()) / window.as_nanos();
                if own != tick {
                    (tick, sum) = (own, 0);
                }
                sum += units;
                worst = worst.max(sum);
            }
            worst
        }
        Counting::Bucket { tokens, per } => {
            // The level is kept in units times `per`, so that nothing is rounded.
            let per = per.as_nanos();
            let (mut last, mut level, mut worst) = (0, 0_u128, 0);
            for &(at, units) in &arrivals {
                level = level.saturating_sub((at - last) * u128::from(tokens));
                level += u128::from(units) * per;
                last = at;
                worst = worst.max(level);
            }
            worst.div_ceil(per) as u64
        }
    }
}

/// Random numbers that are the same every time.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number from `from` to `to`, both included.
    pub(crate) fn roll(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    pub(crate) fn units(&mut self, from: u32, to: u32) -> u32 {
        from + (self.next() % u64::from(to - from + 1)) as u32
    }

    pub(crate) fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.roll(from, to))
    }

    /// Says yes as many times in a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(crate) fn split(&mut self) -> Self {
        Self(self.next())
    }
}

#[test]
fn a_venue_counts_as_it_says() {
    let secs = Duration::from_secs;
    let arrivals = [(secs(9), 3), (secs(11), 4), (secs(20), 2), (secs(21), 1)];
    let window = secs(10);
    assert_eq!(worst(Counting::Sliding { window }, &arrivals), 7);
    let fixed = |phase| Counting::Fixed { window, phase };
    assert_eq!(worst(fixed(Duration::ZERO), &arrivals), 4);
    assert_eq!(worst(fixed(secs(1)), &arrivals), 6, "from 11 up to 21");
    assert_eq!(worst(fixed(secs(5)), &arrivals), 7);
    let bucket = Counting::Bucket {
        tokens: 1,
        per: secs(1),
    };
    assert_eq!(worst(bucket, &arrivals), 5, "3, down to 1, up to 5");
}
