//! All orders in which threads can meet in a budget, one after another.
//!
//! Run as: `RUSTFLAGS="--cfg tower_outcome_model" cargo test -p tower-outcome-rate-limit --test model
//! --release`. The lock of a budget is loom's then, and its clock and driver belong to the model.
//! Somebody who is never woken shows as a deadlock.

#![cfg(tower_outcome_model)]
#![expect(clippy::unwrap_used, reason = "a model that cannot go on says so")]

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use loom::{
    sync::{Condvar, Mutex},
    thread::{self, JoinHandle},
};
use tower_outcome_rate_limit::{Acquire, Budget, Guard, Limit, Permit, Ticket};

/// Somebody who sleeps until it is rung, or until closing time.
#[derive(Default)]
struct Bell {
    state: Mutex<BellState>,
    rings: Condvar,
}

#[derive(Default)]
struct BellState {
    is_rung: bool,
    is_closed: bool,
}

impl Bell {
    /// Says whether to go on.
    fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        while !state.is_rung && !state.is_closed {
            state = self.rings.wait(state).unwrap();
        }
        state.is_rung = false;
        !state.is_closed
    }

    fn close(&self) {
        self.state.lock().unwrap().is_closed = true;
        self.rings.notify_one();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.state.lock().unwrap().is_rung = true;
        self.rings.notify_one();
    }
}

fn poll(acquire: &mut Acquire, waker: &Waker) -> Poll<Permit> {
    let polled = Pin::new(acquire).poll(&mut Context::from_waker(waker));
    polled.map(|result| result.unwrap())
}

fn acquire(budget: &Budget) -> Permit {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut acquire = budget.acquire(Ticket::new());
    loop {
        if let Poll::Ready(permit) = poll(&mut acquire, &waker) {
            return permit;
        }
        bell.wait();
    }
}

/// Polls once, and has enough.
fn acquire_and_cancel(budget: &Budget) -> Option<Permit> {
    let waker = Waker::from(Arc::new(Bell::default()));
    let mut acquire = budget.acquire(Ticket::new());
    match poll(&mut acquire, &waker) {
        Poll::Ready(permit) => Some(permit),
        Poll::Pending => None,
    }
}

/// The driver, and the time: whenever all have gone who can, it is later.
struct Driver {
    bell: Arc<Bell>,
    thread: JoinHandle<()>,
}

/// Whoever waits may do so for as long as it takes.
const LONG: Duration = Duration::from_secs(10_000);

impl Driver {
    fn of(budget: &Budget) -> Self {
        let bell = Arc::new(Bell::default());
        let (budget, own) = (budget.clone(), bell.clone());
        let thread = thread::spawn(move || {
            loop {
                let next = budget.model_drive(Waker::from(own.clone())).unwrap();
                if next < LONG.as_nanos() as u64 {
                    budget.model_clock(next);
                } else if !own.wait() {
                    return;
                }
            }
        });
        Self { bell, thread }
    }

    fn end(self) {
        self.bell.close();
        self.thread.join().unwrap();
    }
}

fn one_a_second(guard: Guard) -> Budget {
    Budget::builder("venue")
        .limit(Limit::sliding("requests", 1, Duration::from_secs(1)))
        .guard(guard)
        .max_wait(LONG)
        .build()
        .unwrap()
}

fn is_whole(budget: &Budget) {
    let snapshot = budget.snapshot();
    assert_eq!((snapshot.queued, snapshot.limits[0].held), (0, 0));
}

const HELD: Guard = Guard::UntilResponse {
    late: Duration::ZERO,
};

/// How many of the switches between threads may come at a bad time. Two suffice for nearly all
/// mistakes, and three take minutes.
fn check(bad_switches: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bad_switches);
    builder.check(model);
}

fn spawn(budget: &Budget, task: impl FnOnce(Budget) + Send + 'static) -> JoinHandle<()> {
    let budget = budget.clone();
    thread::spawn(move || task(budget))
}

#[test]
fn a_grant_meets_a_cancellation_and_a_response() {
    for end in [Permit::responded, Permit::refund, drop] {
        check(2, move || {
            let budget = one_a_second(HELD);
            let permit = budget.try_acquire(&Ticket::new()).unwrap();
            let driver = Driver::of(&budget);
            let cancelled = spawn(&budget, |budget| drop(acquire_and_cancel(&budget)));
            let waiter = spawn(&budget, |budget| acquire(&budget).responded());
            end(permit);
            cancelled.join().unwrap();
            waiter.join().unwrap();
            driver.end();
            is_whole(&budget);
        });
    }
}

#[test]
fn two_acquirers_of_one_unit_go_one_after_another() {
    for guard in [HELD, Guard::None] {
        check(2, move || {
            let budget = one_a_second(guard);
            let driver = Driver::of(&budget);
            let waiter = spawn(&budget, |budget| acquire(&budget).responded());
            acquire(&budget).responded();
            waiter.join().unwrap();
            driver.end();
            is_whole(&budget);
            assert_eq!(
                budget
                    .snapshot()
                    .classes
                    .iter()
                    .map(|c| c.granted)
                    .sum::<u64>(),
                2
            );
        });
    }
}

#[test]
fn of_two_that_do_not_wait_one_goes() {
    check(3, || {
        let budget = one_a_second(HELD);
        let other = budget.clone();
        let thread = thread::spawn(move || other.try_acquire(&Ticket::new()).ok());
        let own = budget.try_acquire(&Ticket::new()).ok();
        let theirs = thread.join().unwrap();
        assert!(own.is_some() != theirs.is_some());
        own.or(theirs).unwrap().refund();
        is_whole(&budget);
        budget.try_acquire(&Ticket::new()).unwrap().refund();
    });
}

#[test]
fn a_refund_meets_a_cancellation() {
    for guard in [HELD, Guard::None] {
        check(2, move || {
            let budget = one_a_second(guard);
            let permit = budget.try_acquire(&Ticket::new()).unwrap();
            let driver = Driver::of(&budget);
            let cancelled = spawn(&budget, |budget| {
                if let Some(permit) = acquire_and_cancel(&budget) {
                    permit.refund();
                }
            });
            permit.refund();
            cancelled.join().unwrap();
            acquire(&budget).refund();
            driver.end();
            is_whole(&budget);
        });
    }
}

#[test]
fn who_waits_while_everything_is_held_is_woken_in_the_end() {
    for guard in [HELD, Guard::None] {
        check(2, move || {
            let budget = one_a_second(guard);
            let permit = budget.try_acquire(&Ticket::new()).unwrap();
            let driver = Driver::of(&budget);
            let waiters = [(); 2].map(|()| spawn(&budget, |budget| acquire(&budget).responded()));
            permit.responded();
            for waiter in waiters {
                waiter.join().unwrap();
            }
            driver.end();
            is_whole(&budget);
        });
    }
}
