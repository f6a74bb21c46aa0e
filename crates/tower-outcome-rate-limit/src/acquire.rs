//! Waiting for a budget.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::runtime::Handle;

use crate::{
    Budget, Permit, Refused, RefusedKind, Ticket, driver,
    queue::{Entrant, Mask, Place, Progress, mask_of},
    rule::{NEVER, nanos},
    shared::{MutexGuard, Shared},
    state::{State, Units, Woken},
};

/// The future of [`Budget::acquire`].
///
/// It joins the queue when it is first polled. Dropping it leaves the queue, or gives back what it
/// was granted but has not taken yet. A future that is kept and not polled holds up nobody.
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquire {
    budget: Budget,
    cost: Units,
    /// When this request gives up; its class may give up earlier.
    deadline: u64,
    /// Whether that is the end of its patience, and not an instant after which it is pointless.
    is_patience: bool,
    class: u8,
    stage: Stage,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fresh,
    Waiting,
    Done,
}

// === impl Acquire ===

impl Acquire {
    #[inline]
    pub(crate) fn new(budget: Budget, ticket: &Ticket) -> Self {
        let shared = budget.shared();
        let class = shared.class_of(ticket);
        let deadline = match ticket.deadline {
            Some(deadline) => shared.nanosecond(deadline),
            None => NEVER,
        };
        let patience = match ticket.max_wait {
            Some(wait) => shared.now().saturating_add(nanos(wait)),
            None => NEVER,
        };
        Self {
            budget,
            cost: ticket.cost.0,
            deadline: deadline.min(patience),
            is_patience: patience < deadline,
            class: class as u8,
            stage: Stage::Fresh,
            place: Place(0),
        }
    }

    /// Returns the budget that is waited for.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    fn class(&self) -> usize {
        usize::from(self.class)
    }

    /// Whether it is too late to go, even at once.
    fn is_pointless(&self) -> bool {
        self.deadline != NEVER && !self.is_patience && self.deadline < self.budget.shared().now()
    }

    fn mask(&self) -> Mask {
        mask_of(&self.cost, self.budget.limits().len())
    }

    /// Joins the queue, or goes at once after all.
    #[cold]
    fn join(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, Refused>> {
        // A waker is not made under the lock.
        let waker = cx.waker().clone();
        let budget = self.budget.clone();
        let shared = budget.shared();
        let (class, mask) = (self.class(), self.mask());
        let now = shared.now();
        let mut state = shared.lock();
        if let Some((limit, capacity)) = state.too_large(class, &self.cost) {
            let kind = RefusedKind::TooLarge {
                limit: shared.limits[limit].clone(),
                cost: self.cost[limit],
                capacity,
            };
            return self.refuse(state, kind, None);
        }
        if !self.is_patience && self.deadline < now {
            return self.refuse(state, RefusedKind::Deadline, Some(now));
        }
        // Whose patience is at an end may still go at once, as it could if nobody waited.
        let deadline = if self.is_patience {
            self.deadline.max(now)
        } else {
            self.deadline
        };
        let until = now
            .saturating_add(state.classes()[class].max_wait())
            .min(deadline);
        let earliest = state.earliest(now, class, &self.cost, mask);
        if earliest > until {
            return self.refuse(state, RefusedKind::Deadline, Some(earliest));
        }
        let mut woken = Woken::default();
        let entrant = Entrant {
            class,
            cost: self.cost,
            deadline: (deadline != NEVER).then_some(deadline),
        };
        self.place = state.queue.push(now, &entrant, Some(waker));
        self.stage = Stage::Waiting;
        // Those before it may have become free to go without anybody noticing yet.
        let mut next;
        (state, next) = shared.let_through(state, now, &mut woken);
        match state.queue.progress(self.place) {
            Progress::Waiting if until > now => {}
            // Through, or it was not to wait at all.
            end => {
                let result = self.leave(state, now, end);
                woken.wake();
                return result;
            }
        }
        if state.queue.len() > state.max_queue {
            match state.queue.newest_below(class) {
                Some(place) => {
                    state.send_away(place, Progress::Displaced, &mut woken);
                    // It may have stood in somebody's way.
                    (state, next) = shared.let_through(state, now, &mut woken);
                }
                None => {
                    let waker = state.queue.release(self.place);
                    let waiting = state.queue.len();
                    let kind = RefusedKind::QueueFull { waiting };
                    let refused = self.refuse(state, kind, Some(earliest));
                    woken.wake();
                    drop(waker);
                    return refused;
                }
            }
        }
        let waiting = state.queue.len();
        let manned = std::mem::replace(&mut state.desk.is_manned, true);
        let driver = if manned && next < state.desk.next {
            state.desk.waker.take()
        } else {
            None
        };
        drop(state);
        woken.wake();
        if let Some(driver) = driver {
            driver.wake();
        }
        self.note_queued(waiting);
        if manned {
            Poll::Pending
        } else {
            self.man_desk()
        }
    }

    fn note_queued(&self, waiting: u32) {
        self.budget.shared().note_queued(self.class(), waiting);
    }

    /// Looks whether its turn has come.
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, Refused>> {
        let budget = self.budget.clone();
        let shared = budget.shared();
        let mut waker: Option<Waker> = None;
        loop {
            let now = shared.now();
            let mut state = shared.lock();
            let progress = state.queue.progress(self.place);
            if progress != Progress::Waiting {
                return self.leave(state, now, progress);
            }
            let old = if state.queue.wakes(self.place, cx.waker()) {
                None
            } else if let Some(waker) = waker.take() {
                state.queue.set_waker(self.place, waker)
            } else {
                // A waker is not made under the lock.
                drop(state);
                waker = Some(cx.waker().clone());
                continue;
            };
            let manned = std::mem::replace(&mut state.desk.is_manned, true);
            drop(state);
            drop(old);
            return if manned {
                Poll::Pending
            } else {
                self.man_desk()
            };
        }
    }

    /// Sends a driver to the desk, which is marked as manned already.
    #[cold]
    fn man_desk(&mut self) -> Poll<Result<Permit, Refused>> {
        let budget = self.budget.clone();
        let shared = budget.shared();
        if let Ok(runtime) = Handle::try_current() {
            driver::send(&budget.0, &runtime);
            let state = shared.lock();
            let is_waiting = state.queue.progress(self.place) == Progress::Waiting;
            if state.desk.is_manned || !is_waiting {
                return Poll::Pending;
            }
            // The runtime is shutting down and has dropped the driver on the spot.
        } else {
            shared.lock().desk.is_manned = false;
        }
        let mut state = shared.lock();
        let now = shared.now();
        let earliest = state.earliest(now, self.class(), &self.cost, self.mask());
        let waker = state.queue.release(self.place);
        let refused = self.refuse(state, RefusedKind::NoRuntime, Some(earliest));
        drop(waker);
        refused
    }

    /// Leaves the queue, where the lock is taken and the end is known.
    fn leave(
        &mut self,
        mut state: MutexGuard<'_, State>,
        now: u64,
        end: Progress,
    ) -> Poll<Result<Permit, Refused>> {
        let budget = self.budget.clone();
        let shared = budget.shared();
        let since = state.queue.since(self.place);
        let waker = state.queue.release(self.place);
        self.stage = Stage::Done;
        let result = match end {
            Progress::Granted => {
                state.depart(now, &self.cost);
                if !state.queue.is_empty() && state.waits_on_held() && !shared.holds {
                    // What was held counts now, and there is an instant for those who wait for it.
                    shared.stir(state, now);
                } else {
                    drop(state);
                }
                let waited = Duration::from_nanos(now.saturating_sub(since));
                shared.note_admitted(self.class(), waited);
                Poll::Ready(Ok(Permit::new(budget.clone(), self.cost, now)))
            }
            Progress::Displaced => self.refuse_counted(state, RefusedKind::Displaced, None),
            Progress::TooLarge => match state.too_large(self.class(), &self.cost) {
                Some((limit, capacity)) => {
                    let kind = RefusedKind::TooLarge {
                        limit: shared.limits[limit].clone(),
                        cost: self.cost[limit],
                        capacity,
                    };
                    self.refuse_counted(state, kind, None)
                }
                // The limits have changed once more.
                None => self.refuse_counted(state, RefusedKind::Deadline, None),
            },
            Progress::Waiting | Progress::Expired | Progress::Free => {
                if end == Progress::Waiting {
                    state.class_mut(self.class()).refused += 1;
                }
                let earliest = state.earliest(now, self.class(), &self.cost, self.mask());
                self.refuse_counted(state, RefusedKind::Deadline, Some(earliest))
            }
        };
        drop(waker);
        result
    }

    fn refuse(
        &mut self,
        mut state: MutexGuard<'_, State>,
        kind: RefusedKind,
        retry_at: Option<u64>,
    ) -> Poll<Result<Permit, Refused>> {
        state.class_mut(self.class()).refused += 1;
        self.refuse_counted(state, kind, retry_at)
    }

    /// The same for one who was counted when it was sent away.
    fn refuse_counted(
        &mut self,
        state: MutexGuard<'_, State>,
        kind: RefusedKind,
        retry_at: Option<u64>,
    ) -> Poll<Result<Permit, Refused>> {
        drop(state);
        self.stage = Stage::Done;
        let refused = self.budget.shared().refused(self.class(), kind, retry_at);
        Poll::Ready(Err(refused))
    }
}

impl Future for Acquire {
    type Output = Result<Permit, Refused>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.stage {
            Stage::Fresh if this.is_pointless() => this.join(cx),
            Stage::Fresh => match this.budget.try_pass(this.class(), &this.cost) {
                Some(departed) => {
                    this.stage = Stage::Done;
                    let budget = this.budget.clone();
                    Poll::Ready(Ok(Permit::new(budget, this.cost, departed)))
                }
                None => this.join(cx),
            },
            Stage::Waiting => this.look(cx),
            // Polled after completion, which the contract of futures leaves open.
            Stage::Done => Poll::Pending,
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        if self.stage != Stage::Waiting {
            return;
        }
        let shared: &Shared = self.budget.shared();
        let now = shared.now();
        let mut state = shared.lock();
        let progress = state.queue.progress(self.place);
        let was_first = state.queue.is_first(self.place);
        if progress == Progress::Granted {
            state.refund(&self.cost);
        }
        let waker = state.queue.release(self.place);
        state.forgive_if_gone(self.class());
        let frees = match progress {
            Progress::Granted => true,
            // Whoever stood behind it may be able to go, or the driver has nothing left to do.
            Progress::Waiting => was_first || state.queue.is_empty(),
            _ => false,
        };
        if frees {
            shared.stir(state, now);
        } else {
            drop(state);
        }
        drop(waker);
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("budget", &self.budget.name())
            .field("class", &self.class)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}
