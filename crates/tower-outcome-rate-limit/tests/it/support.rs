//! Budgets whose arithmetic is exact, and waiters.

use std::time::Duration;

use tokio::{
    task::{JoinHandle, yield_now},
    time::Instant,
};
use tower_outcome_rate_limit::{Budget, BudgetBuilder, Permit, Refused, Ticket};

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Longer than any test.
pub(crate) fn far() -> Duration {
    secs(1_000_000)
}

/// Windows are as long as they say.
pub(crate) fn exact(name: &str) -> BudgetBuilder {
    Budget::builder(name).clock_tolerance(0, Duration::ZERO)
}

/// A waiter, and what came of it and how long after the start of its wait.
pub(crate) fn wait(
    budget: &Budget,
    ticket: Ticket,
) -> JoinHandle<(Duration, Result<Permit, Refused>)> {
    let acquire = budget.acquire(ticket);
    tokio::spawn(async move {
        let start = Instant::now();
        let result = acquire.await;
        (start.elapsed(), result)
    })
}

/// Lets so many requests go at once, and answers them.
#[track_caller]
pub(crate) fn take(budget: &Budget, requests: usize, ticket: Ticket) {
    for _ in 0..requests {
        budget.try_acquire(&ticket).unwrap().responded();
    }
}

/// Lets everybody go as far as they can without the clock going on.
pub(crate) async fn settled() {
    for _ in 0..20 {
        yield_now().await;
    }
}
