//! Whether those who wait hold up those who may go.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Waker},
};

use tokio::runtime;
use tower_outcome::rate_limit::Ticket;

use crate::{
    effort::Effort,
    ours,
    report::{Figure, Row, Table},
    time,
};

/// Measures a high class with nobody queued, and with a low class queued that has no turn.
pub(crate) fn measure(effort: &Effort) -> Table {
    let alone = try_acquire(effort, 0);
    let beside = try_acquire(effort, effort.waiters);
    let row = |case, about, ns: f64| Row {
        case,
        about,
        figures: vec![Figure::new("ns", ns), Figure::new("ns_ratio", ns / alone)],
    };
    Table {
        about: format!(
            "per call of a high class, as a multiple of that with nobody queued; {} of a low class",
            effort.waiters
        ),
        rows: vec![
            row("outcome_try_acquire", "nobody is queued", alone),
            row(
                "outcome_try_acquire_queued",
                "the low class is queued",
                beside,
            ),
        ],
    }
}

/// The time of one call while so many wait.
fn try_acquire(effort: &Effort, queued: u32) -> f64 {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("needs nothing");
    let _entered = runtime.enter();
    let budget = ours::reserved();
    let low = Ticket::new().class(1);
    let mut queue: Vec<_> = (0..queued).map(|_| budget.acquire(low)).collect();
    let mut context = Context::from_waker(Waker::noop());
    for waiter in &mut queue {
        let polled = Pin::new(waiter).poll(&mut context);
        assert!(polled.is_pending(), "has no turn");
    }
    let high = Ticket::new().class(0);
    let bursts = (0..effort.rounds).map(|_| {
        let ((), taken) = time::during(|| {
            for _ in 0..effort.burst {
                let permit = budget.try_acquire(&high);
                assert!(permit.is_ok(), "has room of its own");
            }
        });
        taken.wall
    });
    time::ns_each(bursts.min().unwrap_or_default(), effort.burst)
}
