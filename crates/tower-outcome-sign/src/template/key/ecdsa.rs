//! ECDSA with the curve P-256 and SHA-256.

use p256::{
    SecretKey,
    ecdsa::{
        Signature, SigningKey, VerifyingKey,
        signature::{Signer, Verifier},
    },
    pkcs8::{DecodePrivateKey, DecodePublicKey},
};
use tower_outcome_core::ConfigError;

use super::{Key, Kind};
use crate::{
    pem::{Half, block},
    secret::rejected,
};

impl Key {
    /// Makes a key for ECDSA with P-256 and SHA-256 (FIPS 186-5) from a PEM of PKCS#8 ("PRIVATE KEY")
    /// or SEC 1 ("EC PRIVATE KEY", RFC 5915).
    ///
    /// A signature is the two numbers of 32 bytes each, one after the other, and no ASN.1. It is the
    /// same whenever the same is signed (RFC 6979).
    ///
    /// # Errors
    ///
    /// If it is none. A PEM that has been through a shell or a JSON file often has a backslash and an n
    /// where its line breaks were; the error says so.
    pub fn ecdsa_p256_pem(pem: &str) -> Result<Self, ConfigError> {
        private(pem).map(|key| Self(Kind::P256(Box::new(key))))
    }

    /// Makes a key that can only verify, from the PEM of a public P-256 key ("PUBLIC KEY", RFC 5480).
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn ecdsa_p256_public_pem(pem: &str) -> Result<Self, ConfigError> {
        let pem = block(pem, Half::Public)?;
        match VerifyingKey::from_public_key_pem(pem) {
            Ok(key) => Ok(Self(Kind::P256Public(Box::new(key)))),
            Err(_) => Err(rejected("the PEM of a public P-256 key")),
        }
    }
}

/// Reads a private key from either of its two forms.
pub(crate) fn private(pem: &str) -> Result<SigningKey, ConfigError> {
    let pem = block(pem, Half::Private)?;
    let key = if pem.starts_with("-----BEGIN EC PRIVATE KEY-----") {
        SecretKey::from_sec1_pem(pem).ok()
    } else {
        SecretKey::from_pkcs8_pem(pem).ok()
    };
    match key {
        Some(key) => Ok(SigningKey::from(&key)),
        None => Err(rejected("a P-256 key in the PEM form of PKCS#8 or SEC 1")),
    }
}

pub(crate) fn sign(key: &SigningKey, message: &[u8]) -> Vec<u8> {
    let signature: Signature = key.sign(message);
    signature.to_bytes().to_vec()
}

pub(crate) fn verify(key: &VerifyingKey, message: &[u8], signature: &[u8]) -> bool {
    let signature = Signature::from_slice(signature);
    signature.is_ok_and(|signature| key.verify(message, &signature).is_ok())
}
