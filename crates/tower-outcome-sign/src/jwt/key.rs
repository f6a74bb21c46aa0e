//! The keys of tokens.

use std::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey};
use tower_outcome_core::ConfigError;

use crate::Secret;
#[cfg(feature = "ecdsa")]
use crate::template::ecdsa;

/// A key that signs tokens: EdDSA with Ed25519 (RFC 8037), or with the feature `ecdsa` ES256, which is
/// ECDSA with P-256 and SHA-256 (RFC 7518, section 3.4).
///
/// `Debug` shows the algorithm. Keys are overwritten when they are dropped.
#[derive(Clone)]
pub struct JwtKey(Kind);

#[derive(Clone)]
enum Kind {
    EdDsa(Box<SigningKey>),
    #[cfg(feature = "ecdsa")]
    Es256(Box<p256::ecdsa::SigningKey>),
}

// === impl JwtKey ===

impl JwtKey {
    /// Reads an Ed25519 key from base64: a seed of 32 bytes, or with its public half 64.
    ///
    /// # Errors
    ///
    /// If it is none, or the public half is that of another seed.
    pub fn ed25519(base64: &str) -> Result<Self, ConfigError> {
        let secret = Secret::base64(base64)?;
        let key = crate::template::ed25519(&secret)?;
        Ok(Self(Kind::EdDsa(Box::new(key))))
    }

    /// Reads a P-256 key from a PEM of SEC 1 ("EC PRIVATE KEY", as Coinbase hands it out) or PKCS#8
    /// ("PRIVATE KEY"). It signs with ES256, and the same whenever the same is signed (RFC 6979).
    ///
    /// # Errors
    ///
    /// If it is none. A PEM that has been through a shell or a JSON file often has a backslash and an n
    /// where its line breaks were; the error says so.
    #[cfg(feature = "ecdsa")]
    pub fn es256_pem(pem: &str) -> Result<Self, ConfigError> {
        ecdsa::private(pem).map(|key| Self(Kind::Es256(Box::new(key))))
    }

    /// Returns the algorithm, by its name in tokens.
    #[must_use]
    pub const fn algorithm(&self) -> &'static str {
        match &self.0 {
            Kind::EdDsa(_) => "EdDSA",
            #[cfg(feature = "ecdsa")]
            Kind::Es256(_) => "ES256",
        }
    }

    /// Signs the first two parts of a token, and the dot between them (RFC 7515, section 5.1).
    #[must_use]
    pub fn sign(&self, input: &[u8]) -> Vec<u8> {
        match &self.0 {
            Kind::EdDsa(key) => key.sign(input).to_bytes().to_vec(),
            #[cfg(feature = "ecdsa")]
            Kind::Es256(key) => ecdsa::sign(key, input),
        }
    }

    /// Returns whether a signature is that of the first two parts of a token.
    #[must_use]
    pub fn verify(&self, input: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Kind::EdDsa(key) => {
                let signature = Signature::from_slice(signature);
                signature.is_ok_and(|signature| {
                    let key = key.verifying_key();
                    key.verify_strict(input, &signature).is_ok()
                })
            }
            #[cfg(feature = "ecdsa")]
            Kind::Es256(key) => ecdsa::verify(key.verifying_key(), input, signature),
        }
    }
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JwtKey({}, [redacted])", self.algorithm())
    }
}
