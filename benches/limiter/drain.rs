//! What it costs to let all of a long queue go.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{runtime, time::Instant};
use tower_outcome::rate_limit::{Guard, Limit};

use crate::{
    effort::Effort,
    ours, peers,
    report::{Figure, Row, Table},
    time,
};

/// What a drain took.
#[derive(Clone, Copy)]
struct Drained {
    /// Of the processor.
    cpu: Duration,
    /// On the paused clock.
    clock: Duration,
}

const SECOND: Duration = Duration::from_secs(1);

/// Measures leaky-bucket and ours: 1000 a second.
pub(crate) fn measure(effort: &Effort) -> Table {
    let ours = |guard| {
        let limit = Limit::sliding("requests", 1000, SECOND);
        drain(
            effort.waiters,
            || ours::budget(limit, guard),
            |budget| ours::wait(budget.clone()),
        )
    };
    let leaky_bucket = || {
        drain(
            effort.waiters,
            || Arc::new(peers::leaky_bucket(1000, SECOND, 1000)),
            |limiter| {
                let limiter = Arc::clone(limiter);
                async move { limiter.acquire_one().await }
            },
        )
    };
    // They take turns, and the best of each is what the work itself costs.
    let [mut peer, mut window, mut held] = [Drained::NEVER; 3];
    for _ in 0..effort.drains {
        peer = peer.or(leaky_bucket());
        window = window.or(ours(Guard::None));
        held = held.or(ours(ours::UNTIL_RESPONSE));
    }
    let row = |case, about, drained: Drained, bound: Option<f64>| Row {
        case,
        about,
        figures: vec![
            Figure::new("cpu_ms", drained.cpu.as_secs_f64() * 1e3),
            Figure::new(
                "cpu_ratio",
                drained.cpu.as_secs_f64() / peer.cpu.as_secs_f64(),
            )
            .at_most(bound),
            Figure::new("clock_s", drained.clock.as_secs_f64()),
        ],
    };
    Table {
        about: format!(
            "{} tasks at once, 1000 a second on a paused clock; the processor's time as a multiple \
             of leaky-bucket's",
            effort.waiters
        ),
        rows: vec![
            row("leaky_bucket_acquire", "leaky-bucket", peer, None),
            row("outcome_acquire", "a sliding window", window, Some(1.3)),
            row(
                "outcome_until_response",
                "the same, held until the response is reported",
                held,
                None,
            ),
        ],
    }
}

/// Spawns so many tasks that each wait once, and lets all of them go.
fn drain<L, F>(tasks: u32, start: impl FnOnce() -> L, wait: impl Fn(&L) -> F) -> Drained
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("needs nothing");
    let (clock, taken) = time::during(|| {
        runtime.block_on(async {
            let begin = Instant::now();
            let limiter = start();
            let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(wait(&limiter))).collect();
            for task in tasks {
                task.await.expect("does not panic");
            }
            begin.elapsed()
        })
    });
    Drained {
        cpu: taken.cpu,
        clock,
    }
}

// === impl Drained ===

impl Drained {
    const NEVER: Self = Self {
        cpu: Duration::MAX,
        clock: Duration::ZERO,
    };

    fn or(self, other: Self) -> Self {
        if other.cpu < self.cpu { other } else { self }
    }
}
