//! The one timer of a budget.
//!
//! It belongs to a task that exists while somebody waits, and not to one of the waiters: a waiter
//! that is not polled for a while would stall all others. Each runtime on which somebody waits has
//! one of its own, since a runtime can be alive and at rest: one between two calls of `block_on`.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    runtime::{Handle, Id},
    time::{Sleep, sleep},
};

use crate::{
    rule::NEVER,
    shared::{Counted, Shared},
    state::Woken,
};

/// A runtime. A model checker has none, and is the driver itself.
pub(crate) type Place = Option<Id>;

/// What others know of the drivers; mostly there is one or none.
#[derive(Debug, Default)]
pub(crate) struct Desks(Vec<Desk>);

#[derive(Debug)]
struct Desk {
    place: Place,
    /// Wakes the driver, when it has to look earlier than it wanted to.
    waker: Option<Waker>,
    /// When it looks next.
    next: u64,
}

/// Lets waiters through when their time has come.
struct Driver {
    shared: Counted<Shared>,
    place: Place,
    sleep: Option<Pin<Box<Sleep>>>,
    is_done: bool,
}

/// The runtime of whoever calls, if it can wait at all.
pub(crate) fn here() -> Option<Place> {
    if cfg!(tower_outcome_model) {
        return Some(None);
    }
    let runtime = Handle::try_current().ok()?;
    Some(Some(runtime.id()))
}

/// Sends a driver to the desk of the caller's runtime, which is taken already.
///
/// If the runtime goes away, the driver wakes all who wait, so that those who are polled elsewhere
/// send another.
pub(crate) fn send(shared: &Counted<Shared>) {
    let runtime = Handle::current();
    let mut driver = Driver {
        shared: Counted::clone(shared),
        place: Some(runtime.id()),
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
pub(crate) fn attend(shared: &Shared, place: Place, waker: Waker) -> Option<u64> {
    let mut woken = Woken::default();
    let now = shared.now();
    let (mut state, next) = shared.let_through(shared.lock(), now, &mut woken);
    // A model's desk is always manned.
    let is_over = state.queue.is_empty() && !cfg!(tower_outcome_model);
    // Wakers are neither dropped nor made under the lock.
    let (old, unused) = if is_over {
        (state.desks.leave(place), Some(waker))
    } else {
        (state.desks.attend(place, next, waker), None)
    };
    drop(state);
    drop((old, unused));
    woken.wake();
    (!is_over).then_some(next)
}

// === impl Desks ===

impl Desks {
    pub(crate) fn is_manned(&self, place: Place) -> bool {
        cfg!(tower_outcome_model) || self.0.iter().any(|desk| desk.place == place)
    }

    /// Takes a desk, for a driver that is about to be sent.
    pub(crate) fn man(&mut self, place: Place) {
        self.0.push(Desk {
            place,
            waker: None,
            next: NEVER,
        });
    }

    /// The driver is at its desk and looks again then. Returns the waker that was there before.
    fn attend(&mut self, place: Place, next: u64, waker: Waker) -> Option<Waker> {
        if !self.0.iter().any(|desk| desk.place == place) {
            self.man(place);
        }
        let desk = self.0.iter_mut().find(|desk| desk.place == place)?;
        desk.next = next;
        desk.waker.replace(waker)
    }

    /// The driver goes. Returns its waker.
    fn leave(&mut self, place: Place) -> Option<Waker> {
        let index = self.0.iter().position(|desk| desk.place == place)?;
        self.0.swap_remove(index).waker
    }

    /// Takes the waker of a driver that looks later than `next`, or of any where there is nothing
    /// to look for any more.
    pub(crate) fn take_late(&mut self, next: u64, is_over: bool) -> Option<Waker> {
        let mut late = self.0.iter_mut().filter(|desk| is_over || next < desk.next);
        late.find_map(|desk| desk.waker.take())
    }
}

// === impl Driver ===

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            let Some(next) = attend(&this.shared, this.place, cx.waker().clone()) else {
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
        let own = state.desks.leave(self.place);
        let all = state.queue.take_wakers();
        drop(state);
        drop(own);
        for waker in all {
            waker.wake();
        }
    }
}
