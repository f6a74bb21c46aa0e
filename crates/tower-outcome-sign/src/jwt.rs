//! A JSON Web Token for each request.

use std::{fmt, time::Duration};

use base64ct::{Base64UrlUnpadded, Encoding};
use http::{HeaderValue, header::AUTHORIZATION};
use tower_outcome_core::ConfigError;

use crate::{Draft, Fresh, Needs, Sign, SignError, SigningTime, Unit, Validity, host::host};

mod json;
mod key;

pub use self::key::JwtKey;

use self::json::Object;

/// Sends a JSON Web Token (RFC 7519) of its own with each request, bound to its method, host and path,
/// as a bearer in `Authorization`.
///
/// Coinbase hands out Ed25519 keys in base64, and with the feature `ecdsa` also P-256 keys in PEM will do.
///
/// ```
/// use tower_outcome_sign::{JwtKey, JwtSigner};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// # let secret = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
/// let key = JwtKey::ed25519(secret)?;
/// let signer = JwtSigner::coinbase("organizations/o/apiKeys/k", key)?;
/// # let _ = signer;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct JwtSigner {
    key: JwtKey,
    key_id: String,
    issuer: String,
    lifetime: Duration,
}

// === impl JwtSigner ===

impl JwtSigner {
    /// Coinbase's developer platform: issuer `cdp`, two minutes, a random `nonce` in the header, and the
    /// claim `uri`, which is `METHOD host/path` without the query.
    ///
    /// # Errors
    ///
    /// If the key has no name, or one with a line end.
    pub fn coinbase(key_id: impl Into<String>, key: JwtKey) -> Result<Self, ConfigError> {
        let key_id = key_id.into();
        if key_id.is_empty() {
            return Err(ConfigError::new("key_id", key_id, "the name of the key"));
        }
        if key_id.trim() != key_id || key_id.contains(char::is_control) {
            let expected = "no line ends, and no spaces around it";
            return Err(ConfigError::new("key_id", key_id, expected));
        }
        Ok(Self {
            key,
            key_id,
            issuer: "cdp".to_owned(),
            lifetime: Duration::from_secs(120),
        })
    }

    /// Changes how long a token is valid; servers have a bound of their own.
    ///
    /// # Errors
    ///
    /// If it is less than a second, the unit of tokens.
    pub fn with_lifetime(mut self, lifetime: Duration) -> Result<Self, ConfigError> {
        if lifetime < Duration::from_secs(1) {
            return Err(ConfigError::new("lifetime", lifetime, "a second or more"));
        }
        self.lifetime = lifetime;
        Ok(self)
    }

    /// The claim `exp`: so many whole seconds after `nbf`.
    fn end(&self, fresh: &Fresh) -> u64 {
        let now = fresh.time().as_secs();
        now.saturating_add(self.lifetime.as_secs())
    }

    fn token(&self, draft: &Draft, fresh: &Fresh) -> Result<String, SignError> {
        let target = format!("{} {}{}", draft.method(), host(draft)?, draft.uri().path());
        let (now, end) = (fresh.time().as_secs(), self.end(fresh));
        // Of a time that cannot be read back nobody knows when it comes.
        SigningTime::from_unit(end, Unit::Seconds)?;
        let header = Object::new()
            .text("alg", self.key.algorithm())
            .text("typ", "JWT")
            .text("kid", &self.key_id)
            .text("nonce", &fresh.token()?.to_hex())
            .finish();
        let claims = Object::new()
            .text("sub", &self.key_id)
            .text("iss", &self.issuer)
            .number("nbf", now)
            .number("exp", end)
            .text("uri", &target)
            .finish();
        let mut token = Base64UrlUnpadded::encode_string(header.as_bytes());
        token.push('.');
        token.push_str(&Base64UrlUnpadded::encode_string(claims.as_bytes()));
        let signature = self.key.sign(token.as_bytes());
        token.push('.');
        token.push_str(&Base64UrlUnpadded::encode_string(&signature));
        Ok(token)
    }
}

impl Sign for JwtSigner {
    fn needs(&self) -> Needs {
        Needs::HEAD.and_token()
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        let token = self.token(draft, fresh)?;
        let value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| SignError::encoding("authorization"))?;
        draft.set_secret_header(AUTHORIZATION, value)?;
        let end = SigningTime::from_unit(self.end(fresh), Unit::Seconds)?;
        Ok(Validity::until(end))
    }
}

/// Shows the algorithm, and nothing of the key.
impl fmt::Debug for JwtSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtSigner")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
