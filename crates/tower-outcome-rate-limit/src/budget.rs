//! The budget.

use std::{sync::atomic::Ordering, task::Waker, time::Duration};

use tokio::time::Instant;
use tower_outcome_core::ConfigError;

use crate::{
    Acquire, BudgetBuilder, ClassQueue, Cost, Limit, LimitUsage, Permit, Refused, RefusedKind,
    Reported, Snapshot, Ticket,
    builder::check_burst,
    queue::{Entrant, Mask, Progress, mask_of},
    rule::nanos,
    shared::{Counted, MutexGuard, Shared},
    state::{ClassState, Mark, State, Units, Woken},
    ticket::ClassOf,
};

/// The most limits of one budget.
pub(crate) const MAX_LIMITS: usize = 8;
/// The most classes of one budget.
pub(crate) const MAX_CLASSES: usize = 8;

/// Everything that one account, key or address may use of a venue, and who waits for it.
///
/// Clones are handles to the same budget: give one to every client, retry and task that shares the
/// limits. See the [crate docs](crate) for an example.
#[derive(Clone, Debug)]
pub struct Budget(pub(crate) Counted<Shared>);

/// Where the counts of a budget stood when a request departed; see [`Budget::observe_used`].
#[derive(Clone, Copy, Debug)]
pub struct Departure(Mark);

// === impl Budget ===

impl Budget {
    /// Starts with the name of the budget, which appears in errors and events.
    pub fn builder(name: impl Into<String>) -> BudgetBuilder {
        BudgetBuilder::new(name)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the longest time for which a request may wait, in the class that waits longest.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        let state = self.0.lock();
        let waits = state.classes().iter().map(ClassState::max_wait);
        Duration::from_nanos(waits.max().unwrap_or(0))
    }

    /// Makes a cost from units by the names of limits. A limit that is not named costs 0.
    ///
    /// # Errors
    ///
    /// If there is no limit of such a name, or if one is named twice.
    pub fn cost<'a>(
        &self,
        units: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Result<Cost, ConfigError> {
        let mut cost = Cost::NOTHING;
        let mut named: Mask = 0;
        for (name, units) in units {
            let limit = self.limit(name)?;
            if named & 1 << limit != 0 {
                return Err(ConfigError::new("cost", name, "each limit once"));
            }
            named |= 1 << limit;
            cost.0[limit] = units;
        }
        Ok(cost)
    }

    /// Lets a request through if it can go now.
    ///
    /// It never overtakes those of its class or above that wait for the same limits. The permit is
    /// described at [`Permit`].
    ///
    /// # Errors
    ///
    /// If it would have to wait, with the earliest instant at which it could go; if its deadline is
    /// over; or if its cost can never fit.
    #[inline]
    pub fn try_acquire(&self, ticket: &Ticket) -> Result<Permit, Refused> {
        match self.pass(ticket) {
            Some(permit) => Ok(permit),
            None => self.try_in_line(ticket),
        }
    }

    /// Waits until a request can go.
    ///
    /// # Errors
    ///
    /// If it cannot go before its deadline and within the longest wait, which is known beforehand
    /// unless somebody of a higher class comes later; if the queue is full; if it makes way for a
    /// higher class in a full queue; if its cost can never fit.
    ///
    /// # Panics
    ///
    /// The future panics if it has to wait on a tokio runtime whose timer is not enabled, as every
    /// wait of tokio does.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves the queue. What it was granted and has not taken is given back.
    #[inline]
    pub fn acquire(&self, ticket: Ticket) -> Acquire {
        Acquire::new(self.clone(), &ticket)
    }

    /// Lets nobody through for a while. A pause that is under way is made longer, never shorter, and
    /// none is longer than the builder allows. Those who cannot wait that long are refused at once.
    pub fn pause(&self, span: Duration) {
        let now = self.0.now();
        let mut state = self.0.lock();
        let longest = state.longest_pause;
        let until = state.gate.pause(now, nanos(span), longest);
        let wakers = state.send_away_hopeless(until, Mask::MAX);
        self.0.stir(state, now);
        wakers.into_iter().for_each(Waker::wake);
        self.0.note_paused(None, now, until);
    }

    /// The venue refused a request for having too many, and asked for this long a pause, or did not
    /// say: then for a second, and twice as long each time, up to a minute, until others have been
    /// answered and the longest window (at most a minute) has passed without a refusal.
    ///
    /// Lets nobody through for that long, at most [the longest pause](BudgetBuilder::longest_pause), and
    /// for one window after that requests go one by one, at
    /// the rate of the limit with the shortest window, instead of all those that were held up
    /// together.
    pub fn throttled(&self, hint: Option<Duration>) {
        let state = self.0.lock();
        let longest = state.longest_pause;
        self.refuse(state, hint, longest);
    }

    /// The venue has banned this side, for so long or without saying: as [`throttled`], but what it
    /// says is believed up to [the longest ban](BudgetBuilder::longest_ban).
    ///
    /// [`throttled`]: Self::throttled
    pub fn banned(&self, hint: Option<Duration>) {
        let state = self.0.lock();
        let longest = state.longest_ban;
        self.refuse(state, hint, longest);
    }

    fn refuse(&self, mut state: MutexGuard<'_, State>, hint: Option<Duration>, longest: u64) {
        let now = self.0.now();
        let before = state.gate.until();
        let until = state.throttled(now, hint.map(nanos), longest);
        let wakers = if until > before {
            state.send_away_hopeless(until, Mask::MAX)
        } else {
            Vec::new()
        };
        self.0.stir(state, now);
        wakers.into_iter().for_each(Waker::wake);
        self.0.note_paused(None, now, until);
    }

    /// Lets nobody through who uses a limit, for a while.
    ///
    /// # Errors
    ///
    /// If there is no such limit.
    pub fn close_limit(&self, name: &str, span: Duration) -> Result<(), ConfigError> {
        let limit = self.limit(name)?;
        self.close(limit, span);
        Ok(())
    }

    pub(crate) fn close(&self, limit: usize, span: Duration) {
        let now = self.0.now();
        let mut state = self.0.lock();
        let longest = state.longest_pause;
        state.gate.close(limit, now, nanos(span), longest);
        let until = state.gate.closed_until(limit);
        let wakers = state.send_away_hopeless(until, 1 << limit);
        self.0.stir(state, now);
        wakers.into_iter().for_each(Waker::wake);
        self.0.note_paused(Some(limit), now, until);
    }

    /// Opens the gate, whatever the venue said: for an operator who knows better.
    pub fn reopen(&self) {
        let now = self.0.now();
        let mut state = self.0.lock();
        state.gate.open();
        self.0.stir(state, now);
    }

    /// Notes where the counts stand, for a request that departs now and has its permit.
    #[must_use]
    pub fn departure(&self) -> Departure {
        let now = self.0.now();
        Departure(self.0.lock().mark(now))
    }

    /// The venue says that so many units of a limit were used when it looked at a request.
    ///
    /// The number never replaces this side's own count: it is older than that, and answers overtake
    /// each other. Where it shows for certain that somebody else uses the limit, what is missing is
    /// counted as a phantom for one window, and so are later numbers until ten windows have passed
    /// without such a sign.
    ///
    /// # Errors
    ///
    /// If there is no such limit.
    pub fn observe_used(
        &self,
        limit: &str,
        used: u64,
        departure: &Departure,
    ) -> Result<(), ConfigError> {
        let limit = self.limit(limit)?;
        self.observe(limit, used, departure);
        Ok(())
    }

    pub(crate) fn observe(&self, limit: usize, used: u64, departure: &Departure) {
        let now = self.0.now();
        let mut state = self.0.lock();
        state.observe_used(now, limit, used, &departure.0);
    }

    /// A response says how much of a limit is used, how much is left, and when that changes.
    pub(crate) fn report(&self, limit: usize, reported: &Reported, departure: &Departure) {
        let now = self.0.now();
        let mut state = self.0.lock();
        let capacity = u64::from(state.capacity(limit));
        if let Some(used) = reported.used_of(capacity) {
            state.observe_used(now, limit, used, &departure.0);
        }
        drop(state);
        if let (true, Some(reset)) = (reported.is_exhausted(), reported.reset) {
            if !reset.is_zero() {
                self.close(limit, reset);
            }
        }
    }

    /// A response to a request that was sent at one instant and answered at another was dated so
    /// many seconds after the Unix epoch. From this the venue's clock is learned, which
    /// [aligned](Limit::aligned) limits count by; others do not need it.
    pub fn observe_date(&self, sent: Instant, received: Instant, date: u64) {
        let (sent, received) = (self.0.nanosecond(sent), self.0.nanosecond(received));
        let now = self.0.now();
        let mut state = self.0.lock();
        state.observe_date(sent, received, date);
        self.0.stir(state, now);
    }

    /// Changes the limit of the same name, and keeps what was used of it. Those who wait and do not
    /// fit any more are refused.
    ///
    /// # Errors
    ///
    /// If there is no limit of that name, if it is of another kind (windows may become aligned or
    /// sliding), or if the builder would not have taken it.
    pub fn reconfigure(&self, limit: &Limit) -> Result<(), ConfigError> {
        self.change(limit, true)
    }

    /// The same, for a budget alone or for all that are like it.
    pub(crate) fn change(&self, limit: &Limit, is_own: bool) -> Result<(), ConfigError> {
        limit.check()?;
        let index = self.limit(limit.name())?;
        let now = self.0.now();
        let mut state = self.0.lock();
        if let Err(error) = check_burst(limit, state.margin()) {
            drop(state);
            return Err(error);
        }
        if !state.reconfigure(now, index, limit, is_own) {
            drop(state);
            return Err(ConfigError::new(
                "limit",
                limit,
                "of the same kind as before",
            ));
        }
        let wakers = state.send_away_too_large();
        if limit.is_aligned() {
            self.0.is_aligned.store(true, Ordering::Relaxed);
        }
        self.0.stir(state, now);
        wakers.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Returns how the budget stands, without spending anything.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let now = self.0.now();
        let span = |until: u64| Duration::from_nanos(until.saturating_sub(now));
        let mut state = self.0.lock();
        let taken = state.taken(now);
        let limits = self.0.limits.iter().zip(taken).enumerate();
        let limits = limits.map(|(limit, (name, (capacity, taken)))| LimitUsage {
            name: name.to_string(),
            capacity,
            used: taken.logged,
            held: taken.held,
            phantom: taken.phantom,
            closed_for: span(state.gate.closed_until(limit)),
        });
        let limits = limits.collect();
        let classes = state.classes().iter().enumerate();
        let classes = classes.map(|(class, counts)| ClassQueue {
            name: counts.name().to_owned(),
            queued: state.queue.waiting(class),
            oldest_wait: match state.longest_wait(class) {
                Some((since, _)) => Duration::from_nanos(now.saturating_sub(since)),
                None => Duration::ZERO,
            },
            granted: counts.granted,
            refused: counts.refused,
        });
        Snapshot {
            limits,
            classes: classes.collect(),
            queued: state.queue.len(),
            paused_for: span(state.gate.until()),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Whether a ticket can ever fit.
    pub(crate) fn check(&self, ticket: &Ticket) -> Result<(), ConfigError> {
        // Who names no class may be of the one that may use most.
        let class = match ticket.class {
            ClassOf::Unsaid => 0,
            class => class.index(self.0.classes.len()),
        };
        match self.0.lock().too_large(class, &ticket.cost.0) {
            None => Ok(()),
            Some((limit, capacity)) => Err(ConfigError::new(
                "ticket.cost",
                format_args!(
                    "{} of {:?}, of which {:?} may use {capacity}",
                    ticket.cost.0[limit], self.0.limits[limit], self.0.classes[class]
                ),
                "no more than its class may use",
            )),
        }
    }

    /// Whether both are handles to one budget.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Counted::ptr_eq(&self.0, &other.0)
    }

    /// Whether the venue's clock matters.
    #[inline]
    pub(crate) fn is_aligned(&self) -> bool {
        self.0.is_aligned.load(Ordering::Relaxed)
    }

    pub(crate) fn limits(&self) -> &[Box<str>] {
        &self.0.limits
    }

    pub(crate) fn limit(&self, name: &str) -> Result<usize, ConfigError> {
        let mut limits = self.0.limits.iter();
        limits
            .position(|limit| &**limit == name)
            .ok_or_else(|| ConfigError::new("limit", name, "the name of a limit of the budget"))
    }

    /// Whether nobody but the caller has a handle, and nothing would be lost with it.
    pub(crate) fn is_idle(&self) -> bool {
        Counted::strong_count(&self.0) == 1 && {
            let now = self.0.now();
            self.0.lock().is_idle(now)
        }
    }

    /// The fast way, for one who overtakes nobody.
    #[inline]
    pub(crate) fn pass(&self, ticket: &Ticket) -> Option<Permit> {
        if ticket.deadline.is_some_and(|at| at < Instant::now()) {
            // Too late to go, even at once.
            return None;
        }
        let (class, cost) = (self.0.class_of(ticket), ticket.cost.0);
        let departed = self.try_pass(class, &cost)?;
        // The permit first: whatever becomes of those who are told, it is there.
        let permit = Permit::new(self.clone(), cost, departed);
        self.0.note_admitted(class, Duration::ZERO);
        Some(permit)
    }

    /// The same without the permit, which is expensive to move: returns when the request departed.
    #[inline]
    pub(crate) fn try_pass(&self, class: usize, cost: &Units) -> Option<u64> {
        let mut state = self.0.lock();
        let now = if self.0.holds && state.passes_at_any_time(class, cost) {
            // Nothing counts from now on: what is held counts from when it ends.
            0
        } else {
            let now = self.0.now();
            if !state.passes(now, class, cost) {
                return None;
            }
            now
        };
        state.pass(now, class, cost);
        Some(now)
    }

    /// The slow way: stands in line for as long as the lock is held.
    #[cold]
    fn try_in_line(&self, ticket: &Ticket) -> Result<Permit, Refused> {
        let class = self.0.class_of(ticket);
        let cost = &ticket.cost.0;
        let mask = mask_of(cost, self.0.limits.len());
        let now = self.0.now();
        let mut state = self.0.lock();
        if let Some((limit, capacity)) = state.too_large(class, cost) {
            state.class_mut(class).refused += 1;
            drop(state);
            let kind = RefusedKind::TooLarge {
                limit: self.0.limits[limit].clone(),
                cost: cost[limit],
                capacity,
            };
            return Err(self.0.refused(class, kind, None));
        }
        let earliest = state.earliest(now, class, cost, mask);
        let deadline = ticket.deadline.map(|at| self.0.nanosecond(at));
        let kind = match deadline {
            Some(deadline) if deadline < now => RefusedKind::Deadline,
            _ => RefusedKind::Busy,
        };
        // Nobody is in the way but the clock or the limits themselves.
        if kind == RefusedKind::Deadline || state.queue.is_empty() {
            state.class_mut(class).refused += 1;
            drop(state);
            return Err(self.0.refused(class, kind, Some(earliest)));
        }
        let mut woken = Woken::default();
        let entrant = Entrant {
            class,
            cost: *cost,
            deadline: None,
        };
        let place = state.queue.push(now, &entrant, None);
        (state, _) = self.0.let_through(state, now, &mut woken);
        let progress = state.queue.progress(place);
        drop(state.queue.release(place));
        state.forgive_if_gone(class);
        if progress == Progress::Granted {
            state.depart(now, cost);
            // Those who wait were looked at with this one in line.
            self.0.stir(state, now);
            woken.wake();
            let permit = Permit::new(self.clone(), *cost, now);
            self.0.note_admitted(class, Duration::ZERO);
            return Ok(permit);
        }
        // Where its class must not wait, it has been sent away and counted.
        if progress == Progress::Waiting {
            state.class_mut(class).refused += 1;
        }
        self.0.stir(state, now);
        woken.wake();
        Err(self.0.refused(class, RefusedKind::Busy, Some(earliest)))
    }
}
