//! Where credentials come from.

use std::{error::Error, fmt, pin::Pin, time::Duration};

use tower_outcome_core::BoxError;

use crate::Credential;

/// Fetches a credential: logs in, or spends a refresh token.
///
/// It runs in a task of its own, at most once at a time for each [`Credentials`](crate::Credentials)
/// and for everybody who waits. It must not go through the layer that it serves: use a client of its
/// own.
///
/// Closures work: `|previous: Option<Credential>| async { … }`.
pub trait TokenSource: Send + Sync + 'static {
    /// Fetches a credential, given the one before: the refresh token is there, and whatever else it
    /// brought. `None` means that there was none yet, or that a store has lost it.
    ///
    /// # Errors
    ///
    /// [Transient](FetchError::transient) where asking again later may help, [dead](FetchError::dead)
    /// where only a human can.
    ///
    /// # Cancellation
    ///
    /// The future is dropped when the refresh runs out of its own time, and when the runtime goes
    /// away; never because a caller does.
    fn fetch(
        &self,
        previous: Option<Credential>,
    ) -> impl Future<Output = Result<Credential, FetchError>> + Send;
}

/// Says why no credential could be fetched, and whether asking again can help.
#[derive(Debug)]
pub struct FetchError {
    dead: bool,
    after: Option<Duration>,
    source: BoxError,
}

/// The same without a type of its own, so that layers need not know which source they have.
pub(crate) trait ErasedSource: Send + Sync {
    fn fetch(&self, previous: Option<Credential>) -> Fetching<'_>;
}

pub(crate) type Fetching<'a> =
    Pin<Box<dyn Future<Output = Result<Credential, FetchError>> + Send + 'a>>;

// === impl TokenSource ===

impl<F, Fut> TokenSource for F
where
    F: Fn(Option<Credential>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Credential, FetchError>> + Send,
{
    fn fetch(
        &self,
        previous: Option<Credential>,
    ) -> impl Future<Output = Result<Credential, FetchError>> + Send {
        self(previous)
    }
}

impl<T: TokenSource> ErasedSource for T {
    fn fetch(&self, previous: Option<Credential>) -> Fetching<'_> {
        Box::pin(TokenSource::fetch(self, previous))
    }
}

// === impl FetchError ===

impl FetchError {
    /// Creates the error of a source that may do better later: the network is down, the token server
    /// is busy, a page of HTML came in the place of an answer. When in doubt it is this one; nothing is
    /// given up.
    #[must_use]
    pub fn transient(source: impl Into<BoxError>) -> Self {
        Self {
            dead: false,
            after: None,
            source: source.into(),
        }
    }

    /// Creates the error of a source that cannot do better until a human acts: `invalid_grant`, a
    /// wrong password. It is not asked again, because more bad log-ins lock the account.
    #[must_use]
    pub fn dead(source: impl Into<BoxError>) -> Self {
        Self {
            dead: true,
            after: None,
            source: source.into(),
        }
    }

    /// Adds how long the token server asked to be left alone; more than ten minutes counts as ten.
    #[must_use]
    pub const fn with_after(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    /// Returns whether only a human can help.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        self.dead
    }

    /// Returns how long the token server asked to be left alone.
    #[must_use]
    pub const fn after(&self) -> Option<Duration> {
        self.after
    }

    pub(crate) fn into_source(self) -> BoxError {
        self.source
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.dead {
            "no credential until a human acts"
        } else {
            "no credential for now"
        })
    }
}

impl Error for FetchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
