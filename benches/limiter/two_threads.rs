//! What it costs to ask on two threads that share one limiter.

use std::{
    hint,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use crate::{
    cases::{self, Burst},
    effort::Effort,
    report::{Figure, Row, Table},
    time::{self, Taken},
};

/// Measures all cases.
pub(crate) fn measure(effort: &Effort) -> Table {
    let bursts: Vec<Burst> = cases::ALL.iter().map(|case| (case.start)()).collect();
    let mut rounds = vec![Vec::new(); bursts.len()];
    for _ in 0..effort.pair_rounds {
        for (burst, rounds) in bursts.iter().zip(&mut rounds) {
            rounds.push(on_two_threads(burst, effort.pair_burst));
        }
    }
    for rounds in &mut rounds {
        keep_together(rounds);
    }
    let ns = |rounds: &[Taken], of: fn(&Taken) -> Duration| {
        let mut times: Vec<_> = rounds.iter().map(of).collect();
        times.sort_unstable();
        time::ns_each(times[times.len() / 2], effort.pair_burst * 2)
    };
    let base = ns(&rounds[0], |taken| taken.cpu);
    let rows = cases::ALL.iter().zip(&rounds).map(|(case, rounds)| {
        let cpu = ns(rounds, |taken| taken.cpu);
        Row {
            case: case.name,
            about: case.about,
            figures: vec![
                Figure::new("cpu_ns", cpu),
                Figure::new("cpu_ratio", cpu / base),
                Figure::new("wall_ns", ns(rounds, |taken| taken.wall)),
            ],
        }
    });
    Table {
        about: "per call of either thread; the processor's time as a multiple of governor's"
            .to_owned(),
        rows: rows.collect(),
    }
}

/// Keeps the half of the rounds in which the threads ran together most: one after the other, on a
/// processor that they share or while the other one is taken, they do not get in each other's way.
fn keep_together(rounds: &mut Vec<Taken>) {
    let together = |taken: &Taken| taken.cpu.as_secs_f64() / taken.wall.as_secs_f64();
    rounds.sort_by(|a, b| together(b).total_cmp(&together(a)));
    rounds.truncate(rounds.len().div_ceil(2));
}

fn on_two_threads(burst: &Burst, calls: u32) -> Taken {
    let here = AtomicU32::new(0);
    let thread = || {
        // A thread that slept would be woken on the processor of the other one, and stay there.
        here.fetch_add(1, Ordering::AcqRel);
        while here.load(Ordering::Acquire) < 2 {
            hint::spin_loop();
        }
        burst(calls);
    };
    let ((), taken) = time::during(|| {
        thread::scope(|scope| {
            scope.spawn(thread);
            scope.spawn(thread);
        });
    });
    taken
}
