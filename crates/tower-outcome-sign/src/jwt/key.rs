//! The keys of tokens.

use std::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey};
use tower_outcome_core::ConfigError;

use crate::Secret;

/// A key that signs tokens: EdDSA with Ed25519 (RFC 8037).
///
/// `Debug` shows the algorithm. Keys are overwritten when they are dropped.
#[derive(Clone)]
pub struct JwtKey(Box<SigningKey>);

// === impl JwtKey ===

impl JwtKey {
    /// Reads an Ed25519 key from base64: a seed of 32 bytes, or with its public half 64.
    ///
    /// # Errors
    ///
    /// If it is none, or the public half is that of another seed.
    pub fn ed25519(base64: &str) -> Result<Self, ConfigError> {
        let secret = Secret::base64(base64)?;
        Ok(Self(Box::new(crate::template::ed25519(&secret)?)))
    }

    /// Returns the algorithm, by its name in tokens.
    #[must_use]
    pub const fn algorithm(&self) -> &'static str {
        "EdDSA"
    }

    /// Signs the first two parts of a token, and the dot between them (RFC 7515, section 5.1).
    #[must_use]
    pub fn sign(&self, input: &[u8]) -> Vec<u8> {
        self.0.sign(input).to_bytes().to_vec()
    }

    /// Returns whether a signature is that of the first two parts of a token.
    #[must_use]
    pub fn verify(&self, input: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        signature.is_ok_and(|signature| {
            let key = self.0.verifying_key();
            key.verify_strict(input, &signature).is_ok()
        })
    }
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JwtKey({}, [redacted])", self.algorithm())
    }
}
