//! The token bucket.

use std::time::Duration;

use super::{Margin, NEVER, Taken, nanos};

/// A bucket that is filled by what is used and leaks at a steady rate: the venue's bucket, upside
/// down. What is held is in it too, and does not leak.
///
/// The level is kept as the instant at which the bucket has run dry (GCRA's theoretical arrival
/// time), in fractions of a nanosecond, so that no rate is rounded noticeably.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// How much it holds.
    burst: u32,
    /// How long a unit takes to leak.
    unit: Fraction,
    dry_at: Fraction,
    /// The same for what others used alone.
    phantom_dry_at: Fraction,
    held: u32,
}

/// Nanoseconds times 2^32.
///
/// A unit takes at most 400 days, which is below 2^87, and there are at most 2^33 units in question:
/// nothing overflows.
type Fraction = u128;

const BITS: u32 = 32;

// === impl Bucket ===

impl Bucket {
    pub(super) fn new(tokens: u32, per: Duration, burst: u32, margin: Margin) -> Self {
        let mut bucket = Self {
            burst: 0,
            unit: 0,
            dry_at: 0,
            phantom_dry_at: 0,
            held: 0,
        };
        bucket.set(tokens, per, burst, margin);
        bucket
    }

    fn set(&mut self, tokens: u32, per: Duration, burst: u32, margin: Margin) {
        let per = nanos(per);
        let drift = u128::from(per) * u128::from(margin.ppm) / 1_000_000;
        let slow = (u128::from(per) + drift) << BITS;
        self.unit = slow.div_ceil(u128::from(tokens.max(1)));
        self.burst = burst.saturating_sub(Self::spread(tokens, per, margin));
    }

    /// What leaks during the spread of the guard may arrive on top of a full bucket.
    fn spread(tokens: u32, per: u64, margin: Margin) -> u32 {
        let spread = nanos(margin.spread);
        let units = (u128::from(spread) * u128::from(tokens)).div_ceil(u128::from(per.max(1)));
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    pub(super) fn reconfigure(
        &mut self,
        now: u64,
        tokens: u32,
        per: Duration,
        burst: u32,
        margin: Margin,
    ) {
        let level = self.level(now);
        let phantom = self.phantom_level(now);
        self.set(tokens, per, burst, margin);
        let now = Fraction::from(now) << BITS;
        self.dry_at = now + Fraction::from(level) * self.unit;
        self.phantom_dry_at = now + Fraction::from(phantom) * self.unit;
    }

    pub(super) const fn burst(&self) -> u32 {
        self.burst
    }

    /// How long a full bucket takes to run dry.
    pub(super) const fn refill(&self) -> u64 {
        // At most 2^31 units of at most 2^87.
        let all = (self.unit * self.burst as u128) >> BITS;
        if all > u64::MAX as u128 {
            u64::MAX
        } else {
            all as u64
        }
    }

    #[inline]
    pub(super) fn ready_at(&self, now: u64, units: u32, leave: u32) -> u64 {
        let in_flight = u64::from(self.held) + u64::from(units);
        let allowed = u64::from(self.burst.saturating_sub(leave));
        let instant = Fraction::from(now) << BITS;
        let dry_at = self.dry_at.max(instant) + Fraction::from(in_flight) * self.unit;
        let allowance = Fraction::from(allowed) * self.unit;
        if dry_at <= instant + allowance {
            now
        } else if in_flight > allowed {
            NEVER
        } else {
            up(dry_at - allowance)
        }
    }

    pub(super) fn earliest(&self, now: u64, place: u64, leave: u32) -> u64 {
        let allowed = u64::from(self.burst.saturating_sub(leave)).max(1);
        let instant = Fraction::from(now) << BITS;
        let units = Fraction::from(place.saturating_add(u64::from(self.held)));
        let dry_at = self
            .dry_at
            .max(instant)
            .saturating_add(units.saturating_mul(self.unit));
        let allowance = Fraction::from(allowed) * self.unit;
        up(dry_at.saturating_sub(allowance).max(instant))
    }

    pub(super) fn hold(&mut self, units: u32) {
        self.held = self.held.saturating_add(units);
    }

    pub(super) fn release(&mut self, units: u32) {
        self.held = self.held.saturating_sub(units);
    }

    pub(super) fn log(&mut self, now: u64, units: u32) {
        let instant = Fraction::from(now) << BITS;
        self.dry_at = self.dry_at.max(instant) + Fraction::from(units) * self.unit;
    }

    pub(super) fn unlog(&mut self, now: u64, stamp: u64, units: u32) {
        // What has leaked since then is not there any more to be given back.
        let leaked = Fraction::from(now.saturating_sub(stamp)) << BITS;
        let left = (Fraction::from(units) * self.unit).saturating_sub(leaked);
        self.dry_at = self.dry_at.saturating_sub(left);
    }

    pub(super) fn phantom(&mut self, now: u64, units: u32) {
        let units = units.min(self.burst.saturating_sub(self.level(now)));
        self.log(now, units);
        let instant = Fraction::from(now) << BITS;
        self.phantom_dry_at = self.phantom_dry_at.max(instant) + Fraction::from(units) * self.unit;
    }

    pub(super) fn taken(&self, now: u64) -> Taken {
        let level = self.level(now);
        let phantom = self.phantom_level(now).min(level);
        Taken {
            logged: level - phantom,
            phantom,
            held: self.held,
        }
    }

    fn level(&self, now: u64) -> u32 {
        units(self.dry_at, now, self.unit)
    }

    fn phantom_level(&self, now: u64) -> u32 {
        units(self.phantom_dry_at, now, self.unit)
    }
}

/// How many units have yet to leak, begun ones included.
fn units(dry_at: Fraction, now: u64, unit: Fraction) -> u32 {
    let left = dry_at.saturating_sub(Fraction::from(now) << BITS);
    u32::try_from(left.div_ceil(unit.max(1))).unwrap_or(u32::MAX)
}

/// The first whole nanosecond that is no earlier.
fn up(instant: Fraction) -> u64 {
    let whole = (instant.saturating_add((1 << BITS) - 1)) >> BITS;
    u64::try_from(whole).unwrap_or(NEVER - 1)
}
