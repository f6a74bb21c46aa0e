//! Rounds in which the two clients take turns.

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use tokio::runtime::Runtime;
use tower::BoxError;

use crate::{
    Protocol,
    client::{self, Send},
    server,
};

/// How much is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) rounds: u32,
    /// Requests of each client in a round.
    pub(crate) calls: u32,
}

/// What the stack leaves of the throughput of the bare client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) protocol: Protocol,
    /// Requests in a second, by the median round.
    pub(crate) bare: f64,
    pub(crate) full: f64,
    /// Full by bare, by the clock.
    pub(crate) by_clock: Spread,
    /// The same by the processor time of the client's side.
    pub(crate) by_processor: Spread,
}

/// The median of many rounds, and the half of them in the middle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

#[derive(Clone, Copy, Debug)]
struct Took {
    clock: Duration,
    processor: Duration,
}

// === impl Effort ===

impl Effort {
    pub(crate) const FULL: Self = Self {
        rounds: 40,
        calls: 4000,
    };

    pub(crate) const QUICK: Self = Self {
        rounds: 8,
        calls: 1000,
    };

    pub(crate) const TRY: Self = Self {
        rounds: 1,
        calls: 32,
    };
}

/// Measures both clients over a protocol.
///
/// They run on this thread, with all that is spawned for their connections, and the server on another.
pub(crate) fn measure(
    runtime: &Runtime,
    protocol: Protocol,
    effort: Effort,
) -> Result<Figures, BoxError> {
    let _entered = runtime.enter();
    let server = server::start(protocol)?;
    let bare = client::bare(protocol, server);
    let full = client::full(protocol, server);
    // Connections are made and layers have seen their order before anything counts.
    for send in [&bare, &full] {
        take(runtime, send, effort.calls)?;
    }
    let mut rounds = Vec::new();
    for round in 0..effort.rounds {
        // Whoever comes second meets what the first has left behind, so they take turns in that too.
        rounds.push(if round % 2 == 0 {
            let bare = take(runtime, &bare, effort.calls)?;
            (bare, take(runtime, &full, effort.calls)?)
        } else {
            let full = take(runtime, &full, effort.calls)?;
            (take(runtime, &bare, effort.calls)?, full)
        });
    }
    let rate = |time: Duration| f64::from(effort.calls) / time.as_secs_f64();
    let of = |ratio: fn(&(Took, Took)) -> f64| Spread::of(rounds.iter().map(ratio).collect());
    Ok(Figures {
        protocol,
        bare: Spread::of(rounds.iter().map(|(bare, _)| rate(bare.clock)).collect()).median,
        full: Spread::of(rounds.iter().map(|(_, full)| rate(full.clock)).collect()).median,
        by_clock: of(|(bare, full)| bare.clock.as_secs_f64() / full.clock.as_secs_f64()),
        by_processor: of(|(bare, full)| {
            bare.processor.as_secs_f64() / full.processor.as_secs_f64()
        }),
    })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn take(runtime: &Runtime, send: &Send, calls: u32) -> Result<Took, BoxError> {
    let (clock, processor) = (Instant::now(), ThreadTime::now());
    runtime.block_on(async {
        let mut workers = send(calls);
        while let Some(worker) = workers.join_next().await {
            worker??;
        }
        Ok::<_, BoxError>(())
    })?;
    Ok(Took {
        clock: clock.elapsed(),
        processor: processor.elapsed(),
    })
}

// === impl Spread ===

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
        Self {
            low: at(1),
            median: at(2),
            high: at(3),
        }
    }
}
