//! Who goes first.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tower_outcome_rate_limit::{Budget, Class, Cost, Guard, Limit, Ticket};

use crate::{
    support::{exact, far, ms, secs, settled, take, wait},
    venue::Dice,
};

/// Ten requests a second and no guard, for two classes.
fn ten_a_second(lower: Class) -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .class(Class::new("order"))
        .class(lower)
        .guard(Guard::None)
        .max_wait(far())
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn fifty_orders_go_at_once_past_two_thousand_queries() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 500, secs(5)))
        .class(Class::new("order"))
        .class(Class::new("query").leave_percent(10))
        .guard(Guard::None)
        .build()
        .unwrap();
    let queries: Vec<_> = (0..2000)
        .map(|_| wait(&budget, Ticket::new().class(1)))
        .collect();
    sleep(ms(100)).await;
    assert_eq!(budget.snapshot().queued, 1550);

    let start = Instant::now();
    for _ in 0..50 {
        drop(budget.acquire(Ticket::new().class(0)).await.unwrap());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    drop(budget.acquire(Ticket::new().class(0)).await.unwrap());
    assert_eq!(start.elapsed(), ms(4900), "the 51st is next in line");
    for query in queries {
        drop(query.await.unwrap().1.unwrap());
    }
}

/// Keeps so many requests of a class waiting all the time, and counts those that went.
fn saturate(budget: &Budget, class: usize, until: Instant) -> JoinSet<u32> {
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let budget = budget.clone();
        tasks.spawn(async move {
            let mut went = 0;
            while Instant::now() < until {
                drop(budget.acquire(Ticket::new().class(class)).await.unwrap());
                went += u32::from(Instant::now() <= until);
            }
            went
        });
    }
    tasks
}

#[tokio::test(start_paused = true)]
async fn a_class_with_a_floor_gets_its_share_of_a_load_that_never_ends() {
    let budget = ten_a_second(Class::new("sweep").leave_percent(20).floor_percent(10));
    let until = Instant::now() + secs(400);
    let orders = saturate(&budget, 0, until);
    let sweeps = saturate(&budget, 1, until);
    let orders: u32 = orders.join_all().await.iter().sum();
    let sweeps: u32 = sweeps.join_all().await.iter().sum();
    let share = f64::from(sweeps) / f64::from(orders + sweeps);
    assert!((0.09..=0.11).contains(&share), "{sweeps} beside {orders}");
    // It is paid out of the share of those who owe it, so nothing is left unused meanwhile.
    assert_eq!(orders + sweeps, 4010);
}

#[tokio::test(start_paused = true)]
async fn a_floor_is_paid_by_requests_that_need_not_wait_too() {
    let budget = ten_a_second(Class::new("sweep").leave_percent(90).floor_percent(50));
    for _ in 0..10 {
        take(&budget, 1, Ticket::new().class(0));
        sleep(ms(100)).await;
    }
    let sweep = wait(&budget, Ticket::new().class(1));
    settled().await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        let order = wait(&budget, Ticket::new().class(0));
        sleep(ms(100)).await;
        waits.push(order.await.unwrap().0);
    }
    assert_eq!(waits, [ms(0), ms(0), ms(100), ms(100)]);
    assert_eq!(sweep.await.unwrap().0, ms(200));
}

#[tokio::test(start_paused = true)]
async fn a_class_without_a_floor_waits_for_as_long_as_higher_ones_do_not_end() {
    let budget = ten_a_second(Class::new("sweep"));
    let orders = saturate(&budget, 0, Instant::now() + secs(20));
    settled().await;
    let sweep = wait(&budget, Ticket::new().class(1));
    drop(orders.join_all().await);
    let (waited, result) = sweep.await.unwrap();
    drop(result.unwrap());
    assert!(waited >= secs(20), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_floor_is_paid_in_units_and_not_in_requests() {
    let budget = ten_a_second(Class::new("sweep").floor_percent(50));
    let heavy = Ticket::new().class(1).cost(Cost::in_order([5]));
    take(&budget, 10, Ticket::new().class(0));
    let sweep = wait(&budget, heavy);
    settled().await;
    let orders: Vec<_> = (0..20)
        .map(|_| wait(&budget, Ticket::new().class(0)))
        .collect();
    // After ten orders it is owed five units.
    assert_eq!(sweep.await.unwrap().0, secs(2));
    let mut waits = Vec::new();
    for order in orders {
        waits.push(order.await.unwrap().0);
    }
    assert_eq!(waits[9], secs(1));
    assert_eq!(waits[14], secs(2));
    assert_eq!(waits[15], secs(3));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_overtaken_inside_a_class() {
    const WAITERS: usize = 8000;
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 100, secs(1)))
        .max_wait(secs(10_000))
        .build()
        .unwrap();
    let went = Arc::new(Mutex::new(Vec::new()));
    let mut dice = Dice::new(1);
    let mut tasks = JoinSet::new();
    for waiter in 0..WAITERS {
        let cost = Cost::in_order([dice.units(1, 20)]);
        let latency = dice.ms(0, 300);
        let (budget, went) = (budget.clone(), went.clone());
        tasks.spawn(async move {
            let ticket = Ticket::new().class(0).cost(cost);
            let permit = budget.acquire(ticket).await.unwrap();
            went.lock().unwrap().push(waiter);
            sleep(latency).await;
            permit.responded();
        });
    }
    tasks.join_all().await;
    let went = went.lock().unwrap();
    assert!(went.iter().copied().eq(0..WAITERS), "somebody overtook");
}

#[tokio::test(start_paused = true)]
async fn a_light_request_does_not_overtake_a_heavy_one_that_waits() {
    let budget = ten_a_second(Class::new("query"));
    take(&budget, 5, Ticket::new().class(0));
    sleep(ms(500)).await;
    take(&budget, 3, Ticket::new().class(0));
    let heavy = wait(&budget, Ticket::new().class(0).cost(Cost::in_order([10])));
    settled().await;
    let light = wait(&budget, Ticket::new().class(0));
    assert!(budget.try_acquire(&Ticket::new().class(0)).is_err());
    assert_eq!(heavy.await.unwrap().0, secs(1));
    assert_eq!(light.await.unwrap().0, secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_lower_class_does_not_pass_a_higher_one_that_waits() {
    let budget = ten_a_second(Class::new("query"));
    take(&budget, 8, Ticket::new().class(0));
    let order = wait(&budget, Ticket::new().class(0).cost(Cost::in_order([5])));
    settled().await;
    assert!(budget.try_acquire(&Ticket::new().class(1)).is_err());
    let query = wait(&budget, Ticket::new().class(1));
    settled().await;
    assert_eq!(budget.snapshot().queued, 2);
    assert_eq!(order.await.unwrap().0, secs(1));
    assert_eq!(query.await.unwrap().0, secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_higher_class_passes_a_lower_one_that_waits() {
    let budget = ten_a_second(Class::new("query"));
    take(&budget, 10, Ticket::new().class(0));
    let query = wait(&budget, Ticket::new().class(1).cost(Cost::in_order([10])));
    settled().await;
    let order = wait(&budget, Ticket::new().class(0));
    assert_eq!(order.await.unwrap().0, secs(1));
    assert_eq!(query.await.unwrap().0, secs(2));
}

#[tokio::test(start_paused = true)]
async fn what_others_leave_is_for_the_higher_class_alone() {
    let budget = ten_a_second(Class::new("query").leave_percent(30));
    take(&budget, 7, Ticket::new().class(1));
    assert!(budget.try_acquire(&Ticket::new().class(1)).is_err());
    take(&budget, 3, Ticket::new().class(0));
    assert!(budget.try_acquire(&Ticket::new().class(0)).is_err());
}

// === lanes ===

/// A hundred raw requests a second, of which two may be orders.
fn lanes() -> Budget {
    exact("venue")
        .limit(Limit::sliding("raw", 100, secs(1)))
        .limit(Limit::sliding("orders", 2, secs(10)))
        .guard(Guard::None)
        .build()
        .unwrap()
}

const ORDER: Cost = Cost::in_order([1, 1]);
const QUERY: Cost = Cost::in_order([1, 0]);

fn ticket(cost: Cost) -> Ticket {
    Ticket::new().class(0).cost(cost)
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_one_limit_does_not_block_those_that_do_not_use_it() {
    let budget = lanes();
    take(&budget, 2, ticket(ORDER));
    let order = wait(&budget, ticket(ORDER));
    settled().await;
    // One is kept for the order.
    take(&budget, 97, ticket(QUERY));
    let query = wait(&budget, ticket(QUERY));
    assert_eq!(query.await.unwrap().0, secs(1));
    assert_eq!(order.await.unwrap().0, secs(10));
}

/// Nine requests that need both of two limits came first; those behind them need one or the other,
/// and took turns, so that both were never free at once.
#[tokio::test(start_paused = true)]
async fn who_needs_two_limits_is_not_starved_by_those_who_need_one() {
    let budget = exact("venue")
        .limit(Limit::sliding("a", 10, secs(1)))
        .limit(Limit::sliding("b", 10, secs(1)))
        .guard(Guard::None)
        .max_wait(secs(600))
        .build()
        .unwrap();
    let cost = |a, b| Ticket::new().class(0).cost(Cost::in_order([a, b]));
    take(&budget, 1, cost(10, 0));
    sleep(ms(500)).await;
    take(&budget, 1, cost(0, 10));
    let both = wait(&budget, cost(6, 6));
    settled().await;
    for _ in 0..50 {
        drop(wait(&budget, cost(6, 0)));
        drop(wait(&budget, cost(0, 6)));
    }
    assert_eq!(both.await.unwrap().0, secs(1));
}

#[tokio::test(start_paused = true)]
async fn lanes_that_share_a_limit_keep_the_order_of_arrival_on_it() {
    let budget = lanes();
    take(&budget, 100, ticket(QUERY));
    let went = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    let mut queue = |who: &'static str, cost| {
        let (budget, went) = (budget.clone(), went.clone());
        tasks.spawn(async move {
            let permit = budget.acquire(ticket(cost)).await.unwrap();
            went.lock().unwrap().push((who, Instant::now()));
            permit.responded();
        });
    };
    queue("a query", QUERY);
    queue("an order", ORDER);
    queue("a heavy query", Cost::in_order([98, 0]));
    queue("another order", ORDER);
    queue("another query", QUERY);
    let start = Instant::now();
    tasks.join_all().await;
    let went: Vec<_> = went
        .lock()
        .unwrap()
        .iter()
        .map(|&(who, at)| (who, (at - start).as_secs()))
        .collect();
    assert_eq!(
        went,
        [
            ("a query", 1),
            ("an order", 1),
            ("a heavy query", 1),
            ("another order", 2),
            ("another query", 2),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_stuck_lets_those_behind_pass_only_where_they_do_not_use_its_limit() {
    let budget = lanes();
    take(&budget, 2, ticket(ORDER));
    let first = wait(&budget, ticket(ORDER));
    let second = wait(&budget, ticket(ORDER));
    let query = wait(&budget, ticket(QUERY));
    assert_eq!(query.await.unwrap().0, Duration::ZERO);
    assert_eq!(first.await.unwrap().0, secs(10));
    assert_eq!(second.await.unwrap().0, secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_costs_nothing_waits_for_nobody() {
    let budget = lanes();
    take(&budget, 100, ticket(QUERY));
    let _waiting = wait(&budget, ticket(QUERY));
    settled().await;
    take(&budget, 1, ticket(Cost::NOTHING));
    budget.pause(secs(3));
    let nothing = wait(&budget, ticket(Cost::NOTHING));
    assert_eq!(nothing.await.unwrap().0, secs(3));
}

// === a model ===

/// One class of waiters on one limit goes out exactly when a simple account of it says so.
#[test]
fn waiters_go_at_the_first_instant_at_which_they_fit() {
    for seed in 0..300 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(first_instant(Dice::new(seed), seed));
    }
}

async fn first_instant(mut dice: Dice, seed: u64) {
    let capacity = dice.units(5, 20);
    let window = dice.ms(10, 1000);
    let budget = exact("venue")
        .limit(Limit::sliding("requests", capacity, window))
        .guard(Guard::None)
        .max_wait(far())
        .build()
        .unwrap();
    let start = Instant::now();
    let mut arrivals: Vec<_> = (0..40)
        .map(|_| (dice.ms(0, 1000), dice.units(1, 5)))
        .collect();
    arrivals.sort_unstable();
    let mut tasks = Vec::new();
    for &(at, units) in &arrivals {
        let acquire = budget.acquire(ticket(Cost::in_order([units])));
        tasks.push(tokio::spawn(async move {
            sleep_until(start + at).await;
            drop(acquire.await.unwrap());
            start.elapsed()
        }));
    }
    let mut gone: Vec<(Duration, u32)> = Vec::new();
    for (&(at, units), task) in arrivals.iter().zip(tasks) {
        let before = gone.last().map_or(at, |&(last, _)| last.max(at));
        let room = |instant: Duration| {
            let counted = gone.iter().filter(|&&(then, _)| then + window > instant);
            counted.map(|&(_, units)| units).sum::<u32>() + units <= capacity
        };
        let ends = gone.iter().map(|&(then, _)| then + window);
        let instants = ends.filter(|&end| end > before);
        let first = std::iter::once(before).chain(instants).find(|&at| room(at));
        let went = task.await.unwrap();
        assert_eq!(went, first.unwrap(), "seed {seed}");
        gone.push((went, units));
    }
}
