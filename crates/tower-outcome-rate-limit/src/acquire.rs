//! Waiting for a budget.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

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
        let entrant = Entrant {
            class,
            cost: self.cost,
            deadline: (deadline != NEVER).then_some(deadline),
        };
        self.place = state.queue.push(now, &entrant, Some(waker));
        self.stage = Stage::Waiting;
        self.stand(shared, state, now, until, earliest)
    }

    /// Stands in line, and looks whether it can go at once, be it because those before it may have
    /// become free to go without anybody noticing yet.
    fn stand<'a>(
        &mut self,
        shared: &'a Shared,
        mut state: MutexGuard<'a, State>,
        now: u64,
        until: u64,
        earliest: u64,
    ) -> Poll<Result<Permit, Refused>> {
        let class = self.class();
        let mut woken = Woken::default();
        let mut next;
        (state, next) = shared.let_through(state, now, &mut woken);
        match state.queue.progress(self.place) {
            Progress::Waiting if until > now => {}
            Progress::Waiting => {
                let refused = self.give_up(state, now, RefusedKind::Deadline, Some(earliest));
                woken.wake();
                return refused;
            }
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
                    let waiting = state.queue.len() - 1;
                    let kind = RefusedKind::QueueFull { waiting };
                    let refused = self.give_up(state, now, kind, Some(earliest));
                    woken.wake();
                    return refused;
                }
            }
        }
        let Some(place) = driver::here() else {
            let refused = self.give_up(state, now, RefusedKind::NoRuntime, Some(earliest));
            woken.wake();
            return refused;
        };
        let waiting = state.queue.len();
        let is_manned = state.desks.is_manned(place);
        if !is_manned {
            state.desks.man(place);
        }
        shared.tell_drivers(state, next);
        woken.wake();
        shared.note_queued(class, waiting);
        if is_manned {
            Poll::Pending
        } else {
            self.man_desk(place)
        }
    }

    /// Looks whether its turn has come.
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, Refused>> {
        let budget = self.budget.clone();
        let shared = budget.shared();
        let here = driver::here();
        let mut waker: Option<Waker> = None;
        loop {
            let now = shared.now();
            let mut state = shared.lock();
            let progress = state.queue.progress(self.place);
            let is_asleep = progress == Progress::Asleep;
            if progress != Progress::Waiting && !is_asleep {
                return self.leave(state, now, progress);
            }
            if !is_asleep && state.queue.wakes(self.place, cx.waker()) {
                return self.keep_waiting(state, here);
            }
            let Some(waker) = waker.take() else {
                // A waker is not made under the lock.
                drop(state);
                waker = Some(cx.waker().clone());
                continue;
            };
            if is_asleep {
                return self.stand_again(shared, state, now, waker);
            }
            let old = state.queue.set_waker(self.place, waker);
            let pending = self.keep_waiting(state, here);
            drop(old);
            return pending;
        }
    }

    /// Was let through and not polled until it was taken back.
    #[cold]
    fn stand_again<'a>(
        &mut self,
        shared: &'a Shared,
        mut state: MutexGuard<'a, State>,
        now: u64,
        waker: Waker,
    ) -> Poll<Result<Permit, Refused>> {
        let since = state.queue.since(self.place);
        let until = since
            .saturating_add(state.classes()[self.class()].max_wait())
            .min(self.deadline);
        if until < now {
            return self.leave(state, now, Progress::Expired);
        }
        let deadline = (self.deadline != NEVER).then_some(self.deadline);
        state.queue.let_back(self.place, deadline, waker);
        self.stand(shared, state, now, until, now)
    }

    /// Makes sure that there is somebody on this runtime to let it through.
    fn keep_waiting(
        &mut self,
        mut state: MutexGuard<'_, State>,
        here: Option<driver::Place>,
    ) -> Poll<Result<Permit, Refused>> {
        // Polled without a runtime, it has to rely on those of others.
        let Some(place) = here.filter(|&place| !state.desks.is_manned(place)) else {
            return Poll::Pending;
        };
        state.desks.man(place);
        drop(state);
        self.man_desk(place)
    }

    /// Sends a driver to the desk, which is marked as manned already.
    #[cold]
    fn man_desk(&mut self, place: driver::Place) -> Poll<Result<Permit, Refused>> {
        let budget = self.budget.clone();
        let shared = budget.shared();
        driver::send(&budget.0);
        let mut state = shared.lock();
        let is_waiting = state.queue.progress(self.place) == Progress::Waiting;
        if state.desks.is_manned(place) || !is_waiting {
            return Poll::Pending;
        }
        // The runtime is shutting down and has dropped the driver on the spot.
        let now = shared.now();
        let earliest = state.earliest(now, self.class(), &self.cost, self.mask());
        self.give_up(state, now, RefusedKind::NoRuntime, Some(earliest))
    }

    /// Leaves the line without having got anywhere, and lets those behind it look.
    fn give_up(
        &mut self,
        mut state: MutexGuard<'_, State>,
        now: u64,
        kind: RefusedKind,
        retry_at: Option<u64>,
    ) -> Poll<Result<Permit, Refused>> {
        let budget = self.budget.clone();
        let shared = budget.shared();
        let class = self.class();
        let waker = state.queue.release(self.place);
        state.forgive_if_gone(class);
        state.class_mut(class).refused += 1;
        self.stage = Stage::Done;
        shared.stir(state, now);
        drop(waker);
        Poll::Ready(Err(shared.refused(class, kind, retry_at)))
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
                if !state.queue.is_empty() && state.waits_on_held() {
                    // It has left, and there may be an instant for those who wait for that.
                    shared.stir(state, now);
                } else {
                    drop(state);
                }
                // The permit first: whatever becomes of those who are told, it is there.
                let permit = Permit::new(budget.clone(), self.cost, now);
                let waited = Duration::from_nanos(now.saturating_sub(since));
                shared.note_admitted(self.class(), waited);
                Poll::Ready(Ok(permit))
            }
            Progress::Displaced => {
                let earliest = state.earliest(now, self.class(), &self.cost, self.mask());
                self.refuse_counted(state, RefusedKind::Displaced, Some(earliest))
            }
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
            Progress::Waiting | Progress::Expired | Progress::Asleep | Progress::Free => {
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
                    let permit = Permit::new(this.budget.clone(), this.cost, departed);
                    this.budget
                        .shared()
                        .note_admitted(this.class(), Duration::ZERO);
                    Poll::Ready(Ok(permit))
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
            state.revoke(&self.cost);
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
