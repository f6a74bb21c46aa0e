//! The refresh itself, in a task of its own.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::SystemTime,
};

use http::{HeaderName, HeaderValue};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tower_outcome_core::BoxError;

use crate::{
    Credential, FetchError, Stored, Swap, Unavailable, UnavailableKind,
    credentials::Shared,
    flight::{Landed, Launch},
    moment::Moment,
    observer::{Cause, RefreshFailed, Refreshed, StoreFailed},
    store::ErasedStore,
};

tokio::task_local! {
    /// Whose refreshes this task is part of.
    static REFRESHING: Vec<usize>;
}

/// What a refresh came to, and when it was asked for.
pub(crate) struct Fetched {
    credential: Credential,
    headers: Vec<(HeaderName, HeaderValue)>,
    asked: Moment,
    adopted: bool,
}

/// Ends the flight, whatever becomes of the task.
struct Landing {
    shared: Arc<Shared>,
    id: u64,
    cause: Cause,
    /// The generation that there was.
    generation: u64,
    began: Instant,
    land: Option<watch::Sender<Landed>>,
}

/// Returns whether this task is part of a refresh of these credentials.
#[inline]
pub(crate) fn is_refreshing(shared: &Arc<Shared>) -> bool {
    REFRESHING
        .try_with(|refreshing| refreshing.contains(&identity(shared)))
        .unwrap_or(false)
}

/// Starts a refresh on the runtime of whoever asks.
pub(crate) fn start(shared: &Arc<Shared>, mut launch: Launch) {
    // NOTE: outside of the state's lock. A runtime that is going down drops the task here and now, and
    // with it the landing, which takes the lock.
    let landing = Landing {
        shared: Arc::clone(shared),
        id: launch.id,
        cause: launch.cause,
        generation: launch.generation,
        began: Instant::now(),
        land: Some(std::mem::replace(&mut launch.land, watch::channel(None).0)),
    };
    let mut refreshing = REFRESHING.try_with(Clone::clone).unwrap_or_default();
    refreshing.push(identity(shared));
    tokio::spawn(REFRESHING.scope(refreshing, async move {
        let mut landing = landing;
        let result = refresh(&landing.shared, &launch).await;
        landing.end(result);
    }));
}

fn identity(shared: &Arc<Shared>) -> usize {
    Arc::as_ptr(shared).addr()
}

async fn refresh(shared: &Shared, launch: &Launch) -> Result<Fetched, Unavailable> {
    let timed_out = |_| shared.unavailable(UnavailableKind::TimedOut);
    let Some(store) = &shared.store else {
        let fetch = fetch(shared, launch.previous.clone(), launch.generation);
        let (credential, asked) = timeout(shared.pace.timeout, fetch)
            .await
            .map_err(timed_out)??;
        return fit(shared, credential, asked, false);
    };
    let store = &**store;
    let timed = timeout(shared.pace.timeout, with_store(shared, store, launch));
    let (guard, found) = timed.await.map_err(timed_out)??;
    let fetched = match found {
        Found::Adopted(stored) => return adopt(shared, stored, launch.generation),
        Found::Fetched(fetched) => fetched,
    };
    // With time of its own: what was fetched is not given up because the fetching took long.
    let stored = timeout(
        shared.pace.timeout,
        persist(shared, store, fetched, launch.generation),
    )
    .await;
    drop(guard);
    stored.map_err(timed_out)?
}

/// What a refresh has found out under the lock of the store.
enum Found {
    Adopted(Stored),
    Fetched(Unstored),
}

/// A credential that is not stored.
#[derive(Clone, Debug)]
pub(crate) struct Unstored {
    credential: Credential,
    asked: Moment,
    /// The revision that it follows.
    revision: u64,
    /// Whether the refresh token is another one, so that the credential must not be lost.
    rotated: bool,
}

/// Reads the store under its lock, and fetches a credential unless there is a newer one.
async fn with_store(
    shared: &Shared,
    store: &dyn ErasedStore,
    launch: &Launch,
) -> Result<(Box<dyn Send>, Found), Unavailable> {
    let broken = |error| shared.because(UnavailableKind::Store, error);
    let guard = store.lock().await.map_err(broken)?;
    let stored = store.load().await.map_err(broken)?;
    let revision = stored.as_ref().map_or(0, |stored| stored.revision);
    let unstored = shared.unstored();
    let mut previous = launch.previous.clone();
    let is_new = stored.as_ref().is_some_and(|stored| shared.is_new(stored));
    if let Some(stored) = stored {
        if is_new {
            if is_better(shared, launch, &stored.credential) {
                return Ok((guard, Found::Adopted(stored)));
            }
            // Expired, perhaps, but its refresh token is the one to go on with.
            previous = Some(stored.credential);
        } else if previous.is_none() {
            previous = Some(stored.credential);
        }
    }
    if let Some(unstored) = unstored {
        if unstored.revision == revision && !is_new {
            return Ok((guard, Found::Fetched(unstored)));
        }
    }
    if launch.only_look {
        return Err(shared.last_failure());
    }
    let spent = previous.clone();
    match fetch(shared, previous, launch.generation).await {
        Ok((credential, asked)) => {
            let rotated = spent.is_none_or(|spent| {
                credential.refresh_token().is_some()
                    && spent.refresh_token() != credential.refresh_token()
            });
            let unstored = Unstored {
                credential,
                asked,
                revision,
                rotated,
            };
            shared.keep_unstored(Some(unstored.clone()));
            Ok((guard, Found::Fetched(unstored)))
        }
        // Somebody who does not know of the lock may have refreshed, and so killed our token.
        Err(why) if why.is_dead() => match store.load().await.map_err(broken)? {
            Some(stored)
                if stored.revision != revision && is_better(shared, launch, &stored.credential) =>
            {
                Ok((guard, Found::Adopted(stored)))
            }
            _ => Err(why),
        },
        Err(why) => Err(why),
    }
}

/// Stores what was fetched, before anybody uses it.
async fn persist(
    shared: &Shared,
    store: &dyn ErasedStore,
    unstored: Unstored,
    generation: u64,
) -> Result<Fetched, Unavailable> {
    let Unstored {
        credential,
        asked,
        mut revision,
        rotated,
    } = unstored;
    loop {
        let pinned = pinned(&credential, asked);
        match store.compare_and_set(revision, pinned.clone()).await {
            Ok(Swap::Stored(revision)) => {
                shared.note_seen(Stored::new(pinned, revision));
                shared.keep_unstored(None);
                return fit(shared, credential, asked, false);
            }
            // Whoever stored it did not ask for the lock: somebody who logged in by hand.
            Ok(Swap::Changed(Some(stored))) if !is_over(shared, &stored.credential) => {
                shared.keep_unstored(None);
                return adopt(shared, stored, generation);
            }
            Ok(Swap::Changed(stored)) => {
                revision = stored.map_or(0, |stored| stored.revision);
            }
            Err(error) if rotated => return Err(shared.because(UnavailableKind::Store, error)),
            // Nothing is lost if it is not stored: the refresh token is the same.
            Err(error) => {
                shared.keep_unstored(None);
                shared.observer.store_failed(&StoreFailed {
                    name: &shared.name,
                    error: &error,
                });
                return fit(shared, credential, asked, false);
            }
        }
    }
}

async fn fetch(
    shared: &Shared,
    previous: Option<Credential>,
    generation: u64,
) -> Result<(Credential, Moment), Unavailable> {
    let asked = shared.now();
    match shared.source.fetch(previous.clone()).await {
        Ok(credential) => {
            let credential = credential.succeeding(previous.as_ref());
            shared.lock().keep(&credential, generation);
            Ok((credential, asked))
        }
        Err(error) => Err(refused(shared, error)),
    }
}

fn refused(shared: &Shared, error: FetchError) -> Unavailable {
    let kind = if error.is_dead() {
        UnavailableKind::Dead
    } else {
        UnavailableKind::Failed
    };
    let after = error.after();
    Unavailable::build(&shared.name, kind, after, Some(error.into_source()))
}

fn adopt(shared: &Shared, stored: Stored, generation: u64) -> Result<Fetched, Unavailable> {
    // Fit for use or not, its refresh token is the one to go on with.
    shared.lock().keep(&stored.credential, generation);
    shared.note_seen(stored.clone());
    fit(shared, stored.credential, shared.now(), true)
}

/// Makes the headers of a credential.
fn fit(
    shared: &Shared,
    credential: Credential,
    asked: Moment,
    adopted: bool,
) -> Result<Fetched, Unavailable> {
    let headers = shared.headers(&credential)?;
    Ok(Fetched {
        credential,
        headers,
        asked,
        adopted,
    })
}

/// Whether a stored credential serves better than what there is.
fn is_better(shared: &Shared, launch: &Launch, stored: &Credential) -> bool {
    let rejected = launch.rejected.as_ref();
    if rejected.is_some_and(|rejected| rejected.token() == stored.token())
        || is_over(shared, stored)
    {
        return false;
    }
    let state = shared.lock();
    match state.good(shared.now()) {
        // It was fetched because this one comes to its end.
        Some(held) => match (held.expiry.wall, stored.expires_at()) {
            (Some(ours), Some(theirs)) => theirs > ours,
            _ => held.credential.token() != stored.token(),
        },
        None => true,
    }
}

fn is_over(shared: &Shared, credential: &Credential) -> bool {
    let now = shared.now().wall;
    credential.expires_at().is_some_and(|end| end <= now)
}

/// The credential with its end by the wall clock, which is the only one that processes share.
pub(crate) fn pinned(credential: &Credential, asked: Moment) -> Credential {
    let by_lifetime: Option<SystemTime> = credential
        .lifetime()
        .and_then(|lifetime| asked.wall.checked_add(lifetime));
    credential.clone().pinned(by_lifetime)
}

// === impl Landing ===

impl Landing {
    fn end(&mut self, result: Result<Fetched, Unavailable>) {
        let Some(land) = self.land.take() else {
            return;
        };
        let shared = &self.shared;
        let at = shared.now();
        let mut state = shared.lock();
        let is_current = state.end(self.id);
        // One that was given up as lost and comes all the same is welcome, unless there is a newer one.
        let is_welcome = is_current || state.generation() == self.generation;
        let result = result.and_then(|fetched| {
            let Fetched {
                credential,
                headers,
                asked,
                adopted,
            } = fetched;
            if !is_welcome {
                return Err(shared.unavailable(UnavailableKind::Superseded));
            }
            let held = state.take(credential, headers, asked, at, shared.terms());
            let expired = || shared.unavailable(UnavailableKind::Expired);
            held.map(|held| (held, adopted)).ok_or_else(expired)
        });
        let mut has_died = false;
        if let (Err(why), true) = (&result, is_current) {
            has_died = state.fail(why.clone(), at, &*shared.random);
        }
        let served = state.good(at).is_some();
        let due = state.login_due(at, shared.login_notice);
        drop(state);
        // Who waits must not depend on who watches.
        land.send_replace(Some(result.clone().map(|(held, _)| held)));
        let told = catch_unwind(AssertUnwindSafe(|| {
            match &result {
                Ok((held, adopted)) => shared.observer.refreshed(&Refreshed {
                    name: &shared.name,
                    generation: held.generation,
                    cause: self.cause,
                    took: self.began.elapsed(),
                    expires_in: held.expiry.left(at),
                    adopted: *adopted,
                }),
                Err(error) => shared.observer.refresh_failed(&RefreshFailed {
                    name: &shared.name,
                    cause: self.cause,
                    error,
                    served,
                }),
            }
            shared.tell_login_due(has_died.then_some(std::time::Duration::ZERO).or(due));
        }));
        if let (Err(panic), false) = (told, std::thread::panicking()) {
            resume_unwind(panic);
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if self.land.is_some() {
            let kind = if std::thread::panicking() {
                UnavailableKind::Panicked
            } else {
                UnavailableKind::Lost
            };
            let error: BoxError = "the task of the refresh has ended".into();
            self.end(Err(self.shared.because(kind, error)));
        }
    }
}
