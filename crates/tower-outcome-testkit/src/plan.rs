//! A seeded plan of what goes wrong.

use crate::Fault;
use crate::ledger::fnv1a;

/// Draws faults for requests that carry none, always the same ones for the same seed.
///
/// What befalls a request depends on the seed, on its `x-operation-id` and on how many requests of
/// that operation came before it, never on timing or on the order in which connections are served.
/// Requests without an operation id are told apart by their arrival number.
///
/// ```
/// # use tower_outcome_testkit::{Fault, Plan, Point};
/// let plan = Plan::new(7)
///     .rate(0.5)
///     .fault(3, Fault::status(503, false))
///     .fault(1, Fault::Close { at: Point::Applied });
/// assert_eq!(plan.draw("order-1", 0), plan.draw("order-1", 0));
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    seed: u64,
    rate: f64,
    faults: Vec<(u32, Fault)>,
    accept: Vec<(f64, AtAccept)>,
}

/// What may befall a connection before anything is read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AtAccept {
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
}

// === impl Plan ===

impl Plan {
    /// Starts a plan without faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            rate: 0.0,
            faults: Vec::new(),
            accept: Vec::new(),
        }
    }

    /// Sets the share of requests that meet a fault, 0 to 1.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Adds a fault; it is drawn `weight` times as often as one of weight 1.
    #[must_use]
    pub fn fault(mut self, weight: u32, fault: Fault) -> Self {
        self.faults.push((weight, fault));
        self
    }

    /// Adds faults of weight 1 each.
    #[must_use]
    pub fn faults(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.faults
            .extend(faults.into_iter().map(|fault| (1, fault)));
        self
    }

    /// Sets the share of connections, 0 to 1, that meet this at accept.
    #[must_use]
    pub fn at_accept(mut self, rate: f64, what: AtAccept) -> Self {
        self.accept.push((rate, what));
        self
    }

    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Draws what befalls the request number `attempt`, from 0, of an operation.
    #[must_use]
    pub fn draw(&self, operation: &str, attempt: u64) -> Option<&Fault> {
        self.pick(self.seed ^ fnv1a(operation.as_bytes()), attempt)
    }

    /// Draws what befalls a request without an operation id by its arrival number, from 0.
    #[must_use]
    pub fn draw_arrival(&self, number: u64) -> Option<&Fault> {
        self.pick(self.seed, number)
    }

    /// Draws what befalls the connection with this number, from 0.
    #[must_use]
    pub fn draw_accept(&self, number: u64) -> Option<AtAccept> {
        let mut dice = Dice::new(self.seed ^ 0xacce_97ed, number);
        self.accept
            .iter()
            .find(|(rate, _)| dice.unit() < *rate)
            .map(|(_, what)| *what)
    }

    pub(crate) fn rates(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.rate).chain(self.accept.iter().map(|(rate, _)| *rate))
    }

    fn pick(&self, stream: u64, number: u64) -> Option<&Fault> {
        let mut dice = Dice::new(stream, number);
        if dice.unit() >= self.rate {
            return None;
        }
        let total: u64 = self
            .faults
            .iter()
            .map(|(weight, _)| u64::from(*weight))
            .sum();
        let mut left = dice.next().checked_rem(total)?;
        for (weight, fault) in &self.faults {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) => left = rest,
                None => return Some(fault),
            }
        }
        None
    }
}

/// The splitmix64 generator (Steele, Lea and Flood, 2014).
struct Dice(u64);

// === impl Dice ===

impl Dice {
    fn new(stream: u64, number: u64) -> Self {
        // Mixed once, so that neighbouring numbers start far apart.
        let mut start = Self(stream);
        let base = start.next();
        let mut dice = Self(base ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to but not including 1.
    fn unit(&mut self) -> f64 {
        // The upper 53 bits fit a double exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_matches_the_published_sequence() {
        let mut dice = Dice(1_234_567);
        assert_eq!(dice.next(), 6_457_827_717_110_365_317);
        assert_eq!(dice.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn same_seed_draws_the_same_and_another_seed_does_not() {
        let plan = |seed| Plan::new(seed).rate(0.5).faults(Fault::all());
        let fates = |plan: &Plan| -> Vec<Option<Fault>> {
            (0..200)
                .map(|n| plan.draw(&format!("op-{}", n / 4), n % 4).cloned())
                .collect()
        };
        assert_eq!(fates(&plan(1)), fates(&plan(1)));
        assert_ne!(fates(&plan(1)), fates(&plan(2)));
    }

    #[test]
    fn rate_and_weights_are_kept() {
        let plan = Plan::new(3)
            .rate(0.25)
            .fault(3, Fault::RefuseStream)
            .fault(0, Fault::ResetIdle)
            .fault(1, Fault::CloseIdle);
        let drawn: Vec<_> = (0..40_000).filter_map(|n| plan.draw_arrival(n)).collect();
        let share = drawn.len() as f64 / 40_000.0;
        assert!((0.24..0.26).contains(&share), "{share}");
        let refused = drawn.iter().filter(|f| ***f == Fault::RefuseStream).count() as f64;
        let weight = refused / drawn.len() as f64;
        assert!((0.73..0.77).contains(&weight), "{weight}");
        assert!(drawn.iter().all(|f| **f != Fault::ResetIdle));
    }

    #[test]
    fn a_plan_without_faults_draws_none() {
        assert_eq!(Plan::new(1).rate(1.0).draw("op", 0), None);
        assert_eq!(Plan::new(1).draw_accept(0), None);
    }
}
