//! Mistakes that limiters of this kind have made.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use tokio::time::{Instant, advance, sleep};
use tokio_test::{assert_pending, task};
use tower_outcome_rate_limit::{Budget, Class, Cost, Guard, Limit, RefusedKind, Ticket};

use crate::support::{exact, ms, secs, settled, take, wait};

fn order() -> Ticket {
    Ticket::new().class(0)
}

fn one_a_second(guard: Guard) -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 1, secs(1)))
        .guard(guard)
        .build()
        .unwrap()
}

// While everything is held, nobody knows when something comes free. As soon as it is known, somebody
// has to look at the clock again.

#[tokio::test(start_paused = true)]
async fn who_waits_for_what_is_held_is_woken_a_window_after_the_response() {
    let budget = one_a_second(Guard::default());
    let permit = budget.try_acquire(&order()).unwrap();
    let waiter = wait(&budget, order());
    sleep(secs(5)).await;
    permit.responded();
    assert_eq!(waiter.await.unwrap().0, secs(6));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_what_is_held_is_woken_a_window_after_it_may_have_arrived() {
    let budget = one_a_second(Guard::default());
    let permit = budget.try_acquire(&order()).unwrap();
    let waiter = wait(&budget, order());
    sleep(secs(5)).await;
    drop(permit);
    assert_eq!(waiter.await.unwrap().0, secs(7));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_what_is_held_is_woken_by_a_refund() {
    let budget = one_a_second(Guard::default());
    let permit = budget.try_acquire(&order()).unwrap();
    let waiter = wait(&budget, order());
    sleep(secs(5)).await;
    permit.refund();
    assert_eq!(waiter.await.unwrap().0, secs(5));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_what_was_granted_is_woken_a_window_after_that_departed() {
    for guard in [Guard::None, Guard::Fixed(secs(1))] {
        let budget = one_a_second(guard);
        let window = if guard == Guard::None {
            secs(1)
        } else {
            secs(2)
        };
        take(&budget, 1, order());
        let mut first = task::spawn(budget.acquire(order()));
        assert_pending!(first.poll());
        let second = wait(&budget, order());
        settled().await;
        advance(window).await;
        settled().await;
        assert!(first.is_woken());
        // It is let through, but departs half a second later.
        sleep(ms(500)).await;
        let Poll::Ready(Ok(_permit)) = first.poll() else {
            panic!("it was woken");
        };
        assert_eq!(second.await.unwrap().0, window + ms(500) + window);
    }
}

/// Looks at the budget when it is woken, and when it is dropped: either would hang under the lock.
struct Curious {
    budget: Budget,
    woken: AtomicU32,
}

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        let _ = self.budget.snapshot();
        self.woken.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Curious {
    fn drop(&mut self) {
        let _ = self.budget.snapshot();
    }
}

#[tokio::test(start_paused = true)]
async fn wakers_are_neither_woken_nor_dropped_under_the_lock() {
    let budget = one_a_second(Guard::None);
    let curious = || {
        Waker::from(Arc::new(Curious {
            budget: budget.clone(),
            woken: AtomicU32::new(0),
        }))
    };
    let poll = |acquire: &mut tower_outcome_rate_limit::Acquire| {
        // The waker that is left with the budget is the last one.
        let waker = curious();
        Pin::new(acquire).poll(&mut Context::from_waker(&waker))
    };
    take(&budget, 1, order());
    // Replaced, dropped in the queue, woken and dropped, and sent away.
    let mut replaced = budget.acquire(order());
    assert_pending!(poll(&mut replaced));
    assert_pending!(poll(&mut replaced));
    let mut dropped = budget.acquire(order());
    assert_pending!(poll(&mut dropped));
    drop(dropped);
    advance(secs(1)).await;
    settled().await;
    drop(replaced);
    take(&budget, 1, order());
    let mut late = budget.acquire(order().max_wait(secs(20)));
    assert_pending!(poll(&mut late));
    budget.pause(secs(100));
    let Poll::Ready(Err(_)) = poll(&mut late) else {
        panic!("it was sent away");
    };
    budget.reopen();
    sleep(secs(1)).await;
    take(&budget, 1, order());
    let mut too_large = budget.acquire(order());
    assert_pending!(poll(&mut too_large));
    advance(secs(1)).await;
    settled().await;
    let Poll::Ready(Ok(_permit)) = poll(&mut too_large) else {
        panic!("it was let through");
    };
    // Polled again after it was displaced.
    let full = exact("venue")
        .limit(Limit::sliding("requests", 1, secs(1)))
        .max_queue(1)
        .build()
        .unwrap();
    let _held = full.try_acquire(&order()).unwrap();
    let waker = Waker::from(Arc::new(Curious {
        budget: full.clone(),
        woken: AtomicU32::new(0),
    }));
    let mut sweep = full.acquire(Ticket::new().class(2));
    assert_pending!(Pin::new(&mut sweep).poll(&mut Context::from_waker(&waker)));
    drop(waker);
    let mut order = full.acquire(order());
    assert_pending!(poll(&mut order));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_owed_to_a_class_of_which_nobody_waits() {
    for expires in [false, true] {
        let budget = exact("venue")
            .limit(Limit::sliding("requests", 10, secs(1)))
            .class(Class::new("order"))
            .class(Class::new("sweep").leave_percent(50).floor_percent(10))
            .guard(Guard::None)
            .build()
            .unwrap();
        let sweep = |units| Ticket::new().class(1).cost(Cost::in_order([units]));
        take(&budget, 10, order());
        let orders: Vec<_> = (0..20).map(|_| wait(&budget, order())).collect();
        // When ten orders have gone, it is owed one of its five units.
        let heavy = wait(&budget, sweep(5).max_wait(ms(1400)));
        sleep(ms(1300)).await;
        if !expires {
            heavy.abort();
        }
        sleep(ms(200)).await;
        assert_eq!(budget.snapshot().queued, 10);
        let light = wait(&budget, sweep(1));
        for order in orders {
            drop(order.await.unwrap().1.unwrap());
        }
        assert_eq!(light.await.unwrap().0, ms(1500), "it goes after them");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bucket_holds_what_is_under_way_and_does_not_refill_meanwhile() {
    let budget = exact("venue")
        .limit(Limit::token_bucket("requests", 10, secs(1)))
        .build()
        .unwrap();
    let permit = budget
        .try_acquire(&order().cost(Cost::in_order([10])))
        .unwrap();
    sleep(secs(10)).await;
    assert!(budget.try_acquire(&order()).is_err());
    permit.responded();
    assert_eq!(
        budget.acquire(order()).await.unwrap().budget().name(),
        "venue"
    );
    let waited = budget.snapshot().limits[0].used;
    assert_eq!(waited, 9, "a tenth of a second after the response");
}

#[tokio::test(start_paused = true)]
async fn instants_before_the_budget_and_spans_beyond_the_clock_are_no_trouble() {
    sleep(secs(100)).await;
    let early = Instant::now() - secs(50);
    let budget = one_a_second(Guard::None);
    budget.observe_date(early, early, 0);
    take(&budget, 1, order());
    let refused = budget.acquire(order().deadline(early)).await.unwrap_err();
    assert_eq!(*refused.kind(), RefusedKind::Deadline);
    let patient = wait(&budget, order().max_wait(Duration::MAX));
    assert_eq!(patient.await.unwrap().0, secs(1));
}

/// A wait of no time begins when it is first polled: on a real clock that is always a little later
/// than the future was made.
#[tokio::test(start_paused = true)]
async fn who_must_not_wait_has_its_chance_though_it_is_polled_late() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 7, Ticket::new().class(2));
    let sweep = wait(&budget, Ticket::new().class(2));
    settled().await;
    let hasty = budget.acquire(order().max_wait(Duration::ZERO));
    sleep(ms(1)).await;
    hasty.await.unwrap().responded();
    drop(sweep);
}

/// A review found it: the slab had shrunk under those who remembered a place in it.
#[tokio::test(start_paused = true)]
async fn a_rush_that_is_over_leaves_nothing_that_the_next_one_stumbles_on() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 100, ms(10)))
        .build()
        .unwrap();
    for _ in 0..3 {
        let waiters: Vec<_> = (0..1000)
            .map(|_| wait(&budget, Ticket::new().class(0)))
            .collect();
        for waiter in waiters {
            waiter.await.unwrap().1.unwrap().responded();
        }
    }
    assert_eq!(budget.snapshot().queued, 0);
}

/// A review found it: the refused one had closed a limit to a waiter, so that nobody noticed that
/// the waiter needed units that were on their way.
#[tokio::test(start_paused = true)]
async fn a_refused_try_does_not_lose_the_wake_up_of_a_waiter() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 100, secs(5)))
        .class(Class::new("order"))
        .class(Class::new("sweep").leave_percent(90))
        .build()
        .unwrap();
    let order = |units| Ticket::new().class(0).cost(Cost::in_order([units]));
    budget.try_acquire(&order(5)).unwrap().responded();
    let held = budget.try_acquire(&order(20)).unwrap();
    let sweep = wait(&budget, Ticket::new().class(1));
    settled().await;
    budget.try_acquire(&order(80)).unwrap_err();
    held.responded();
    assert_eq!(sweep.await.unwrap().0, secs(5));
}

/// A review found it: its runtime lived on, at rest between two calls of `block_on`.
#[test]
fn a_runtime_at_rest_stalls_nobody_on_another() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
    };
    let (resting, other) = (runtime(), runtime());
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 1, ms(50)))
        .guard(Guard::None)
        .build()
        .unwrap();
    let ticket = Ticket::new().class(0);
    // Polled once there, and kept.
    let mut first = Box::pin(budget.acquire(ticket));
    resting.block_on(async {
        budget.acquire(ticket).await.unwrap().responded();
        let poll = std::future::poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx)));
        assert!(poll.await.is_pending());
    });
    let second = other.block_on(async {
        let second = tokio::spawn(budget.acquire(ticket));
        tokio::time::timeout(secs(10), second).await
    });
    second
        .expect("lets it through")
        .unwrap()
        .unwrap()
        .responded();
    drop((first, resting));
}
