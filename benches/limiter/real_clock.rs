//! What the processor does while thousands wait and the clock runs.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::runtime;
use tower_outcome::rate_limit::{Guard, Limit};

use crate::{
    effort::Effort,
    ours, peers,
    report::{Figure, Row, Table},
    time::{self, Taken},
};

/// What became of the tasks of one limiter.
struct Herd {
    taken: Taken,
    /// How far the task that was moved farthest went out from where it came in.
    displaced: usize,
}

/// Measures governor, leaky-bucket and ours: 1000 a second, and a burst of 100.
pub(crate) fn measure(effort: &Effort) -> Table {
    let milli = Duration::from_millis(1);
    let limiter = Arc::new(peers::governor(milli, 100));
    let governor = herd(effort.herd, || {
        let limiter = Arc::clone(&limiter);
        async move { limiter.until_ready().await }
    });
    let limiter = Arc::new(peers::leaky_bucket(10, 10 * milli, 100));
    let leaky_bucket = herd(effort.herd, || {
        let limiter = Arc::clone(&limiter);
        async move { limiter.acquire_one().await }
    });
    let ours = |limit| {
        let budget = ours::budget(limit, Guard::None);
        herd(effort.herd, || ours::wait(budget.clone()))
    };
    let window = ours(Limit::sliding("requests", 100, 100 * milli));
    let bucket = ours(Limit::token_bucket("requests", 1, milli).burst(100));
    // Governor's time grows with the square of the tasks: with fewer, a task each millisecond is no
    // longer to be compared.
    let many = effort.herd >= Effort::FULL.herd;
    let bound = 1.0 / 50.0;
    let row = |case, about, herd: &Herd, cpu: Option<f64>, displaced: Option<f64>| Row {
        case,
        about,
        figures: vec![
            Figure::new("seconds", herd.taken.wall.as_secs_f64()),
            Figure::new("cpu_ms", herd.taken.cpu.as_secs_f64() * 1e3),
            Figure::new(
                "cpu_ratio",
                herd.taken.cpu.as_secs_f64() / governor.taken.cpu.as_secs_f64(),
            )
            .at_most(cpu),
            Figure::new("displaced", herd.displaced as f64).at_most(displaced),
        ],
    };
    Table {
        about: format!(
            "{} tasks at once, 1000 a second, a burst of 100; the processor's time as a multiple \
             of governor's, and how far the worst task was displaced from its turn",
            effort.herd
        ),
        rows: vec![
            row("governor_until_ready", "governor", &governor, None, None),
            row(
                "leaky_bucket_acquire",
                "leaky-bucket, 10 per 10 ms",
                &leaky_bucket,
                None,
                None,
            ),
            row(
                "outcome_window",
                "a sliding window, 100 per 100 ms",
                &window,
                Some(bound),
                Some(0.0),
            ),
            row(
                "outcome_bucket",
                "a token bucket, 1 per ms",
                &bucket,
                many.then_some(bound),
                Some(0.0),
            ),
        ],
    }
}

/// Spawns so many tasks that each wait once, and waits for all of them.
fn herd<F>(tasks: u32, wait: impl Fn() -> F) -> Herd
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("needs nothing");
    let left = Arc::new(Mutex::new(Vec::new()));
    let ((), taken) = time::during(|| {
        runtime.block_on(async {
            let tasks: Vec<_> = (0..tasks as usize)
                .map(|came| {
                    let (wait, left) = (wait(), Arc::clone(&left));
                    tokio::spawn(async move {
                        wait.await;
                        left.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(came);
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("does not panic");
            }
        });
    });
    let left = left.lock().unwrap_or_else(PoisonError::into_inner);
    let displaced = left.iter().enumerate();
    Herd {
        taken,
        displaced: displaced
            .map(|(turn, &came)| turn.abs_diff(came))
            .max()
            .unwrap_or(0),
    }
}
