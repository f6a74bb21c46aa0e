//! Taking times.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

/// What a piece of work took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// On the wall.
    pub(crate) wall: Duration,
    /// Of the processors, all threads together.
    pub(crate) cpu: Duration,
}

/// Does the work and tells what it took.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn during<T>(work: impl FnOnce() -> T) -> (T, Taken) {
    let cpu = ProcessTime::now();
    let wall = Instant::now();
    let done = work();
    let taken = Taken {
        wall: wall.elapsed(),
        cpu: cpu.elapsed(),
    };
    (done, taken)
}

/// Nanoseconds of each of so many.
pub(crate) fn ns_each(time: Duration, of: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(of)
}
