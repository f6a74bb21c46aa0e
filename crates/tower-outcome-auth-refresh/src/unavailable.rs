//! Why there is no credential.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use tower_outcome_core::BoxError;

/// Says that there is no credential to send a request with. Everybody who waited for the same refresh
/// gets the same.
///
/// It is the cause of a [`Failure`](tower_outcome_core::Failure). Nothing that a token server said
/// looks like an answer of the API.
#[derive(Clone, Debug)]
pub struct Unavailable(Arc<Inner>);

/// Why there is no credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnavailableKind {
    /// The source failed, and may do better later.
    Failed,
    /// The source said that only a human can help.
    Dead,
    /// The refresh took longer than it may.
    TimedOut,
    /// The call's own deadline passed while it waited for the refresh, which goes on.
    Deadline,
    /// No refresh may start yet ([`min_interval`](crate::CredentialsBuilder::min_interval)), and the
    /// deadline of the call comes before it may.
    Paused,
    /// The source returned a credential that had expired already.
    Expired,
    /// The credential expired while the request waited below; an
    /// [`ExpiryGuard`](crate::ExpiryGuard) has seen it.
    ExpiredBelow,
    /// The source returned a credential that cannot be put on a request.
    Unattachable,
    /// The store could not be read, locked or written.
    Store,
    /// The source panicked.
    Panicked,
    /// The runtime that the refresh ran on is gone or stands still.
    Lost,
    /// There was a newer credential when the refresh ended: somebody had logged in by hand.
    Superseded,
    /// The request is part of a refresh, and would have waited for itself.
    Recursive,
    /// There is no tokio runtime to refresh on.
    NoRuntime,
}

#[derive(Debug)]
struct Inner {
    name: Arc<str>,
    kind: UnavailableKind,
    after: Option<Duration>,
    source: Option<BoxError>,
}

// === impl Unavailable ===

impl Unavailable {
    pub(crate) fn new(name: &Arc<str>, kind: UnavailableKind) -> Self {
        Self::build(name, kind, None, None)
    }

    pub(crate) fn because(name: &Arc<str>, kind: UnavailableKind, source: BoxError) -> Self {
        Self::build(name, kind, None, Some(source))
    }

    pub(crate) fn build(
        name: &Arc<str>,
        kind: UnavailableKind,
        after: Option<Duration>,
        source: Option<BoxError>,
    ) -> Self {
        Self(Arc::new(Inner {
            name: Arc::clone(name),
            kind,
            after,
            source,
        }))
    }

    /// Returns the name of the credentials.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns why.
    #[must_use]
    pub fn kind(&self) -> UnavailableKind {
        self.0.kind
    }

    /// Returns whether only a human can help.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.0.kind == UnavailableKind::Dead
    }

    /// Returns how long the token server asked to be left alone.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        self.0.after
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.0.kind.sentence();
        write!(f, "no credential for {:?}: {what}", self.0.name)
    }
}

impl Error for Unavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

// === impl UnavailableKind ===

impl UnavailableKind {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::TimedOut => "timed_out",
            Self::Deadline => "deadline",
            Self::Paused => "paused",
            Self::Expired => "expired",
            Self::ExpiredBelow => "expired_below",
            Self::Unattachable => "unattachable",
            Self::Store => "store",
            Self::Panicked => "panicked",
            Self::Lost => "lost",
            Self::Superseded => "superseded",
            Self::Recursive => "recursive",
            Self::NoRuntime => "no_runtime",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Failed => "the source failed",
            Self::Dead => "a human has to log in",
            Self::TimedOut => "the refresh ran out of time",
            Self::Deadline => "the deadline of the call has passed",
            Self::Paused => "the last refresh was just now, and the call cannot wait for the next",
            Self::Expired => "what the source returned had expired already",
            Self::ExpiredBelow => "it expired while the request waited",
            Self::Unattachable => "what the source returned cannot be put on a request",
            Self::Store => "the store cannot be used",
            Self::Panicked => "the source panicked",
            Self::Lost => "the runtime of the refresh is gone or stands still",
            Self::Superseded => "a newer credential came in between",
            Self::Recursive => "the refresh went through its own layer",
            Self::NoRuntime => "there is no tokio runtime to refresh on",
        }
    }
}
