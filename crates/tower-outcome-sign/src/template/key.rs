//! The keys of templates.

use std::fmt;

#[cfg(feature = "hmac")]
use hmac::{Hmac, KeyInit, Mac};
#[cfg(feature = "hmac")]
use sha1::Sha1;
#[cfg(feature = "hmac")]
use sha2::{Sha256, Sha384, Sha512};
#[cfg(any(feature = "ed25519", feature = "hmac"))]
use tower_outcome_core::ConfigError;

use super::{Part, eval::Eval};
#[cfg(any(feature = "ed25519", feature = "hmac"))]
use crate::Secret;
use crate::{Draft, SignError};

#[cfg(feature = "ecdsa")]
pub(crate) mod ecdsa;
#[cfg(feature = "rsa")]
mod rsa;

/// A key and what is done with it.
///
/// `Debug` shows the algorithm. Keys are overwritten when they are dropped, but for those of RSA: the
/// crate that signs with them leaves what it made of them to the allocator.
#[derive(Clone)]
pub struct Key(Kind);

#[derive(Clone)]
enum Kind {
    #[cfg(feature = "hmac")]
    HmacSha1(Hmac<Sha1>),
    #[cfg(feature = "hmac")]
    HmacSha256(Hmac<Sha256>),
    #[cfg(feature = "hmac")]
    HmacSha384(Hmac<Sha384>),
    #[cfg(feature = "hmac")]
    HmacSha512(Hmac<Sha512>),
    #[cfg(feature = "ed25519")]
    Ed25519(Box<ed25519_dalek::SigningKey>),
    #[cfg(feature = "ed25519")]
    Ed25519Public(Box<ed25519_dalek::VerifyingKey>),
    #[cfg(feature = "ecdsa")]
    P256(Box<p256::ecdsa::SigningKey>),
    #[cfg(feature = "ecdsa")]
    P256Public(Box<p256::ecdsa::VerifyingKey>),
    #[cfg(feature = "rsa")]
    Rsa(rsa::PrivateKey),
    #[cfg(feature = "rsa")]
    RsaPublic(rsa::PublicKey),
}

// === impl Key ===

#[cfg(feature = "hmac")]
impl Key {
    /// Makes a key for HMAC with SHA-1 (RFC 2104), which some old webhooks use.
    ///
    /// # Errors
    ///
    /// If the secret is empty.
    pub fn hmac_sha1(secret: Secret) -> Result<Self, ConfigError> {
        keyed(secret).map(|mac| Self(Kind::HmacSha1(mac)))
    }

    /// Makes a key for HMAC with SHA-256.
    ///
    /// # Errors
    ///
    /// If the secret is empty.
    pub fn hmac_sha256(secret: Secret) -> Result<Self, ConfigError> {
        keyed(secret).map(|mac| Self(Kind::HmacSha256(mac)))
    }

    /// Makes a key for HMAC with SHA-384.
    ///
    /// # Errors
    ///
    /// If the secret is empty.
    pub fn hmac_sha384(secret: Secret) -> Result<Self, ConfigError> {
        keyed(secret).map(|mac| Self(Kind::HmacSha384(mac)))
    }

    /// Makes a key for HMAC with SHA-512.
    ///
    /// # Errors
    ///
    /// If the secret is empty.
    pub fn hmac_sha512(secret: Secret) -> Result<Self, ConfigError> {
        keyed(secret).map(|mac| Self(Kind::HmacSha512(mac)))
    }
}

#[cfg(feature = "ed25519")]
impl Key {
    /// Makes a key for Ed25519 (RFC 8032) from its seed of 32 bytes, or from 64 bytes of which the
    /// second half is the public key, as some consoles hand it out.
    ///
    /// # Errors
    ///
    /// If it is of another length, or the public half is that of another seed.
    pub fn ed25519(secret: &Secret) -> Result<Self, ConfigError> {
        Ok(Self(Kind::Ed25519(Box::new(ed25519(secret)?))))
    }

    /// Makes a key for Ed25519 from a PEM of PKCS#8 (RFC 5958, RFC 8410).
    ///
    /// # Errors
    ///
    /// If it is none. A PEM that has been through a shell or a JSON file often has a backslash and an n
    /// where its line breaks were; the error says so.
    pub fn ed25519_pem(pem: &str) -> Result<Self, ConfigError> {
        use ed25519_dalek::{SigningKey, pkcs8::DecodePrivateKey};

        let pem = crate::pem::block(pem, crate::pem::Half::Private)?;
        match SigningKey::from_pkcs8_pem(pem) {
            Ok(key) => Ok(Self(Kind::Ed25519(Box::new(key)))),
            Err(_) => Err(crate::secret::rejected(
                "an Ed25519 key in the PEM form of PKCS#8",
            )),
        }
    }

    /// Makes a key that can only verify, from the 32 bytes of a public Ed25519 key.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn ed25519_public(bytes: &[u8]) -> Result<Self, ConfigError> {
        let bytes = <&[u8; 32]>::try_from(bytes).ok();
        let key = bytes.and_then(|bytes| ed25519_dalek::VerifyingKey::from_bytes(bytes).ok());
        match key {
            Some(key) => Ok(Self(Kind::Ed25519Public(Box::new(key)))),
            None => Err(crate::secret::rejected("a public Ed25519 key of 32 bytes")),
        }
    }

    /// Makes a key that can only verify, from the PEM of a public Ed25519 key (RFC 8410).
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn ed25519_public_pem(pem: &str) -> Result<Self, ConfigError> {
        use ed25519_dalek::{VerifyingKey, pkcs8::DecodePublicKey};

        let pem = crate::pem::block(pem, crate::pem::Half::Public)?;
        match VerifyingKey::from_public_key_pem(pem) {
            Ok(key) => Ok(Self(Kind::Ed25519Public(Box::new(key)))),
            Err(_) => Err(crate::secret::rejected("the PEM of a public Ed25519 key")),
        }
    }
}

impl Key {
    /// Signs parts of a request.
    pub(super) fn sign_parts(
        &self,
        parts: &[Part],
        eval: &Eval<'_>,
        draft: &Draft,
    ) -> Result<Vec<u8>, SignError> {
        match &self.0 {
            #[cfg(feature = "hmac")]
            Kind::HmacSha1(mac) => Ok(fed(mac, parts, eval, draft)?.finalize().as_bytes().to_vec()),
            #[cfg(feature = "hmac")]
            Kind::HmacSha256(mac) => {
                Ok(fed(mac, parts, eval, draft)?.finalize().as_bytes().to_vec())
            }
            #[cfg(feature = "hmac")]
            Kind::HmacSha384(mac) => {
                Ok(fed(mac, parts, eval, draft)?.finalize().as_bytes().to_vec())
            }
            #[cfg(feature = "hmac")]
            Kind::HmacSha512(mac) => {
                Ok(fed(mac, parts, eval, draft)?.finalize().as_bytes().to_vec())
            }
            #[cfg(any(feature = "ecdsa", feature = "ed25519", feature = "rsa"))]
            _ => self.sign(&eval.collect(parts, draft)?),
        }
    }

    /// Checks a signature of parts of a request, in constant time.
    pub(super) fn verify_parts(
        &self,
        parts: &[Part],
        eval: &Eval<'_>,
        draft: &Draft,
        signature: &[u8],
    ) -> Result<bool, SignError> {
        match &self.0 {
            #[cfg(feature = "hmac")]
            Kind::HmacSha1(mac) => Ok(fed(mac, parts, eval, draft)?
                .verify_slice(signature)
                .is_ok()),
            #[cfg(feature = "hmac")]
            Kind::HmacSha256(mac) => Ok(fed(mac, parts, eval, draft)?
                .verify_slice(signature)
                .is_ok()),
            #[cfg(feature = "hmac")]
            Kind::HmacSha384(mac) => Ok(fed(mac, parts, eval, draft)?
                .verify_slice(signature)
                .is_ok()),
            #[cfg(feature = "hmac")]
            Kind::HmacSha512(mac) => Ok(fed(mac, parts, eval, draft)?
                .verify_slice(signature)
                .is_ok()),
            #[cfg(any(feature = "ecdsa", feature = "ed25519", feature = "rsa"))]
            _ => Ok(self.verify(&eval.collect(parts, draft)?, signature)),
        }
    }

    /// Signs bytes, for a signer that is written rather than described.
    ///
    /// # Errors
    ///
    /// If it is a public key; with RSA also if the system has no random numbers.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        match &self.0 {
            #[cfg(feature = "hmac")]
            Kind::HmacSha1(mac) => Ok(whole(mac, message).finalize().as_bytes().to_vec()),
            #[cfg(feature = "hmac")]
            Kind::HmacSha256(mac) => Ok(whole(mac, message).finalize().as_bytes().to_vec()),
            #[cfg(feature = "hmac")]
            Kind::HmacSha384(mac) => Ok(whole(mac, message).finalize().as_bytes().to_vec()),
            #[cfg(feature = "hmac")]
            Kind::HmacSha512(mac) => Ok(whole(mac, message).finalize().as_bytes().to_vec()),
            #[cfg(feature = "ed25519")]
            Kind::Ed25519(key) => {
                use ed25519_dalek::Signer;

                Ok(key.sign(message).to_bytes().to_vec())
            }
            #[cfg(feature = "ed25519")]
            Kind::Ed25519Public(_) => Err(SignError::missing("private key")),
            #[cfg(feature = "ecdsa")]
            Kind::P256(key) => Ok(ecdsa::sign(key, message)),
            #[cfg(feature = "ecdsa")]
            Kind::P256Public(_) => Err(SignError::missing("private key")),
            #[cfg(feature = "rsa")]
            Kind::Rsa(key) => key.sign(message),
            #[cfg(feature = "rsa")]
            Kind::RsaPublic(_) => Err(SignError::missing("private key")),
        }
    }

    /// Returns whether a signature is that of these bytes, in constant time.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            #[cfg(feature = "hmac")]
            Kind::HmacSha1(mac) => whole(mac, message).verify_slice(signature).is_ok(),
            #[cfg(feature = "hmac")]
            Kind::HmacSha256(mac) => whole(mac, message).verify_slice(signature).is_ok(),
            #[cfg(feature = "hmac")]
            Kind::HmacSha384(mac) => whole(mac, message).verify_slice(signature).is_ok(),
            #[cfg(feature = "hmac")]
            Kind::HmacSha512(mac) => whole(mac, message).verify_slice(signature).is_ok(),
            #[cfg(feature = "ed25519")]
            Kind::Ed25519(key) => verified(&key.verifying_key(), message, signature),
            #[cfg(feature = "ed25519")]
            Kind::Ed25519Public(key) => verified(key, message, signature),
            #[cfg(feature = "ecdsa")]
            Kind::P256(key) => ecdsa::verify(key.verifying_key(), message, signature),
            #[cfg(feature = "ecdsa")]
            Kind::P256Public(key) => ecdsa::verify(key, message, signature),
            #[cfg(feature = "rsa")]
            Kind::Rsa(key) => key.public().verify(message, signature),
            #[cfg(feature = "rsa")]
            Kind::RsaPublic(key) => key.verify(message, signature),
        }
    }

    /// The name of the algorithm in HTTP Message Signatures (RFC 9421, section 6.2.2), if it has one
    /// there.
    #[cfg(feature = "message-signatures")]
    pub(crate) const fn message_algorithm(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::HmacSha256(_) => Some("hmac-sha256"),
            Kind::Ed25519(_) | Kind::Ed25519Public(_) => Some("ed25519"),
            #[cfg(feature = "ecdsa")]
            Kind::P256(_) | Kind::P256Public(_) => Some("ecdsa-p256-sha256"),
            #[cfg(feature = "rsa")]
            Kind::Rsa(key) => Some(key.public().message_algorithm()),
            #[cfg(feature = "rsa")]
            Kind::RsaPublic(key) => Some(key.message_algorithm()),
            Kind::HmacSha1(_) | Kind::HmacSha384(_) | Kind::HmacSha512(_) => None,
        }
    }

    /// Whether it can sign.
    pub(crate) const fn signs(&self) -> bool {
        match &self.0 {
            #[cfg(feature = "ed25519")]
            Kind::Ed25519Public(_) => false,
            #[cfg(feature = "ecdsa")]
            Kind::P256Public(_) => false,
            #[cfg(feature = "rsa")]
            Kind::RsaPublic(_) => false,
            _ => true,
        }
    }

    pub(super) const fn algorithm(&self) -> &'static str {
        match &self.0 {
            #[cfg(feature = "hmac")]
            Kind::HmacSha1(_) => "HMAC-SHA-1",
            #[cfg(feature = "hmac")]
            Kind::HmacSha256(_) => "HMAC-SHA-256",
            #[cfg(feature = "hmac")]
            Kind::HmacSha384(_) => "HMAC-SHA-384",
            #[cfg(feature = "hmac")]
            Kind::HmacSha512(_) => "HMAC-SHA-512",
            #[cfg(feature = "ed25519")]
            Kind::Ed25519(_) => "Ed25519",
            #[cfg(feature = "ed25519")]
            Kind::Ed25519Public(_) => "Ed25519, public",
            #[cfg(feature = "ecdsa")]
            Kind::P256(_) => "ECDSA P-256 SHA-256",
            #[cfg(feature = "ecdsa")]
            Kind::P256Public(_) => "ECDSA P-256 SHA-256, public",
            #[cfg(feature = "rsa")]
            Kind::Rsa(key) => key.public().algorithm(),
            #[cfg(feature = "rsa")]
            Kind::RsaPublic(key) => key.algorithm(),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, [redacted])", self.algorithm())
    }
}

#[cfg(feature = "hmac")]
fn keyed<M: KeyInit>(secret: Secret) -> Result<M, ConfigError> {
    let secret = secret.not_empty()?;
    // A key of any length will do for HMAC.
    M::new_from_slice(secret.expose()).map_err(|_| crate::secret::rejected("a key"))
}

/// The state that comes of a key is copied, and what is signed goes in piece by piece: nothing is
/// joined together first.
#[cfg(feature = "hmac")]
fn fed<M: Mac + Clone>(
    mac: &M,
    parts: &[Part],
    eval: &Eval<'_>,
    draft: &Draft,
) -> Result<M, SignError> {
    let mut mac = mac.clone();
    for part in parts {
        eval.feed(part, draft, &mut |bytes| mac.update(bytes))?;
    }
    Ok(mac)
}

#[cfg(feature = "hmac")]
fn whole<M: Mac + Clone>(mac: &M, message: &[u8]) -> M {
    let mut mac = mac.clone();
    mac.update(message);
    mac
}

/// Reads a key from its seed, or from the seed and the public half.
#[cfg(feature = "ed25519")]
pub(crate) fn ed25519(secret: &Secret) -> Result<ed25519_dalek::SigningKey, ConfigError> {
    use ed25519_dalek::SigningKey;

    let bytes = secret.expose();
    let key = if let Ok(seed) = <&[u8; 32]>::try_from(bytes) {
        Some(SigningKey::from_bytes(seed))
    } else if let Ok(pair) = <&[u8; 64]>::try_from(bytes) {
        SigningKey::from_keypair_bytes(pair).ok()
    } else {
        None
    };
    key.ok_or_else(|| crate::secret::rejected("a seed of 32 bytes, or with its public half 64"))
}

#[cfg(feature = "ed25519")]
fn verified(key: &ed25519_dalek::VerifyingKey, message: &[u8], signature: &[u8]) -> bool {
    let signature = ed25519_dalek::Signature::from_slice(signature).ok();
    signature.is_some_and(|signature| key.verify_strict(message, &signature).is_ok())
}

#[cfg(test)]
mod tests;
