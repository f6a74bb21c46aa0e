//! What the documentation promises, where it was not so once.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, advance, sleep};
use tokio_test::{assert_pending, assert_ready, task};
use tower_outcome_core::Priority;
use tower_outcome_rate_limit::{
    Admitted, Budget, Class, Cost, Guard, Limit, Observer, Permit, Ticket,
};

use crate::support::{exact, ms, secs, settled, take, wait};

fn order() -> Ticket {
    Ticket::new().priority(Priority::HIGHEST)
}

fn sweep(units: u32) -> Ticket {
    Ticket::new()
        .priority(Priority::LOWEST)
        .cost(Cost::in_order([units]))
}

/// The classes that a budget has if nobody says.
fn default_classes() -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 500, secs(5)))
        .guard(Guard::None)
        .max_wait(secs(600))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn with_the_default_classes_what_is_left_to_orders_goes_without_a_wait() {
    let budget = default_classes();
    let sweeps: Vec<_> = (0..100).map(|_| wait(&budget, sweep(20))).collect();
    let queries: Vec<_> = (0..400).map(|_| wait(&budget, Ticket::new())).collect();
    settled().await;
    let start = Instant::now();
    for _ in 0..50 {
        budget.acquire(order()).await.unwrap().responded();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    drop((sweeps, queries));
}

#[tokio::test(start_paused = true)]
async fn a_class_that_owes_nothing_pays_nothing() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .class(Class::new("order").owes_nothing())
        .class(Class::new("sweep").floor_percent(50))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 10, order());
    let waiting = wait(&budget, Ticket::new().class(1));
    settled().await;
    let orders: Vec<_> = (0..30)
        .map(|_| wait(&budget, Ticket::new().class(0)))
        .collect();
    assert_eq!(waiting.await.unwrap().0, secs(4), "when no order is left");
    for each in orders {
        each.await.unwrap().1.unwrap().responded();
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_limit_leaves_something_too() {
    let budget = exact("venue")
        .limit(Limit::sliding("nine", 9, secs(1)))
        .limit(Limit::sliding("one", 1, secs(1)))
        .class(Class::new("order"))
        .class(Class::new("query").leave_percent(10))
        .build()
        .unwrap();
    let query = |nine, one| Ticket::new().class(1).cost(Cost::in_order([nine, one]));
    budget.try_acquire(&query(9, 0)).unwrap_err();
    budget.try_acquire(&query(8, 0)).unwrap().refund();
    budget.try_acquire(&query(0, 1)).unwrap().refund();
}

#[tokio::test(start_paused = true)]
async fn two_that_are_polled_late_depart_as_far_apart_as_any() {
    let budget = exact("venue")
        .limit(Limit::spacing("gap", ms(100)))
        .build()
        .unwrap();
    take(&budget, 1, order());
    let mut late = [(); 2].map(|()| task::spawn(budget.acquire(order())));
    for each in &mut late {
        assert_pending!(each.poll());
    }
    sleep(ms(500)).await;
    let [first, second] = &mut late;
    assert_ready!(first.poll()).unwrap().responded();
    assert_pending!(second.poll());
    sleep(ms(99)).await;
    assert_pending!(second.poll());
    advance(ms(1)).await;
    settled().await;
    assert_ready!(second.poll()).unwrap().responded();
}

#[tokio::test(start_paused = true)]
async fn who_fits_goes_when_those_before_it_are_sent_away() {
    let budget = exact("venue")
        .limit(Limit::sliding("a", 10, secs(10)))
        .limit(Limit::sliding("b", 10, secs(10)))
        .guard(Guard::None)
        .build()
        .unwrap();
    let cost = |a, b| order().cost(Cost::in_order([a, b]));
    take(&budget, 1, cost(5, 0));
    // It needs both, and keeps what is left of `b` for itself.
    let hopeless = wait(&budget, cost(6, 10));
    settled().await;
    let behind = wait(&budget, cost(0, 1));
    settled().await;
    assert_eq!(budget.snapshot().queued, 2);
    budget.close_limit("a", secs(60)).unwrap();
    hopeless.await.unwrap().1.unwrap_err();
    assert_eq!(behind.await.unwrap().0, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_for_callers_that_are_slow_and_always_refused() {
    let budget = exact("venue")
        .limit(Limit::sliding("second", 10, secs(1)))
        .max_wait(secs(600))
        .build()
        .unwrap();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let permit = budget.acquire(order()).await.unwrap();
        permit.responded();
        budget.throttled(None);
        pauses.push(budget.snapshot().paused_for.as_secs());
        sleep(secs(100)).await;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60]);
    // Answers that are no refusals, and a window: it begins again.
    for _ in 0..2 {
        budget.acquire(order()).await.unwrap().responded();
    }
    sleep(secs(100)).await;
    budget.acquire(order()).await.unwrap().responded();
    budget.throttled(None);
    assert_eq!(budget.snapshot().paused_for, secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_ban_lasts_longer_than_any_refusal() {
    let budget = default_classes();
    let days = secs(2 * 24 * 60 * 60);
    budget.throttled(Some(days));
    assert_eq!(budget.snapshot().paused_for, secs(60 * 60));
    budget.banned(Some(days));
    assert_eq!(budget.snapshot().paused_for, days);
}

/// Panics at the first that is let through.
struct Panicky;

impl Observer for Panicky {
    fn admitted(&self, _: &Admitted<'_>) {
        panic!("as it was meant to");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_who_watches_loses_nothing_but_the_panic() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 1, secs(1)))
        .observer(Arc::new(Panicky))
        .build()
        .unwrap();
    let attempt = || budget.try_acquire(&order()).map(Permit::responded);
    assert!(catch_unwind(AssertUnwindSafe(attempt)).is_err());
    sleep(secs(2)).await;
    let usage = &budget.snapshot().limits[0];
    assert_eq!((usage.held, usage.used), (0, 0));
}
