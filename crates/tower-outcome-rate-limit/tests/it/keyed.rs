//! One budget for each key.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::time::sleep;
use tower_outcome_rate_limit::{Budget, Cost, KeyedBudget, Limit, RefusedKind, Ticket};

use crate::support::{exact, secs, settled, take, wait};

const ORDER: usize = 0;

fn order() -> Ticket {
    Ticket::new().class(ORDER)
}

fn hosts(requests: u32) -> KeyedBudget<u32> {
    let one = exact("host").limit(Limit::sliding("requests", requests, secs(1)));
    KeyedBudget::try_new(one).unwrap()
}

fn capacity(budget: &Budget) -> u32 {
    budget.snapshot().limits[0].capacity
}

// === memory ===

/// Shards that were swept only when they had doubled kept the keys of the largest rush for good.
#[tokio::test(start_paused = true)]
async fn the_keys_of_a_rush_go_when_as_many_have_been_asked_for() {
    let hosts = hosts(10);
    for key in 0..20_000 {
        take(&hosts.get(&key), 1, order());
    }
    assert_eq!(hosts.len(), 20_000);
    sleep(secs(1)).await;
    for call in 0..25_000 {
        let _ = hosts.get(&(1_000_000 + call % 100));
    }
    assert!(hosts.len() <= 100 + 16 * 16, "{}", hosts.len());
}

/// Nobody asks for anything in the other shards.
#[tokio::test(start_paused = true)]
async fn who_asks_for_one_key_lets_the_others_be_forgotten() {
    let hosts = hosts(10);
    for key in 0..2_000 {
        take(&hosts.get(&key), 1, order());
    }
    sleep(secs(1)).await;
    for _ in 0..3_000 {
        let _ = hosts.get(&7);
    }
    assert!(hosts.len() <= 1, "{}", hosts.len());
}

// === changes ===

#[tokio::test(start_paused = true)]
async fn a_change_of_all_holds_for_those_that_are_and_those_to_come() {
    let hosts = hosts(100);
    take(&hosts.get(&1), 8, order());
    hosts
        .reconfigure(&Limit::sliding("requests", 10, secs(1)))
        .unwrap();
    take(&hosts.get(&1), 2, order());
    assert!(hosts.get(&1).try_acquire(&order()).is_err());
    take(&hosts.get(&2), 10, order());
    assert!(hosts.get(&2).try_acquire(&order()).is_err());
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_with_all_others_is_forgotten_when_it_is_idle() {
    let hosts = hosts(100);
    take(&hosts.get(&1), 1, order());
    hosts
        .reconfigure(&Limit::sliding("requests", 10, secs(1)))
        .unwrap();
    sleep(secs(1)).await;
    hosts.evict_idle();
    assert!(hosts.is_empty());
    assert_eq!(capacity(&hosts.get(&1)), 10);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_no_budget_takes_changes_nothing() {
    let hosts = hosts(100);
    let first = hosts.get(&1);
    for limit in [
        Limit::sliding("weight", 1, secs(1)),
        Limit::sliding("requests", 0, secs(1)),
        Limit::token_bucket("requests", 1, secs(1)),
    ] {
        assert!(hosts.reconfigure(&limit).is_err(), "{limit:?}");
    }
    assert_eq!(capacity(&first), 100);
    assert_eq!(capacity(&hosts.get(&2)), 100);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_fit_any_more_is_refused_by_a_change_of_all() {
    let hosts = hosts(100);
    let twenty = order().cost(Cost::in_order([20]));
    take(&hosts.get(&1), 90, order());
    let waiter = wait(&hosts.get(&1), twenty);
    settled().await;
    hosts
        .reconfigure(&Limit::sliding("requests", 10, secs(1)))
        .unwrap();
    let (_, result) = waiter.await.unwrap();
    let refused = result.unwrap_err();
    assert!(matches!(refused.kind(), RefusedKind::TooLarge { .. }));
}

/// Wakers are foreign code, and may do anything with the map.
#[tokio::test(start_paused = true)]
async fn who_is_sent_away_by_a_change_of_all_may_ask_for_a_budget() {
    struct Asks {
        hosts: KeyedBudget<u32>,
        woken: AtomicUsize,
    }
    impl std::task::Wake for Asks {
        fn wake(self: Arc<Self>) {
            self.woken.fetch_add(1, Ordering::Relaxed);
            let _ = self.hosts.get(&1);
            assert!(!self.hosts.is_empty());
        }
    }
    let hosts = hosts(100);
    take(&hosts.get(&1), 90, order());
    let mut acquire = Box::pin(hosts.get(&1).acquire(order().cost(Cost::in_order([20]))));
    let asks = Arc::new(Asks {
        hosts: hosts.clone(),
        woken: AtomicUsize::new(0),
    });
    let waker = std::task::Waker::from(asks.clone());
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(Future::poll(acquire.as_mut(), &mut cx).is_pending());
    hosts
        .reconfigure(&Limit::sliding("requests", 10, secs(1)))
        .unwrap();
    assert_eq!(asks.woken.load(Ordering::Relaxed), 1);
}

// === costs ===

#[test]
fn a_cost_by_name_makes_no_key() {
    let one = exact("host")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .limit(Limit::sliding("weight", 100, secs(1)));
    let hosts = KeyedBudget::<u32>::try_new(one).unwrap();
    let cost = hosts.cost([("weight", 7)]).unwrap();
    assert_eq!(cost, Cost::in_order([0, 7]));
    assert!(hosts.is_empty());
    assert_eq!(hosts.cost([("wait", 7)]).unwrap_err().field(), "limit");
}
