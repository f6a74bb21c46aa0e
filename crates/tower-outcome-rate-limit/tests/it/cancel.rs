//! A wait that ends early leaves nothing behind, wherever and in whatever runtime that happens.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::yield_now,
    time::{advance, sleep},
};
use tokio_test::{assert_pending, assert_ready, task};
use tower_outcome_rate_limit::{Acquire, Budget, Cost, Guard, Limit, Permit, RefusedKind, Ticket};

use crate::{
    support::{exact, ms, secs, settled, take, wait},
    venue::Dice,
};

fn order() -> Ticket {
    Ticket::new().class(0)
}

fn used_and_held(budget: &Budget) -> (u32, u32) {
    let limit = &budget.snapshot().limits[0];
    (limit.used, limit.held)
}

const GUARDS: [Guard; 3] = [
    Guard::UntilResponse { late: ms(500) },
    Guard::Fixed(ms(500)),
    Guard::None,
];

fn two_a_second(guard: Guard) -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 2, secs(1)))
        .limit(Limit::token_bucket("tokens", 4, secs(1)))
        .guard(guard)
        .build()
        .unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Responded,
    Refunded,
    Dropped,
}

/// Waits for 1,000 to 1,500 ms, polled every 100 ms; dropped after so many polls, or ended.
async fn polled_so_often(polls: usize, guard: Guard, end: End) {
    let budget = two_a_second(guard);
    take(&budget, 2, order());
    let mut waiting = task::spawn(budget.acquire(order()));
    let mut permit: Option<Permit> = None;
    for _ in 0..polls {
        if let Poll::Ready(result) = waiting.poll() {
            permit = Some(result.unwrap());
            break;
        }
        advance(ms(100)).await;
        settled().await;
    }
    drop(waiting);
    settled().await;
    assert_eq!(budget.snapshot().queued, 0);
    let went = permit.is_some();
    match (permit, end) {
        (Some(permit), End::Responded) => permit.responded(),
        (Some(permit), End::Refunded) => permit.refund(),
        (permit, _) => drop(permit),
    }
    let counts = used_and_held(&budget);
    let what = format!("{polls} polls, {guard:?}, {end:?}");
    let (_, held) = counts;
    if went && end == End::Dropped && matches!(guard, Guard::UntilResponse { .. }) {
        assert_eq!(held, 1, "it may arrive late: {what}");
    } else {
        assert_eq!(held, 0, "{what}");
    }
    if went && end == End::Refunded {
        assert_eq!(counts, (0, 0), "{what}");
    }
    advance(ms(1500)).await;
    assert_eq!(used_and_held(&budget), (0, 0), "{what}");
    take(&budget, 2, order());
    // The task of the timer is gone as well.
    settled().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "{what}");
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_poll_it_leaves_the_capacity_whole() {
    for guard in GUARDS {
        for end in [End::Responded, End::Refunded, End::Dropped] {
            for polls in 0..20 {
                polled_so_often(polls, guard, end).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_granted_and_not_taken_goes_to_the_next_at_once() {
    for guard in GUARDS {
        let budget = exact("venue")
            .limit(Limit::sliding("requests", 1, secs(1)))
            .guard(guard)
            .build()
            .unwrap();
        take(&budget, 1, order());
        let mut first = task::spawn(budget.acquire(order()));
        assert_pending!(first.poll());
        let second = wait(&budget, order());
        settled().await;
        advance(secs(2)).await;
        settled().await;
        assert!(first.is_woken());
        assert_eq!(used_and_held(&budget), (0, 1));
        drop(first);
        assert_eq!(second.await.unwrap().0, secs(2));
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_polled_keeps_what_it_was_granted_for_a_second_at_most() {
    let budget = two_a_second(Guard::None);
    take(&budget, 2, order());
    let mut asleep = task::spawn(budget.acquire(order()));
    assert_pending!(asleep.poll());
    let others = [(); 3].map(|()| wait(&budget, order()));
    let mut waits = Vec::new();
    for other in others {
        waits.push(other.await.unwrap().0);
    }
    assert_eq!(waits, [secs(1), secs(2), secs(2)]);
    assert!(asleep.is_woken());
    // It stands where it stood, before all that came later.
    let later = wait(&budget, order());
    settled().await;
    assert_pending!(asleep.poll());
    assert_eq!(budget.snapshot().queued, 2);
    advance(secs(1)).await;
    settled().await;
    assert!(asleep.is_woken());
    assert_ready!(asleep.poll()).unwrap().responded();
    assert_eq!(later.await.unwrap().0, secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_never_polled_holds_nothing() {
    let budget = two_a_second(Guard::default());
    let never: Vec<Acquire> = (0..10).map(|_| budget.acquire(order())).collect();
    assert_eq!(budget.snapshot().queued, 0);
    take(&budget, 2, order());
    drop(never);
    assert_eq!(used_and_held(&budget), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_running_when_nobody_waits() {
    let alive = || Handle::current().metrics().num_alive_tasks();
    let held = || {
        let budget = two_a_second(Guard::default());
        let permits = [(); 2].map(|()| budget.try_acquire(&order()).unwrap());
        let mut waiting = task::spawn(budget.acquire(order()));
        assert_pending!(waiting.poll());
        (budget, permits, waiting)
    };
    assert_eq!(alive(), 0);

    let (_budget, _permits, waiting) = held();
    settled().await;
    assert_eq!(alive(), 1, "the timer");
    drop(waiting);
    settled().await;
    assert_eq!(alive(), 0, "dropped");

    let (_budget, permits, waiting) = held();
    for permit in permits {
        permit.refund();
    }
    settled().await;
    assert_eq!(alive(), 0, "granted, even if not taken yet");
    drop(waiting);

    let (budget, _permits, _waiting) = held();
    budget.pause(secs(100));
    settled().await;
    assert_eq!(alive(), 0, "sent away by a pause");

    let (budget, _permits, _waiting) = held();
    budget.throttled(Some(secs(100)));
    settled().await;
    assert_eq!(alive(), 0, "sent away by a refusal");

    let (budget, _permits, _waiting) = held();
    budget.close_limit("requests", secs(100)).unwrap();
    settled().await;
    assert_eq!(alive(), 0, "sent away by a limit that is closed");

    let (_budget, _permits, _waiting) = held();
    sleep(secs(31)).await;
    settled().await;
    assert_eq!(alive(), 0, "too late");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_dropped_while_somebody_waits_lives_until_they_are_through() {
    let budget = two_a_second(Guard::None);
    take(&budget, 2, order());
    let waiter = wait(&budget, order());
    settled().await;
    drop(budget);
    let (waited, result) = waiter.await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, secs(1));
}

// === real threads ===

/// Drops the future after so many polls.
async fn acquire_for(budget: &Budget, ticket: Ticket, polls: u64) -> Option<Permit> {
    let mut acquire = budget.acquire(ticket);
    for _ in 0..polls {
        let polled = poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut acquire).poll(cx))).await;
        if let Poll::Ready(result) = polled {
            return result.ok();
        }
        yield_now().await;
    }
    None
}

#[test]
fn a_storm_of_cancellations_loses_and_makes_no_capacity() {
    const CAPACITY: u32 = 20;
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let budget = exact("venue")
        .limit(Limit::sliding("requests", CAPACITY, ms(1)))
        .limit(Limit::token_bucket("tokens", CAPACITY, ms(1)))
        .guard(Guard::UntilResponse { late: ms(1) })
        .build()
        .unwrap();
    let on_their_way = Arc::new(AtomicU32::new(0));
    let mut tasks = Vec::new();
    for task in 0..32 {
        let (budget, on_their_way) = (budget.clone(), on_their_way.clone());
        tasks.push(runtime.spawn(async move {
            let mut dice = Dice::new(task);
            for _ in 0..200 {
                let units = dice.units(1, 5);
                let ticket = Ticket::new()
                    .class(dice.roll(0, 2) as usize)
                    .cost(Cost::in_order([units, dice.units(0, 3)]));
                let polls = dice.roll(1, 20);
                let Some(permit) = acquire_for(&budget, ticket, polls).await else {
                    continue;
                };
                let before = on_their_way.fetch_add(units, Ordering::SeqCst);
                assert!(before + units <= CAPACITY, "{before} and {units}");
                if dice.percent(30) {
                    yield_now().await;
                }
                on_their_way.fetch_sub(units, Ordering::SeqCst);
                match dice.roll(0, 2) {
                    0 => permit.responded(),
                    1 => permit.refund(),
                    _ => drop(permit),
                }
            }
        }));
    }
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(budget.snapshot().queued, 0);
        // All of it is there again.
        let all = order().cost(Cost::in_order([CAPACITY, CAPACITY]));
        let permit = budget.acquire(all).await.unwrap();
        assert_eq!(used_and_held(&budget), (0, CAPACITY));
        permit.refund();
        assert_eq!(used_and_held(&budget), (0, 0));
    });
}

// === runtimes ===

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap()
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// Starts a waiter in a runtime, and returns once it waits.
fn start(runtime: &Runtime, budget: &Budget) -> mpsc::Receiver<bool> {
    let (sender, receiver) = mpsc::channel();
    let waiting = budget.snapshot().queued;
    let acquire = budget.acquire(order());
    runtime.spawn(async move {
        let result = acquire.await;
        let _ = sender.send(result.is_ok());
    });
    until(|| budget.snapshot().queued > waiting);
    receiver
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_runtime_that_shuts_down_hands_over() {
    let (one, other) = (runtime(), runtime());
    // What is used comes back with time, so somebody has to look at the clock.
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 1, ms(50)))
        .guard(Guard::None)
        .build()
        .unwrap();
    let held = exact("venue")
        .limit(Limit::sliding("requests", 1, ms(1)))
        .build()
        .unwrap();
    let permit = held.try_acquire(&order()).unwrap();
    take(&budget, 1, order());
    let _goes_down = [start(&one, &held), start(&one, &budget)];
    let survives = [start(&other, &held), start(&other, &budget)];
    drop(one);
    permit.responded();
    for receiver in survives {
        assert!(receiver.recv_timeout(LONG).unwrap());
    }
}

#[test]
fn whoever_is_polled_next_takes_over_though_it_is_not_the_first_in_line() {
    let (one, other) = (runtime(), runtime());
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 1, ms(20)))
        .guard(Guard::None)
        .build()
        .unwrap();
    let pause = budget.clone();
    pause.pause(ms(20));
    let first = start(&one, &budget);
    // The head of the line is polled once, and belongs to no runtime.
    let mut asleep = task::spawn(budget.acquire(order()));
    one.block_on(async { assert_pending!(asleep.poll()) });
    let last = start(&other, &budget);
    drop(one);
    drop(first);
    drop(asleep);
    assert!(last.recv_timeout(LONG).unwrap());
}

fn poll_once(acquire: &mut Acquire) -> Poll<Result<Permit, RefusedKind>> {
    let polled = pin!(acquire).poll(&mut Context::from_waker(Waker::noop()));
    polled.map(|result| result.map_err(|refused| refused.kind().clone()))
}

#[test]
fn a_runtime_that_has_shut_down_is_none() {
    let budget = two_a_second(Guard::None);
    take(&budget, 2, order());
    let runtime = runtime();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _inside = handle.enter();
    let mut acquire = budget.acquire(order());
    let Poll::Ready(Err(RefusedKind::NoRuntime)) = poll_once(&mut acquire) else {
        panic!("it waits for ever");
    };
    assert_eq!(budget.snapshot().queued, 0);
}

#[test]
fn outside_of_any_runtime_who_would_have_to_wait_is_refused() {
    let budget = two_a_second(Guard::None);
    for _ in 0..2 {
        let Poll::Ready(Ok(_permit)) = poll_once(&mut budget.acquire(order())) else {
            panic!("there is room, and no runtime is needed");
        };
    }
    let Poll::Ready(Err(RefusedKind::NoRuntime)) = poll_once(&mut budget.acquire(order())) else {
        panic!("it waits for ever");
    };
    assert_eq!(budget.snapshot().queued, 0);
    assert_eq!(budget.snapshot().classes[0].refused, 1);
}

#[test]
fn a_runtime_without_a_timer_panics_there_and_wedges_nothing_elsewhere() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 1, ms(20)))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 1, order());
    let timeless = Builder::new_current_thread().build().unwrap();
    let acquire = budget.acquire(order());
    let error = timeless.block_on(timeless.spawn(acquire)).unwrap_err();
    assert!(error.is_panic());
    assert_eq!(budget.snapshot().queued, 0);
    let runtime = runtime();
    runtime
        .block_on(budget.acquire(order()))
        .unwrap()
        .responded();
}
