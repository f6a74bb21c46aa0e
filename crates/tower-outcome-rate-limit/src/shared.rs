//! What the handles of a budget share.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    Guard, Limit, Observer, Refused, RefusedKind, Ticket,
    builder::Config,
    observer::{Admitted, Paused, Queued},
    rule::{NEVER, nanos},
    state::{Round, State, Woken},
    ticket::ClassOf,
};

pub(crate) use self::sync::{Counted, MutexGuard};

/// The primitives below every lock of this crate, so that a model checker can take their place.
#[cfg(not(tower_outcome_model))]
mod sync {
    pub(crate) use std::sync::{Arc as Counted, Mutex, MutexGuard};
}

#[cfg(tower_outcome_model)]
mod sync {
    pub(crate) use loom::sync::{Arc as Counted, Mutex, MutexGuard};
}

/// Who watches a budget.
pub(crate) type Watch = Arc<dyn Observer>;

/// What the handles of a budget share.
pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) limits: Box<[Box<str>]>,
    pub(crate) classes: Box<[Arc<str>]>,
    /// The class of tickets that name none.
    usual_class: usize,
    /// Whether units are held from departure to response.
    pub(crate) holds: bool,
    /// Whether the venue's clock matters.
    pub(crate) is_aligned: AtomicBool,
    pub(crate) observer: Option<Watch>,
    /// The time from which everything counts.
    epoch: Instant,
    /// The time of a model, which checks all orders of events and has to repeat each.
    #[cfg(tower_outcome_model)]
    pub(crate) clock: std::sync::atomic::AtomicU64,
    /// A lock and not atomics: several limits are checked and taken together, and with the queue.
    /// It is held for a few hundred instructions, and never while foreign code runs.
    state: sync::Mutex<State>,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(name: Arc<str>, config: &Config, observer: Option<Watch>) -> Self {
        Self {
            name,
            limits: config
                .limits
                .iter()
                .map(|limit| limit.name.clone())
                .collect(),
            classes: config
                .classes
                .iter()
                .map(|class| Arc::from(&*class.name))
                .collect(),
            usual_class: ClassOf::Unsaid.index(config.classes.len()),
            holds: matches!(config.guard, Guard::UntilResponse { .. }),
            is_aligned: AtomicBool::new(config.limits.iter().any(Limit::is_aligned)),
            observer,
            epoch: Instant::now(),
            #[cfg(tower_outcome_model)]
            clock: std::sync::atomic::AtomicU64::new(0),
            state: sync::Mutex::new(State::new(config)),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a mistake of this crate, and a budget that is off by one is
        // better than a program that panics wherever it looks.
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    #[inline]
    pub(crate) fn class_of(&self, ticket: &Ticket) -> usize {
        match ticket.class {
            ClassOf::Unsaid => self.usual_class,
            class => class.index(self.classes.len()),
        }
    }

    #[cfg(tower_outcome_model)]
    pub(crate) fn now(&self) -> u64 {
        self.clock.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[cfg(not(tower_outcome_model))]
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let since = Instant::now().saturating_duration_since(self.epoch);
        // Five hundred years from now, nothing is worth a check here.
        since
            .as_secs()
            .wrapping_mul(1_000_000_000)
            .wrapping_add(u64::from(since.subsec_nanos()))
    }

    /// The nanosecond of an instant, before the first of which nothing happened.
    pub(crate) fn nanosecond(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.epoch))
    }

    /// The instant of a nanosecond, as far as the clock goes.
    pub(crate) fn instant(&self, nanosecond: u64) -> Instant {
        /// Thirty years: tokio's own notion of "far in the future".
        const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
        self.epoch
            .checked_add(Duration::from_nanos(nanosecond))
            .unwrap_or_else(|| self.epoch + FAR)
    }

    /// Lets through who may go now, and says when to look again. The lock is given up in between
    /// where more are woken than fit.
    pub(crate) fn let_through<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        now: u64,
        woken: &mut Woken,
    ) -> (MutexGuard<'a, State>, u64) {
        loop {
            if woken.is_full() {
                drop(state);
                woken.wake();
                state = self.lock();
            }
            match state.grant(now, woken) {
                Round::Until(next) => return (state, next),
                Round::More => {
                    drop(state);
                    woken.wake();
                    state = self.lock();
                }
            }
        }
    }

    /// Something has changed for those who wait: lets through who may go now, and tells the driver
    /// if it has to look earlier.
    #[cold]
    pub(crate) fn stir<'a>(&'a self, mut state: MutexGuard<'a, State>, now: u64) {
        let mut woken = Woken::default();
        let next;
        (state, next) = self.let_through(state, now, &mut woken);
        self.tell_drivers(state, next);
        woken.wake();
    }

    /// Wakes the drivers that would look too late, or have nothing to look for any more.
    pub(crate) fn tell_drivers<'a>(&'a self, mut state: MutexGuard<'a, State>, next: u64) {
        loop {
            let is_empty = state.queue.is_empty();
            let driver = state.desks.take_late(next, is_empty);
            drop(state);
            let Some(driver) = driver else {
                return;
            };
            driver.wake();
            state = self.lock();
        }
    }

    #[inline]
    pub(crate) fn note_admitted(&self, class: usize, waited: Duration) {
        if let Some(observer) = &self.observer {
            observer.admitted(&Admitted {
                budget: &self.name,
                class: &self.classes[class],
                waited,
            });
        }
    }

    pub(crate) fn note_queued(&self, class: usize, waiting: u32) {
        if let Some(observer) = &self.observer {
            observer.queued(&Queued {
                budget: &self.name,
                class: &self.classes[class],
                waiting,
            });
        }
    }

    pub(crate) fn note_paused(&self, limit: Option<usize>, now: u64, until: u64) {
        if let Some(observer) = &self.observer {
            observer.paused(&Paused {
                budget: &self.name,
                limit: limit.map(|limit| &*self.limits[limit]),
                lasting: Duration::from_nanos(until.saturating_sub(now)),
            });
        }
    }

    /// Makes the refusal of a request, and tells who watches.
    pub(crate) fn refused(
        &self,
        class: usize,
        kind: RefusedKind,
        retry_at: Option<u64>,
    ) -> Refused {
        let mut refused = Refused::new(
            Arc::clone(&self.name),
            Arc::clone(&self.classes[class]),
            kind,
        );
        if let Some(at) = retry_at.filter(|&at| at != NEVER) {
            refused = refused.with_retry_at(self.instant(at));
        }
        if let Some(observer) = &self.observer {
            observer.refused(&refused);
        }
        refused
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
