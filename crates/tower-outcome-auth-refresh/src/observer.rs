//! What credentials tell those who watch them.

use std::{fmt, time::Duration};

use crate::{StoreError, Unavailable};

/// Watches credentials, for metrics and logs.
///
/// Each method does nothing by default. They are called outside of all locks, by whoever caused the
/// event, and should not take long. No secret is in any of them.
pub trait Observer: Send + Sync {
    /// A new credential is in use.
    fn refreshed(&self, event: &Refreshed<'_>) {
        let _ = event;
    }

    /// A refresh has failed.
    fn refresh_failed(&self, event: &RefreshFailed<'_>) {
        let _ = event;
    }

    /// A call had to wait for a credential.
    fn waited(&self, event: &Waited<'_>) {
        let _ = event;
    }

    /// A request goes without the credential, because it goes to somebody to whom it does not belong. If
    /// that is a surprise, the [origins](crate::CredentialsBuilder::origin) are written otherwise than
    /// the targets of the requests.
    fn passed(&self, event: &Passed<'_>) {
        let _ = event;
    }

    /// The server rejected a credential.
    fn rejected(&self, event: &Rejected<'_>) {
        let _ = event;
    }

    /// A request is sent once more, with another credential.
    fn replayed(&self, event: &Replayed<'_>) {
        let _ = event;
    }

    /// A credential could not be stored, and is used all the same: its refresh token is the one that is
    /// stored already.
    fn store_failed(&self, event: &StoreFailed<'_>) {
        let _ = event;
    }

    /// A human has to log in, soon or at once. Told once for each
    /// [end](crate::Credential::with_login_until), ahead of it, and when the source says that only a
    /// human can help.
    fn login_due(&self, event: &LoginDue<'_>) {
        let _ = event;
    }
}

/// Why a refresh was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// There was no credential.
    Missing,
    /// The one there was had its refresh due, and was still good.
    Due,
    /// The one there was had expired.
    Expired,
    /// The server had rejected the one there was.
    Rejected,
    /// A human [logged in](crate::Credentials::log_in).
    LoggedIn,
}

/// A new credential is in use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Refreshed<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// The how-manieth credential it is, from 1.
    pub generation: u64,
    /// Why it was fetched.
    pub cause: Cause,
    /// How long it took.
    pub took: Duration,
    /// How long it is good, if it has an end.
    pub expires_in: Option<Duration>,
    /// Whether it was found in the store, where somebody else had put it.
    pub adopted: bool,
}

/// A refresh has failed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RefreshFailed<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// Why it was started.
    pub cause: Cause,
    /// Why it failed.
    pub error: &'a Unavailable,
    /// Whether there still is a good credential.
    pub served: bool,
}

/// A call had to wait for a credential.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Waited<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// How long.
    pub waited: Duration,
    /// Whether it got one.
    pub served: bool,
}

/// A request goes without the credential, because it goes to somebody to whom it does not belong.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Passed<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// The host to which it goes, if its target names it.
    pub host: Option<&'a str>,
}

/// The server rejected a credential.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rejected<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// The generation of the credential.
    pub generation: u64,
    /// Whether this was the second credential that was rejected in the same call, which is then
    /// answered with it.
    pub again: bool,
}

/// A request is sent once more, with another credential.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Replayed<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// The generation that was rejected.
    pub rejected: u64,
    /// The generation that it is sent with.
    pub generation: u64,
}

/// A credential could not be stored, and is used all the same.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StoreFailed<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// Why.
    pub error: &'a StoreError,
}

/// A human has to log in, soon or at once.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LoginDue<'a> {
    /// The name of the credentials.
    pub name: &'a str,
    /// How long there is, at most; zero if the source says that it is too late.
    pub within: Duration,
}

/// Nobody watches.
#[derive(Debug)]
pub(crate) struct Nobody;

// === impl Observer ===

impl Observer for Nobody {}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

// === impl Cause ===

impl Cause {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Due => "due",
            Self::Expired => "expired",
            Self::Rejected => "rejected",
            Self::LoggedIn => "logged_in",
        }
    }
}
