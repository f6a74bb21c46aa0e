//! Setting credentials up.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::watch;
use tower_outcome_core::{Clock, ConfigError, Origin, Random, SplitMix64, SystemClock};

use crate::{
    Attach, Bearer, Credentials, Observer, TokenStore, Windows,
    credentials::Shared,
    flight::{Pace, State},
    observer::Nobody,
    source::ErasedSource,
    store::ErasedStore,
};

/// Sets [`Credentials`] up; start with [`Credentials::builder`].
///
/// | setting | default | why |
/// |---|---|---|
/// | [`origin`](Self::origin) or [`any_origin`](Self::any_origin) | has to be said | a credential that is sent to somebody else is lost |
/// | [`attach`](Self::attach) | [`Bearer`] | what most APIs take |
/// | [`timeout`](Self::timeout) | 15 s | longer than a slow log-in, shorter than a call's usual 30 s |
/// | [`min_interval`](Self::min_interval) | 1 s | no loop is faster than that, whatever the server says |
/// | [`windows`](Self::windows) | [`Windows::by_lifetime`] | |
/// | [`max_age`](Self::max_age) | none | an age is refreshed by, and no end of anything |
/// | [`login_notice`](Self::login_notice) | 24 h | a working day for a human |
/// | [`store`](Self::store) | none: this process only | |
/// | [`observer`](Self::observer) | none | |
#[must_use]
pub struct CredentialsBuilder {
    name: Arc<str>,
    source: Box<dyn ErasedSource>,
    attach: Box<dyn Attach>,
    origins: Vec<String>,
    any_origin: bool,
    store: Option<Box<dyn ErasedStore>>,
    timeout: Duration,
    min_interval: Duration,
    windows: Windows,
    max_age: Option<Duration>,
    login_notice: Duration,
    observer: Box<dyn Observer>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

// === impl CredentialsBuilder ===

impl CredentialsBuilder {
    pub(crate) fn new(name: Arc<str>, source: Box<dyn ErasedSource>) -> Self {
        Self {
            name,
            source,
            attach: Box::new(Bearer::new()),
            origins: Vec::new(),
            any_origin: false,
            store: None,
            timeout: Duration::from_secs(15),
            min_interval: Duration::from_secs(1),
            windows: Windows::by_lifetime(),
            max_age: None,
            login_notice: Duration::from_secs(24 * 60 * 60),
            observer: Box::new(Nobody),
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SplitMix64::unseeded()),
        }
    }

    /// Adds an origin to which the credential belongs, such as `https://api.venue.example`. Requests
    /// to others pass without it. A request whose target has no authority goes where its `Host` header
    /// says; without one it counts as one of these, because a client that takes it is bound to one peer.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sends the credential wherever requests go: for a client that cannot reach anybody else.
    pub fn any_origin(mut self) -> Self {
        self.any_origin = true;
        self
    }

    /// Sets how the credential is put on a request.
    pub fn attach(mut self, attach: impl Attach) -> Self {
        self.attach = Box::new(attach);
        self
    }

    /// Sets how long a refresh may take, the wait for a store's lock included. Storing what was fetched
    /// may take as long once more.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets the least time from the start of one refresh to that of the next. It doubles, up to a
    /// minute, with each refresh that does not help those who were rejected: more log-ins would only lock
    /// the account.
    pub fn min_interval(mut self, interval: Duration) -> Self {
        self.min_interval = interval;
        self
    }

    /// Sets how long before its end a credential is refreshed.
    pub fn windows(mut self, windows: Windows) -> Self {
        self.windows = windows;
        self
    }

    /// Refreshes a credential in the background once it is that old, whether it has an end or not.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Sets how long before a log-in ends ([`login_until`](crate::Credential::with_login_until))
    /// [`Observer::login_due`] tells. It is told by the first call or refresh after that.
    pub fn login_notice(mut self, ahead: Duration) -> Self {
        self.login_notice = ahead;
        self
    }

    /// Keeps the credential where other processes find it.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Some(Box::new(store));
        self
    }

    /// Has somebody watch.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Sets the wall clock: by default the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of jitter, which is seeded for tests.
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.random = random;
        self
    }

    /// Builds the credentials. Nothing is fetched before the first request.
    ///
    /// # Errors
    ///
    /// If no origin is named, one is not an origin, or there are some beside `any_origin`; if `timeout`
    /// or `min_interval` is zero; if `min_interval` is above `max_age` or 10 minutes; or if
    /// `windows.mandatory` is above `windows.advisory`.
    pub fn build(self) -> Result<Credentials, ConfigError> {
        const LONGEST_INTERVAL: Duration = Duration::from_secs(600);
        let origins = self.origins.iter().map(|origin| Origin::parse(origin));
        let origins = origins.collect::<Result<Box<[Origin]>, _>>()?;
        for (origin, written) in origins.iter().zip(&self.origins) {
            if origin.scheme().is_none() {
                let expected = "with a scheme, such as https://api.venue.example";
                return Err(ConfigError::new("origin", Origin::shown(written), expected));
            }
        }
        if origins.is_empty() != self.any_origin {
            let expected = "at least one, or any_origin() and none";
            return Err(ConfigError::new("origin", self.shown(), expected));
        }
        for (field, span) in [
            ("timeout", self.timeout),
            ("min_interval", self.min_interval),
        ] {
            if span.is_zero() {
                return Err(ConfigError::new(field, span, "more than zero"));
            }
        }
        if self.min_interval > LONGEST_INTERVAL {
            let expected = "at most 10 minutes";
            return Err(ConfigError::new(
                "min_interval",
                self.min_interval,
                expected,
            ));
        }
        if self.max_age.is_some_and(|age| age < self.min_interval) {
            let expected = "at least min_interval";
            return Err(ConfigError::new("max_age", self.max_age, expected));
        }
        self.windows.check()?;
        Ok(Credentials(Arc::new(Shared {
            name: self.name,
            state: Mutex::new(State::default()),
            source: self.source,
            attach: self.attach,
            origins,
            pace: Pace {
                min_interval: self.min_interval,
                timeout: self.timeout,
                has_store: self.store.is_some(),
            },
            store: self.store,
            seen: Mutex::new(None),
            unstored: Mutex::new(None),
            memory: Mutex::default(),
            news: watch::Sender::new(()),
            windows: self.windows,
            max_age: self.max_age,
            login_notice: self.login_notice,
            observer: self.observer,
            clock: self.clock,
            random: self.random,
        })))
    }
}

impl CredentialsBuilder {
    /// The origins, without users that they may name.
    fn shown(&self) -> Vec<impl fmt::Debug + '_> {
        self.origins
            .iter()
            .map(|origin| Origin::shown(origin))
            .collect()
    }
}

impl fmt::Debug for CredentialsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialsBuilder")
            .field("name", &self.name)
            .field("origins", &self.shown())
            .field("any_origin", &self.any_origin)
            .field("timeout", &self.timeout)
            .field("min_interval", &self.min_interval)
            .field("windows", &self.windows)
            .field("max_age", &self.max_age)
            .finish_non_exhaustive()
    }
}
