//! What must not be seen.

use std::fmt;

#[cfg(any(
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
use tower_outcome_core::ConfigError;
use zeroize::Zeroizing;

/// Bytes that must not be seen: a signing key, a passphrase.
///
/// `Debug` shows nothing of them, there is no `Display`, and they are overwritten when the last
/// owner lets go.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

// === impl Secret ===

impl Secret {
    /// Takes the bytes as they are; a text key is mostly used this way.
    ///
    /// A `Vec` or `String` is taken over without a copy; what was borrowed stays with its owner.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Decodes a key in base64, standard alphabet, padded or not.
    ///
    /// # Errors
    ///
    /// If it is empty or no base64. The error does not contain it.
    #[cfg(any(
        feature = "ecdsa",
        feature = "ed25519",
        feature = "hmac",
        feature = "rsa"
    ))]
    pub fn base64(text: &str) -> Result<Self, ConfigError> {
        use base64ct::{Base64, Base64Unpadded, Encoding};

        let bytes = if text.ends_with('=') {
            Base64::decode_vec(text)
        } else {
            Base64Unpadded::decode_vec(text)
        };
        let bytes = bytes.map_err(|_| rejected("base64 of the standard alphabet"))?;
        Self::new(bytes).not_empty()
    }

    /// Decodes a key in hexadecimal digits of either case.
    ///
    /// # Errors
    ///
    /// If it is empty, of odd length or not hexadecimal. The error does not contain it.
    #[cfg(any(
        feature = "ecdsa",
        feature = "ed25519",
        feature = "hmac",
        feature = "rsa"
    ))]
    pub fn hex(text: &str) -> Result<Self, ConfigError> {
        let bytes =
            base16ct::mixed::decode_vec(text).map_err(|_| rejected("pairs of hex digits"))?;
        Self::new(bytes).not_empty()
    }

    /// Takes a key that is a text. The line end of the file that it was read from is not in any.
    #[cfg(feature = "hmac")]
    pub(crate) fn text(text: &str) -> Result<Self, ConfigError> {
        if text.trim() != text || text.contains(char::is_control) {
            return Err(rejected("no line ends, and no spaces around it"));
        }
        Self::new(text).not_empty()
    }

    /// Refuses an empty key: it is what a variable that was not set turns into.
    #[cfg(any(
        feature = "ecdsa",
        feature = "ed25519",
        feature = "hmac",
        feature = "rsa"
    ))]
    pub(crate) fn not_empty(self) -> Result<Self, ConfigError> {
        if self.0.is_empty() {
            return Err(ConfigError::new("secret", Redacted("empty"), "a key"));
        }
        Ok(self)
    }

    /// Shows the bytes, to whoever signs with them.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// Stands in an error for a value that must not be seen.
pub(crate) struct Redacted(pub(crate) &'static str);

// === impl Redacted ===

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(any(
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
pub(crate) fn rejected(expected: &'static str) -> ConfigError {
    ConfigError::new("secret", Redacted("[redacted]"), expected)
}
