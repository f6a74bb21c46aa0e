//! Who signs: keys, for ever or for a while.

use std::{
    error::Error,
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::SystemTime,
};

use tower_outcome_core::ConfigError;
use zeroize::Zeroizing;

use crate::{SignError, SigningTime, Validity, secret::Redacted};

/// The keys of an AWS principal, for ever or with a session token for a while.
///
/// It is a snapshot: key, token and expiry belong together and never change, and clones share them.
/// `Debug` shows none of it. The keys are overwritten when the last owner lets go.
#[derive(Clone)]
pub struct AwsCredentials(Arc<Parts>);

#[derive(Clone)]
struct Parts {
    key_id: Zeroizing<String>,
    secret: Zeroizing<String>,
    token: Option<Zeroizing<String>>,
    expires: Option<SystemTime>,
}

/// Where an [`AwsSigner`](crate::AwsSigner) has its credentials from, asked once for each attempt.
///
/// Credentials that stay the same are a source, and so are closures that return what is current, and
/// [`SharedAwsCredentials`]. A source answers at once, with what somebody else keeps fresh: it is asked
/// in the future of the request, when everything that waits is over.
pub trait AwsCredentialSource {
    /// Returns the credentials for one attempt.
    ///
    /// # Errors
    ///
    /// If there are none: [`SignError::unavailable`] where there may be some later.
    fn current(&self) -> Result<AwsCredentials, SignError>;
}

/// Credentials that are replaced while requests are signed with them.
///
/// Clones share. An attempt that has begun keeps the snapshot with which it began; the next one has
/// what was put here last.
#[derive(Clone, Debug)]
pub struct SharedAwsCredentials(Arc<RwLock<AwsCredentials>>);

/// The credentials have expired, so AWS would refuse what is signed with them.
#[derive(Debug)]
struct Expired(());

// === impl AwsCredentials ===

impl AwsCredentials {
    /// Takes the access key's identifier and its secret.
    ///
    /// # Errors
    ///
    /// If one of them is empty or has a character that keys do not have, such as the line end of the
    /// file that it was read from. The error does not contain it.
    pub fn new(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        printable("key_id", key_id)?;
        // It stands before a slash, and would end there.
        if key_id.contains('/') {
            return Err(ConfigError::new(
                "key_id",
                Redacted("[redacted]"),
                "no slash",
            ));
        }
        printable("secret", secret)?;
        Ok(Self(Arc::new(Parts {
            key_id: Zeroizing::new(key_id.to_owned()),
            secret: Zeroizing::new(secret.to_owned()),
            token: None,
            expires: None,
        })))
    }

    /// Adds the token of a session.
    ///
    /// # Errors
    ///
    /// If it is empty or has a character that tokens do not have. The error does not contain it.
    pub fn with_session_token(mut self, token: &str) -> Result<Self, ConfigError> {
        printable("session_token", token)?;
        Arc::make_mut(&mut self.0).token = Some(Zeroizing::new(token.to_owned()));
        Ok(self)
    }

    /// Sets when they expire, on the clock of the server. Default: never.
    ///
    /// No signature is [valid](Validity) for longer, and from then on nothing is signed.
    #[must_use]
    pub fn expiring_at(mut self, expires: SystemTime) -> Self {
        Arc::make_mut(&mut self.0).expires = Some(expires);
        self
    }

    /// Returns when they expire, or `None` if they do not.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.0.expires
    }

    pub(super) fn key_id(&self) -> &str {
        &self.0.key_id
    }

    pub(super) fn secret(&self) -> &str {
        &self.0.secret
    }

    pub(super) fn session_token(&self) -> Option<&str> {
        self.0.token.as_ref().map(|token| token.as_str())
    }

    /// Cuts off what is valid for longer than they are.
    pub(super) fn bound(
        &self,
        time: SigningTime,
        validity: SigningTime,
    ) -> Result<Validity, SignError> {
        let Some(expires) = self.0.expires else {
            return Ok(Validity::until(validity));
        };
        if expires <= time.to_system_time() {
            return Err(SignError::unavailable(Expired(())));
        }
        // After the last time that there is, it is as if they did not expire.
        let expires = SigningTime::new(expires).unwrap_or(validity);
        Ok(Validity::until(validity.min(expires)))
    }
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsCredentials([redacted])")
    }
}

impl AwsCredentialSource for AwsCredentials {
    fn current(&self) -> Result<AwsCredentials, SignError> {
        Ok(self.clone())
    }
}

impl<F> AwsCredentialSource for F
where
    F: Fn() -> Result<AwsCredentials, SignError>,
{
    fn current(&self) -> Result<AwsCredentials, SignError> {
        self()
    }
}

// === impl SharedAwsCredentials ===

impl SharedAwsCredentials {
    /// Starts with these.
    #[must_use]
    pub fn new(credentials: AwsCredentials) -> Self {
        Self(Arc::new(RwLock::new(credentials)))
    }

    /// Replaces them, for every attempt that is signed from now on.
    pub fn replace(&self, credentials: AwsCredentials) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = credentials;
    }
}

impl AwsCredentialSource for SharedAwsCredentials {
    fn current(&self) -> Result<AwsCredentials, SignError> {
        Ok(self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone())
    }
}

// === impl Expired ===

impl fmt::Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the credentials have expired")
    }
}

impl Error for Expired {}

fn printable(field: &'static str, text: &str) -> Result<(), ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::new(field, Redacted("empty"), "a key"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let expected = "printable ASCII without spaces or line ends";
        return Err(ConfigError::new(field, Redacted("[redacted]"), expected));
    }
    Ok(())
}
