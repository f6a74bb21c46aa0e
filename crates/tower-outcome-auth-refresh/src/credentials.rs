//! The handle on one credential, which everybody who uses it shares.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderName, HeaderValue};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, timeout},
};
use tower_outcome_core::{BoxError, Clock, Deadline, Origin, Random};

use crate::{
    Attach, Cause, Credential, CredentialsBuilder, LoginDue, Observer, Refreshed, Snapshot, Stored,
    Swap, TokenSource, Unavailable, UnavailableKind, Windows,
    flight::{Pace, State, Step, Want},
    held::{Held, Terms},
    moment::Moment,
    refresh::{self, Unstored},
    source::ErasedSource,
    store::ErasedStore,
};

/// One credential, and everything that has to do with keeping it good. A cheap handle; clones share.
///
/// However many layers, clients and tasks use it, it is refreshed once at a time and for all of them.
/// Use one for each account, key or session; two for the same one would log each other out.
///
/// See the [crate docs](crate) for an example.
#[derive(Clone)]
pub struct Credentials(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    /// Held for a look or a change, never across an await.
    pub(crate) state: Mutex<State>,
    pub(crate) source: Box<dyn ErasedSource>,
    pub(crate) attach: Box<dyn Attach>,
    /// To whom the credential belongs; to everybody if there are none.
    pub(crate) origins: Box<[Origin]>,
    pub(crate) store: Option<Box<dyn ErasedStore>>,
    /// What was read from the store or written to it last. Revisions alone may come again, if a store is
    /// emptied.
    pub(crate) seen: Mutex<Option<Stored>>,
    /// What was fetched and could not be stored.
    pub(crate) unstored: Mutex<Option<Unstored>>,
    /// Memory for copies of heads, of which nearly none is needed in the end.
    pub(crate) memory: Mutex<Vec<Vec<u8>>>,
    /// Tells those who wait that a human has changed something.
    pub(crate) news: watch::Sender<()>,
    pub(crate) pace: Pace,
    pub(crate) windows: Windows,
    pub(crate) max_age: Option<Duration>,
    pub(crate) login_notice: Duration,
    pub(crate) observer: Box<dyn Observer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// What is kept of memory for copies: for as many calls as are often under way, of a usual size.
const KEPT: usize = 256;
const USUAL: usize = 4096;

// === impl Credentials ===

impl Credentials {
    /// Starts with a name, for errors and metrics, and with where credentials come from.
    pub fn builder(name: impl Into<Arc<str>>, source: impl TokenSource) -> CredentialsBuilder {
        CredentialsBuilder::new(name.into(), Box::new(source))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns how long before its end a credential is refreshed.
    #[must_use]
    pub fn windows(&self) -> Windows {
        self.0.windows
    }

    /// Returns the credential if there is one that is good, and fetches nothing.
    #[must_use]
    pub fn current(&self) -> Option<Snapshot> {
        let at = self.0.now();
        let held = self.0.lock().good(at).cloned();
        held.map(Snapshot)
    }

    /// Returns a credential that is good, for what does not go through a layer (a WebSocket, a log-in
    /// elsewhere). Waits for a refresh if there has to be one, until the deadline if there is one.
    ///
    /// # Errors
    ///
    /// If there is none.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves the refresh alone, which goes on for the others and the next.
    pub async fn get(&self, deadline: Option<Deadline>) -> Result<Snapshot, Unavailable> {
        match self.0.fresh() {
            Some(held) => Ok(Snapshot(held)),
            None => match self.0.obtain(Want::Any, deadline).await {
                Ok(held) => Ok(Snapshot(held)),
                Err(refusal) => Err(refusal.why),
            },
        }
    }

    /// Says that the server has rejected this one, as a layer does by itself. Whoever asks next waits
    /// for a newer one.
    pub fn reject(&self, rejected: &Snapshot) {
        self.0.reject(rejected.0.generation);
    }

    /// Takes a credential into use that somebody has got by hand, and stores it. It wins over a refresh
    /// that is under way, and those who wait for one go on with it. A source that was dead is asked again
    /// from here on.
    ///
    /// # Errors
    ///
    /// If it cannot be stored or put on a request, or has expired. Then the old one stays in use. The
    /// store has as long as a refresh ([`timeout`](CredentialsBuilder::timeout)).
    pub async fn log_in(&self, credential: Credential) -> Result<Snapshot, Unavailable> {
        let shared = &self.0;
        let began = Instant::now();
        let asked = shared.now();
        let headers = shared.headers(&credential)?;
        let pinned = refresh::pinned(&credential, asked);
        let expired = || shared.unavailable(UnavailableKind::Expired);
        if pinned.expires_at().is_some_and(|end| end <= asked.wall) {
            return Err(expired());
        }
        let _guard = match &shared.store {
            Some(store) => {
                let stored = timeout(shared.pace.timeout, shared.store_login(&**store, &pinned));
                let timed_out = |_| shared.unavailable(UnavailableKind::TimedOut);
                Some(stored.await.map_err(timed_out)??)
            }
            None => None,
        };
        let at = shared.now();
        let mut state = shared.lock();
        state.supersede();
        state.forgive();
        let held = state.take(credential, headers, asked, at, shared.terms());
        let due = state.login_due(at, shared.login_notice);
        drop(state);
        shared.news.send_replace(());
        if let Some(held) = &held {
            shared.observer.refreshed(&Refreshed {
                name: &shared.name,
                generation: held.generation,
                cause: Cause::LoggedIn,
                took: began.elapsed(),
                expires_in: held.expiry.left(at),
                adopted: false,
            });
        }
        shared.tell_login_due(due);
        held.map(Snapshot).ok_or_else(expired)
    }

    /// Forgets that a refresh has failed, so that the next who needs one starts it at once: after a
    /// human has repaired what the source needs.
    pub fn try_again(&self) {
        self.0.lock().forgive();
        self.0.news.send_replace(());
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn now(&self) -> Moment {
        Moment {
            mono: Instant::now(),
            wall: self.clock.now(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the credential, as long as there is nothing to do about it.
    #[inline]
    pub(crate) fn fresh(&self) -> Option<Arc<Held>> {
        self.lock().fresh(|| self.now())
    }

    /// Returns the credential if it is good, and has it refreshed in the background if that is due.
    ///
    /// For those who have waited for their place already: who let go of it to wait for a credential
    /// would have to queue again, and might never get both.
    pub(crate) fn servable(self: &Arc<Self>) -> Option<Arc<Held>> {
        if let Some(held) = self.fresh() {
            return Some(held);
        }
        let at = self.now();
        match self.ask(Want::Any, at) {
            Step::Use(held) => Some(held),
            _ => self.lock().good(at).cloned(),
        }
    }

    /// Returns memory for a copy, used or empty.
    #[inline]
    pub(crate) fn memory(&self) -> Vec<u8> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.pop().unwrap_or_default()
    }

    /// Takes memory back that is not needed any more.
    #[inline]
    pub(crate) fn give_back(&self, unused: Vec<u8>) {
        if unused.capacity() <= USUAL {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            if memory.len() < KEPT {
                memory.push(unused);
            }
        }
    }

    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms {
            windows: self.windows,
            max_age: self.max_age,
            random: &*self.random,
        }
    }

    /// Whether a store has this since it was looked at last.
    pub(crate) fn is_new(&self, stored: &Stored) -> bool {
        self.seen().as_ref().is_none_or(|seen| {
            let (seen_one, stored_one) = (&seen.credential, &stored.credential);
            seen.revision != stored.revision
                || seen_one.token() != stored_one.token()
                || seen_one.refresh_token() != stored_one.refresh_token()
        })
    }

    pub(crate) fn note_seen(&self, stored: Stored) {
        *self.seen() = Some(stored);
    }

    fn seen(&self) -> MutexGuard<'_, Option<Stored>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn unstored(&self) -> Option<Unstored> {
        let unstored = self.unstored.lock().unwrap_or_else(PoisonError::into_inner);
        unstored.clone()
    }

    pub(crate) fn keep_unstored(&self, unstored: Option<Unstored>) {
        *self.unstored.lock().unwrap_or_else(PoisonError::into_inner) = unstored;
    }

    pub(crate) fn headers(
        &self,
        credential: &Credential,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Unavailable> {
        let mut headers = self
            .attach
            .headers(credential)
            .map_err(|error| self.because(UnavailableKind::Unattachable, error))?;
        for (_, value) in &mut headers {
            value.set_sensitive(true);
        }
        Ok(headers)
    }

    pub(crate) fn unavailable(&self, kind: UnavailableKind) -> Unavailable {
        Unavailable::new(&self.name, kind)
    }

    pub(crate) fn because(&self, kind: UnavailableKind, error: impl Into<BoxError>) -> Unavailable {
        Unavailable::because(&self.name, kind, error.into())
    }

    /// Stores a log-in over whatever is there: it is the newest. Returns the lock, until it is in use.
    async fn store_login(
        &self,
        store: &dyn ErasedStore,
        pinned: &Credential,
    ) -> Result<Box<dyn Send>, Unavailable> {
        let broken = |error| self.because(UnavailableKind::Store, error);
        let guard = store.lock().await.map_err(broken)?;
        let mut revision = self.seen().as_ref().map_or(0, |seen| seen.revision);
        loop {
            let swap = store.compare_and_set(revision, pinned.clone()).await;
            match swap.map_err(broken)? {
                Swap::Stored(stored) => {
                    self.note_seen(Stored::new(pinned.clone(), stored));
                    self.keep_unstored(None);
                    return Ok(guard);
                }
                Swap::Changed(stored) => {
                    revision = stored.map_or(0, |stored| stored.revision);
                }
            }
        }
    }

    /// What a refresh failed with that must not be tried again.
    pub(crate) fn last_failure(&self) -> Unavailable {
        let failure = self.lock().failure().cloned();
        failure.unwrap_or_else(|| self.unavailable(UnavailableKind::Failed))
    }

    pub(crate) fn tell_login_due(&self, within: Option<Duration>) {
        if let Some(within) = within {
            self.observer.login_due(&LoginDue {
                name: &self.name,
                within,
            });
        }
    }

    /// The server has rejected a credential, and nobody waits for another one.
    pub(crate) fn reject(self: &Arc<Self>, generation: u64) {
        // The answer is for whoever asks next.
        let _ = self.ask(Want::NewerThan(generation), self.now());
    }

    /// Asks what to do, and starts what has to be started.
    pub(crate) fn ask(self: &Arc<Self>, want: Want, at: Moment) -> Step {
        let mut state = self.lock();
        if Handle::try_current().is_err() {
            // Without a runtime nothing can be waited for.
            let good = state.good(at).cloned();
            let kind = UnavailableKind::NoRuntime;
            return match (want, good) {
                (Want::Any, Some(held)) => Step::Use(held),
                _ => Step::Fail(self.unavailable(kind), None),
            };
        }
        let (step, launch) = state.ask(want, at, self.pace);
        let due = state.login_due(at, self.login_notice);
        drop(state);
        self.tell_login_due(due);
        if let Some(launch) = launch {
            refresh::start(self, launch);
        }
        step
    }
}
