//! Comparing times.

use std::time::{Duration, Instant};

use crate::call::Burst;

/// One loop among those that take turns.
pub(crate) struct Contender {
    pub(crate) burst: Box<dyn Burst>,
    /// The index of the loop that it is compared with.
    pub(crate) against: usize,
}

/// Returns for each loop the median, over many rounds, of its time by that of its opponent in the
/// same round: what disturbs the machine for longer than a round falls on both.
pub(crate) fn ratios(contenders: &mut [Contender], rounds: u32, calls: u32) -> Vec<f64> {
    let mut ratios = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        let times: Vec<Duration> = contenders
            .iter_mut()
            .map(|contender| time(&mut *contender.burst, calls))
            .collect();
        for (index, contender) in contenders.iter().enumerate() {
            let (own, other) = (times[index], times[contender.against]);
            ratios[index].push(own.as_secs_f64() / other.as_secs_f64());
        }
    }
    ratios.into_iter().map(median).collect()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn time(burst: &mut dyn Burst, calls: u32) -> Duration {
    let begin = Instant::now();
    burst.run(calls);
    begin.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
