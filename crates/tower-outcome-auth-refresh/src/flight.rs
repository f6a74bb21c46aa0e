//! Who refreshes, who waits, and who goes on: a state machine without clock, lock or I/O.
//!
//! Time is an argument. What has to be done outside (to start a task, to wait) is returned.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{sync::watch, time::Instant};
use tower_outcome_core::Random;

use crate::{
    Credential, Unavailable,
    held::{Held, Terms},
    moment::{Mark, Moment},
    observer::Cause,
    windows::shortened,
};

/// What is known of a credential, and of the refresh that is under way.
#[derive(Debug, Default)]
pub(crate) struct State {
    held: Option<Arc<Held>>,
    /// When somebody has to look at what is held: until then it is good, and there is nothing to do.
    look: Mark,
    /// The log-in whose approaching end was told.
    told: Option<SystemTime>,
    /// Whether the server has rejected what is held.
    rejected: bool,
    /// What the source returned last, fit for use or not: with it the next one is fetched. It may have
    /// a refresh token that is nowhere else.
    latest: Option<Credential>,
    flight: Option<Flight>,
    flights: u64,
    generation: u64,
    failure: Option<Failed>,
    /// Failures since the last success.
    failures: u32,
    /// Refreshes that changed nothing for those who were rejected, one after the other.
    useless: u32,
    /// Whether the present credential counts among those already.
    doubted: bool,
    started: Option<Instant>,
}

/// A refresh that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) id: u64,
    pub(crate) landed: watch::Receiver<Landed>,
    /// When it must have ended by itself; afterwards it is lost.
    pub(crate) overdue: Instant,
}

/// What a refresh came to; `None` while it is under way.
pub(crate) type Landed = Option<Result<Arc<Held>, Unavailable>>;

/// A refresh that has to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) id: u64,
    pub(crate) cause: Cause,
    /// The generation that there is.
    pub(crate) generation: u64,
    /// What the next credential is fetched with.
    pub(crate) previous: Option<Credential>,
    /// What the server has rejected, which a store must not bring back.
    pub(crate) rejected: Option<Credential>,
    /// The source is dead, and only a store can know better.
    pub(crate) only_look: bool,
    pub(crate) land: watch::Sender<Landed>,
}

/// What somebody wants who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A credential that is good.
    Any,
    /// A good one that is newer than this, which the server has rejected.
    NewerThan(u64),
}

/// What whoever asks has to do.
#[derive(Debug)]
pub(crate) enum Step {
    Use(Arc<Held>),
    Wait(Flight),
    /// Nothing may be started before then.
    Pause(Instant),
    /// With how long the failure is remembered.
    Fail(Unavailable, Option<Duration>),
}

/// How often may be refreshed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) min_interval: Duration,
    pub(crate) timeout: Duration,
    /// Whether a store may have what the source has not.
    pub(crate) has_store: bool,
}

/// A failure that is remembered.
#[derive(Debug)]
struct Failed {
    why: Unavailable,
    /// Who has nothing gets the failure until then.
    until: Instant,
    /// While a good credential is served, nothing is tried until then.
    not_before: Instant,
}

/// A lost answer of a token server, which holds the tokens of many, is no reason to ask it at once.
const FIRST_BACKOFF: Duration = Duration::from_secs(30);
const LONGEST_BACKOFF: Duration = Duration::from_secs(600);
/// So long a failure is shared with those who come later, when there is nothing else to serve.
const SHORTEST_MEMORY: Duration = Duration::from_secs(1);
const LONGEST_MEMORY: Duration = Duration::from_secs(5);
/// Log-ins that the server does not honour are not repeated faster than that in the end.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// So long a call waits for the time at which a refresh may start before its rejection is its answer, and
/// the others for one whose credential was rejected.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// What a refresh may be late by before it counts as lost.
const GRACE: Duration = Duration::from_secs(1);

// === impl State ===

impl State {
    /// Returns what is held, as long as there is nothing to do about it: the hot path.
    #[inline]
    pub(crate) fn fresh(&self, now: impl FnOnce() -> Moment) -> Option<Arc<Held>> {
        let held = self.held.as_ref()?;
        if self.rejected || !self.look.is_never() && self.look.is_reached(now()) {
            return None;
        }
        Some(Arc::clone(held))
    }

    /// Returns what is held and good.
    pub(crate) fn good(&self, at: Moment) -> Option<&Arc<Held>> {
        let held = self.held.as_ref();
        held.filter(|held| !self.rejected && !held.expiry.is_reached(at))
    }

    pub(crate) fn failure(&self) -> Option<&Unavailable> {
        self.failure.as_ref().map(|failed| &failed.why)
    }

    /// Says what whoever asks has to do, and what has to be started.
    pub(crate) fn ask(&mut self, want: Want, at: Moment, pace: Pace) -> (Step, Option<Launch>) {
        let held = self.held.as_ref().map(|held| held.generation);
        let unwanted = match want {
            Want::NewerThan(generation) => held.is_some_and(|held| held <= generation),
            Want::Any => false,
        };
        if unwanted && self.withholds(at, pace) {
            // The server is right, whatever the clock says.
            self.rejected = true;
        }
        let cause = match held {
            None => Cause::Missing,
            Some(_) if unwanted || self.rejected => Cause::Rejected,
            Some(_) => Cause::Expired,
        };
        if let (Some(held), false) = (self.good(at).cloned(), unwanted) {
            return self.serve(held, at, pace);
        }
        if let Some(flight) = &self.flight {
            return (Step::Wait(flight.clone()), None);
        }
        let mut only_look = false;
        if let Some(failed) = &self.failure {
            let left = failed.until.saturating_duration_since(at.mono);
            let is_dead = failed.why.is_dead();
            if !left.is_zero() || is_dead && !pace.has_store {
                let left = (!is_dead).then_some(left);
                return (Step::Fail(failed.why.clone(), left), None);
            }
            only_look = is_dead;
        }
        if let Some(next) = self.next_start(pace) {
            if at.mono < next {
                return (Step::Pause(next), None);
            }
        }
        let (flight, launch) = self.launch(cause, only_look, at, pace);
        (Step::Wait(flight), Some(launch))
    }

    /// What to do with a good credential.
    fn serve(&mut self, held: Arc<Held>, at: Moment, pace: Pace) -> (Step, Option<Launch>) {
        if !held.advisory.is_reached(at) {
            return (Step::Use(held), None);
        }
        let must_wait = held.mandatory.is_reached(at);
        if let Some(flight) = &self.flight {
            let step = if must_wait {
                Step::Wait(flight.clone())
            } else {
                Step::Use(held)
            };
            return (step, None);
        }
        let mut only_look = false;
        if let Some(failed) = &self.failure {
            only_look = failed.why.is_dead();
            if at.mono < failed.not_before || only_look && !pace.has_store {
                return (Step::Use(held), None);
            }
        }
        if self.next_start(pace).is_some_and(|next| at.mono < next) {
            return (Step::Use(held), None);
        }
        let (flight, launch) = self.launch(Cause::Due, only_look, at, pace);
        let step = if must_wait {
            Step::Wait(flight)
        } else {
            Step::Use(held)
        };
        (step, Some(launch))
    }

    /// Whether a credential that somebody was rejected with is kept from the others until there is another.
    ///
    /// It is not if the last refresh has not helped and others are served with it: then it is what that
    /// one asks for that the server does not grant. Nor if it would take long: then the server may say.
    fn withholds(&self, at: Moment, pace: Pace) -> bool {
        let is_accepted = self.held.as_ref().is_some_and(|held| held.is_accepted());
        let is_soon = |next: Instant| next.saturating_duration_since(at.mono) <= PATIENCE;
        (self.useless == 0 || !is_accepted)
            && (self.flight.is_some() || self.next_start(pace).is_none_or(is_soon))
    }

    /// The instant before which no refresh may start.
    fn next_start(&self, pace: Pace) -> Option<Instant> {
        let factor = 1_u32.checked_shl(self.useless).unwrap_or(u32::MAX);
        let longest = LONGEST_INTERVAL.max(pace.min_interval);
        let interval = pace.min_interval.saturating_mul(factor).min(longest);
        self.started?.checked_add(interval)
    }

    fn launch(
        &mut self,
        cause: Cause,
        only_look: bool,
        at: Moment,
        pace: Pace,
    ) -> (Flight, Launch) {
        self.flights += 1;
        let id = self.flights;
        let (land, landed) = watch::channel(None);
        // What was fetched has the same time once more to be stored.
        let times = if pace.has_store { 2 } else { 1 };
        let limit = pace.timeout.saturating_mul(times).saturating_add(GRACE);
        let overdue = at.mono.checked_add(limit).unwrap_or(at.mono);
        let flight = Flight {
            id,
            landed,
            overdue,
        };
        self.flight = Some(flight.clone());
        self.started = Some(at.mono);
        let held = self.held.as_ref();
        let held = held.filter(|_| self.rejected || cause == Cause::Rejected);
        let launch = Launch {
            id,
            cause,
            generation: self.generation,
            previous: self.latest.clone(),
            rejected: held.map(|held| held.credential.clone()),
            only_look,
            land,
        };
        (flight, launch)
    }

    /// Keeps what the source returned or a store had, whatever becomes of it, unless there has been a
    /// newer one since.
    pub(crate) fn keep(&mut self, credential: &Credential, generation: u64) {
        if self.generation == generation {
            self.latest = Some(credential.clone());
        }
    }

    /// How many credentials there have been.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a human has to be told to log in, and how long there is; then when to look again.
    pub(crate) fn login_due(&mut self, at: Moment, notice: Duration) -> Option<Duration> {
        let held = self.held.as_ref();
        let advisory = held.map_or(Mark::NEVER, |held| held.advisory);
        let until = self.latest.as_ref().and_then(Credential::login_until);
        let untold = until.filter(|until| self.told != Some(*until));
        let Some(until) = untold else {
            self.look = advisory;
            return None;
        };
        let from = Mark::on_wall(until).minus(notice);
        if !from.is_reached(at) {
            self.look = advisory.min(from);
            return None;
        }
        self.told = Some(until);
        self.look = advisory;
        Some(until.duration_since(at.wall).unwrap_or_default())
    }

    /// Takes a new credential into use. What makes it `None` is that it has expired already.
    pub(crate) fn take(
        &mut self,
        credential: Credential,
        headers: Vec<(http::HeaderName, http::HeaderValue)>,
        asked: Moment,
        at: Moment,
        terms: Terms<'_>,
    ) -> Option<Arc<Held>> {
        self.latest = Some(credential.clone());
        let generation = self.generation + 1;
        let held = Held::new(credential, headers, generation, asked, at, terms)?;
        let held = Arc::new(held);
        let was_useless =
            self.rejected && self.held.as_ref().is_some_and(|held| !held.is_accepted());
        if !self.doubted {
            self.useless = if was_useless {
                self.useless.saturating_add(1)
            } else {
                0
            };
        }
        self.doubted = false;
        self.generation = generation;
        self.held = Some(Arc::clone(&held));
        self.rejected = false;
        self.failure = None;
        self.failures = 0;
        Some(held)
    }

    /// A call was rejected with a credential that was fetched because it had been rejected before.
    pub(crate) fn doubt(&mut self, generation: u64) {
        let held = self.held.as_ref();
        if held.is_some_and(|held| held.generation == generation) && !self.doubted {
            self.doubted = true;
            self.useless = self.useless.saturating_add(1);
        }
    }

    /// A refresh has failed. Returns whether that is when only a human can help any more.
    pub(crate) fn fail(&mut self, why: Unavailable, at: Moment, random: &dyn Random) -> bool {
        let was_dead = self.failure().is_some_and(Unavailable::is_dead);
        let has_died = why.is_dead() && !was_dead;
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        let grown = |first: Duration, longest: Duration| {
            let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
            first.saturating_mul(factor).min(longest)
        };
        let asked = why.after().unwrap_or_default().min(LONGEST_BACKOFF);
        let memory = shortened(grown(SHORTEST_MEMORY, LONGEST_MEMORY), random)
            .max(SHORTEST_MEMORY)
            .max(asked);
        let backoff = shortened(grown(FIRST_BACKOFF, LONGEST_BACKOFF), random).max(asked);
        self.failure = Some(Failed {
            why,
            until: at.mono.checked_add(memory).unwrap_or(at.mono),
            not_before: at.mono.checked_add(backoff).unwrap_or(at.mono),
        });
        has_died
    }

    /// How long the last failure is remembered by those who have nothing; a dead source has no such time.
    pub(crate) fn remembered(&self, at: Moment) -> Option<Duration> {
        let failed = self
            .failure
            .as_ref()
            .filter(|failed| !failed.why.is_dead())?;
        Some(failed.until.saturating_duration_since(at.mono))
    }

    /// What is under way is not waited for any more: there is something better.
    pub(crate) fn supersede(&mut self) {
        self.flight = None;
    }

    /// A refresh has ended, this one if it was under way. Returns whether it was.
    pub(crate) fn end(&mut self, id: u64) -> bool {
        let is_current = self.flight.as_ref().is_some_and(|flight| flight.id == id);
        if is_current {
            self.flight = None;
        }
        is_current
    }

    /// Forgets failures, so that the source is asked again.
    pub(crate) fn forgive(&mut self) {
        self.failure = None;
        self.failures = 0;
        self.useless = 0;
        self.doubted = false;
        self.started = None;
    }
}
