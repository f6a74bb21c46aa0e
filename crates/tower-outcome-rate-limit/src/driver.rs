//! The one timer of a budget.
//!
//! It belongs to a task that exists while somebody waits, and not to one of the waiters: a waiter
//! that is not polled for a while would stall all others.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{Sleep, sleep},
};

use crate::{
    rule::NEVER,
    shared::{Counted, Shared},
    state::Woken,
};

/// What others know of the driver.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Whether there is one.
    pub(crate) is_manned: bool,
    /// Wakes it, when it has to look earlier than it wanted to.
    pub(crate) waker: Option<Waker>,
    /// When it looks next.
    pub(crate) next: u64,
}

/// Lets waiters through when their time has come.
struct Driver {
    shared: Counted<Shared>,
    sleep: Option<Pin<Box<Sleep>>>,
    is_done: bool,
}

/// Sends a driver to the desk of a budget. The desk is taken already, by the caller.
///
/// The runtime is the caller's. If it goes away, the driver wakes all who wait, and the first one
/// that is polled elsewhere sends another.
pub(crate) fn send(shared: &Counted<Shared>, runtime: &Handle) {
    let mut driver = Driver {
        shared: Counted::clone(shared),
        sleep: None,
        is_done: false,
    };
    // This panics, in the caller's task, if its runtime has no timer. The driver that never was
    // gives the desk up on its way out.
    driver.sleep = Some(Box::pin(sleep(Duration::ZERO)));
    drop(runtime.spawn(driver));
}

/// Lets through who may go now, leaves the waker at the desk, and says when to look again. Gives the
/// desk up if nobody waits.
pub(crate) fn attend(shared: &Shared, waker: Waker) -> Option<u64> {
    let mut woken = Woken::default();
    let now = shared.now();
    let (mut state, next) = shared.let_through(shared.lock(), now, &mut woken);
    // A model's desk is always manned.
    let is_over = state.queue.is_empty() && !cfg!(tower_outcome_model);
    state.desk.next = next;
    // Wakers are neither dropped nor made under the lock.
    let (old, unused) = if is_over {
        state.desk.is_manned = false;
        (state.desk.waker.take(), Some(waker))
    } else {
        (state.desk.waker.replace(waker), None)
    };
    drop(state);
    drop((old, unused));
    woken.wake();
    (!is_over).then_some(next)
}

// === impl Desk ===

impl Default for Desk {
    fn default() -> Self {
        Self {
            // A model checker is a driver itself.
            is_manned: cfg!(tower_outcome_model),
            waker: None,
            next: NEVER,
        }
    }
}

// === impl Driver ===

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            let Some(next) = attend(&this.shared, cx.waker().clone()) else {
                this.is_done = true;
                return Poll::Ready(());
            };
            if next == NEVER {
                // Only something that ends can help, and that wakes the driver.
                return Poll::Pending;
            }
            let Some(sleep) = &mut this.sleep else {
                return Poll::Pending;
            };
            let at = this.shared.instant(next);
            if sleep.deadline() != at {
                sleep.as_mut().reset(at);
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        // The runtime goes away under it. Whoever waits on another one takes over; who that is
        // nobody knows, so all are woken.
        let mut state = self.shared.lock();
        state.desk.is_manned = false;
        state.desk.next = NEVER;
        let own = state.desk.waker.take();
        let all = state.queue.take_wakers();
        drop(state);
        drop(own);
        for waker in all {
            waker.wake();
        }
    }
}
