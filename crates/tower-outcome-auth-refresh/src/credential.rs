//! What proves who is calling.

use std::time::{Duration, SystemTime};

use crate::Secret;

/// What a [`TokenSource`](crate::TokenSource) returns: a secret, and how long it is good.
///
/// A token is all that is needed. Whatever else belongs to it goes along: named fields (a user name,
/// an access key id), a refresh token, a lifetime. Secrets are redacted in `Debug` and wiped when
/// dropped.
///
/// ```
/// use std::time::Duration;
/// use tower_outcome_auth_refresh::Credential;
///
/// let session = Credential::new("7f3c").with_field("username", "DM123");
/// let token = Credential::new("eyJhbGci").with_lifetime(Duration::from_secs(1800));
/// assert!(!format!("{session:?} {token:?}").contains("7f3c"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    token: Secret,
    fields: Vec<(Box<str>, Secret)>,
    refresh_token: Option<Secret>,
    lifetime: Option<Duration>,
    expires_at: Option<SystemTime>,
    login_until: Option<SystemTime>,
}

// === impl Credential ===

impl Credential {
    /// Creates a credential of which nothing is known but its token. It has no expiry, and so is
    /// never refreshed before the server rejects it.
    #[must_use]
    pub fn new(token: impl Into<Secret>) -> Self {
        Self {
            token: token.into(),
            fields: Vec::new(),
            refresh_token: None,
            lifetime: None,
            expires_at: None,
            login_until: None,
        }
    }

    /// Adds a named field, or replaces the one of that name.
    #[must_use]
    pub fn with_field(mut self, name: impl Into<Box<str>>, value: impl Into<Secret>) -> Self {
        let name = name.into();
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, value.into()));
        self
    }

    /// Adds what the next credential is fetched with. Where an answer has none, the old one is kept
    /// (RFC 6749, section 6).
    #[must_use]
    pub fn with_refresh_token(mut self, token: impl Into<Secret>) -> Self {
        self.refresh_token = Some(token.into());
        self
    }

    /// Sets how long it is good, from when it was asked for: `expires_in` in OAuth 2.0.
    #[must_use]
    pub const fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Sets until when it is good by the wall clock. With a lifetime as well, the earlier end counts.
    #[must_use]
    pub const fn with_expires_at(mut self, instant: SystemTime) -> Self {
        self.expires_at = Some(instant);
        self
    }

    /// Sets the instant after which no refresh helps and a human has to log in, however much the
    /// credential was used: seven days after the log-in at some brokers. Where an answer has none, the
    /// old one is kept.
    #[must_use]
    pub const fn with_login_until(mut self, instant: SystemTime) -> Self {
        self.login_until = Some(instant);
        self
    }

    /// Returns the token.
    #[must_use]
    pub const fn token(&self) -> &Secret {
        &self.token
    }

    /// Returns the field of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Secret> {
        let mut fields = self.fields.iter();
        fields.find_map(|(known, value)| (**known == *name).then_some(value))
    }

    /// Returns the named fields, in the order in which they were added.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the refresh token.
    #[must_use]
    pub const fn refresh_token(&self) -> Option<&Secret> {
        self.refresh_token.as_ref()
    }

    /// Returns the lifetime that was set.
    #[must_use]
    pub const fn lifetime(&self) -> Option<Duration> {
        self.lifetime
    }

    /// Returns the end by the wall clock that was set.
    #[must_use]
    pub const fn expires_at(&self) -> Option<SystemTime> {
        self.expires_at
    }

    /// Returns the instant after which a human has to log in.
    #[must_use]
    pub const fn login_until(&self) -> Option<SystemTime> {
        self.login_until
    }

    /// Whether a server could not tell it from another one.
    pub(crate) fn is_as_good_as(&self, other: &Self) -> bool {
        self.token == other.token && self.fields == other.fields
    }

    /// Puts the end on the wall clock, where other processes can read it.
    #[must_use]
    pub(crate) fn pinned(mut self, by_lifetime: Option<SystemTime>) -> Self {
        self.expires_at = match (self.expires_at, by_lifetime) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.lifetime = None;
        self
    }

    /// Takes over what an answer leaves out because it has not changed.
    #[must_use]
    pub(crate) fn succeeding(mut self, previous: Option<&Self>) -> Self {
        if let Some(previous) = previous {
            if self.refresh_token.is_none() {
                self.refresh_token.clone_from(&previous.refresh_token);
            }
            self.login_until = self.login_until.or(previous.login_until);
        }
        self
    }
}
