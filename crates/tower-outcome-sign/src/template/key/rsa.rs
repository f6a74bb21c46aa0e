//! RSA with PKCS#1 v1.5 and with PSS.

use std::{fmt, sync::Arc};

use ring::{
    rand::SystemRandom,
    signature::{
        KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RSA_PSS_2048_8192_SHA512,
        RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaParameters, UnparsedPublicKey,
    },
};
use spki::{
    ObjectIdentifier, SubjectPublicKeyInfoRef,
    der::{Decode, Reader, SliceReader, asn1::UintRef},
};
use tower_outcome_core::ConfigError;
use zeroize::Zeroizing;

use super::{Key, Kind};
use crate::{
    SignError,
    pem::{Half, block},
    secret::rejected,
};

/// A private key, and how it signs.
#[derive(Clone)]
pub(super) struct PrivateKey {
    pair: Arc<RsaKeyPair>,
    public: PublicKey,
}

/// A public key, and how it is signed with.
#[derive(Clone)]
pub(super) struct PublicKey {
    scheme: Scheme,
    /// In the form of PKCS#1.
    der: Arc<[u8]>,
}

#[derive(Clone, Copy, Debug)]
enum Scheme {
    /// PKCS#1 v1.5 with SHA-256.
    V15,
    /// PSS with SHA-512, which is also that of its mask, and a salt as long as that.
    Pss,
}

/// `rsaEncryption` of RFC 8017.
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

impl Key {
    /// Makes a key for RSA with PKCS#1 v1.5 and SHA-256 (RFC 8017) from a PEM of PKCS#8 ("PRIVATE KEY")
    /// or PKCS#1 ("RSA PRIVATE KEY"), of 2048 to 4096 bits.
    ///
    /// # Errors
    ///
    /// If it is none. A PEM that has been through a shell or a JSON file often has a backslash and an n
    /// where its line breaks were; the error says so.
    pub fn rsa_sha256_pem(pem: &str) -> Result<Self, ConfigError> {
        PrivateKey::read(pem, Scheme::V15).map(|key| Self(Kind::Rsa(key)))
    }

    /// Makes a key for RSA with PSS and SHA-512 (RFC 8017), with a salt of 64 bytes as RFC 9421 asks for
    /// in section 3.3.1, from the same forms.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn rsa_pss_sha512_pem(pem: &str) -> Result<Self, ConfigError> {
        PrivateKey::read(pem, Scheme::Pss).map(|key| Self(Kind::Rsa(key)))
    }

    /// Makes a key that can only verify PKCS#1 v1.5 with SHA-256, from the PEM of a public RSA key
    /// ("PUBLIC KEY" or "RSA PUBLIC KEY") of 2048 to 8192 bits.
    ///
    /// # Errors
    ///
    /// If it is none, or of another size.
    pub fn rsa_sha256_public_pem(pem: &str) -> Result<Self, ConfigError> {
        PublicKey::read(pem, Scheme::V15).map(|key| Self(Kind::RsaPublic(key)))
    }

    /// Makes a key that can only verify PSS with SHA-512, from the same forms.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn rsa_pss_sha512_public_pem(pem: &str) -> Result<Self, ConfigError> {
        PublicKey::read(pem, Scheme::Pss).map(|key| Self(Kind::RsaPublic(key)))
    }
}

// === impl PrivateKey ===

impl PrivateKey {
    fn read(pem: &str, scheme: Scheme) -> Result<Self, ConfigError> {
        let expected = "an RSA key of 2048 to 4096 bits in the PEM form of PKCS#8 or PKCS#1";
        let (label, der) = decode(pem, Half::Private, expected)?;
        let pair = match label {
            "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&der).ok(),
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der).ok(),
            _ => None,
        };
        let pair = pair.ok_or_else(|| rejected(expected))?;
        let der = Arc::from(pair.public_key().as_ref());
        Ok(Self {
            pair: Arc::new(pair),
            public: PublicKey { scheme, der },
        })
    }

    pub(super) const fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let encoding: &dyn RsaEncoding = match self.public.scheme {
            Scheme::V15 => &RSA_PKCS1_SHA256,
            Scheme::Pss => &RSA_PSS_SHA512,
        };
        let mut signature = vec![0; self.pair.public().modulus_len()];
        // It is blinded by random numbers, and the system may have none.
        self.pair
            .sign(encoding, &SystemRandom::new(), message, &mut signature)
            .map_err(|_| SignError::unavailable("no random numbers"))?;
        Ok(signature)
    }
}

// === impl PublicKey ===

impl PublicKey {
    fn read(pem: &str, scheme: Scheme) -> Result<Self, ConfigError> {
        let expected = "the PEM of a public RSA key of 2048 to 8192 bits";
        let (label, der) = decode(pem, Half::Public, expected)?;
        let key = match label {
            "RSA PUBLIC KEY" => Some(&der[..]),
            "PUBLIC KEY" => SubjectPublicKeyInfoRef::from_der(&der)
                .ok()
                .filter(|info| info.algorithm.oid == RSA)
                .and_then(|info| info.subject_public_key.as_bytes()),
            _ => None,
        };
        match key.filter(|key| verifies(key)) {
            Some(key) => Ok(Self {
                scheme,
                der: Arc::from(key),
            }),
            None => Err(rejected(expected)),
        }
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let parameters: &'static RsaParameters = match self.scheme {
            Scheme::V15 => &RSA_PKCS1_2048_8192_SHA256,
            Scheme::Pss => &RSA_PSS_2048_8192_SHA512,
        };
        let key = UnparsedPublicKey::new(parameters, &self.der);
        key.verify(message, signature).is_ok()
    }

    pub(super) const fn algorithm(&self) -> &'static str {
        match self.scheme {
            Scheme::V15 => "RSA PKCS#1 v1.5 SHA-256",
            Scheme::Pss => "RSA PSS SHA-512",
        }
    }

    #[cfg(feature = "message-signatures")]
    pub(super) const fn message_algorithm(&self) -> &'static str {
        match self.scheme {
            Scheme::V15 => "rsa-v1_5-sha256",
            Scheme::Pss => "rsa-pss-sha512",
        }
    }
}

/// Shows the algorithm, and nothing of the key.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.public.algorithm())
    }
}

/// Whether a public key is one (RFC 8017, appendix A.1.1), of a size with which is verified.
fn verifies(der: &[u8]) -> bool {
    let modulus = SliceReader::new(der).and_then(|mut reader| {
        let modulus = reader.sequence(|reader| {
            let modulus = UintRef::decode(reader)?;
            UintRef::decode(reader).map(|_exponent| modulus)
        });
        // Nothing may follow.
        reader.finish().and(modulus)
    });
    modulus.is_ok_and(|modulus| match modulus.as_bytes() {
        bytes @ [first, ..] => {
            let zeros = usize::try_from(first.leading_zeros()).unwrap_or(0);
            (2048..=8192).contains(&(bytes.len() * 8 - zeros))
        }
        [] => false,
    })
}

/// Decodes a PEM into its label and bytes, which are overwritten when they are dropped.
fn decode<'a>(
    pem: &'a str,
    half: Half,
    expected: &'static str,
) -> Result<(&'a str, Zeroizing<Vec<u8>>), ConfigError> {
    let pem = block(pem, half)?;
    let (label, der) = pem_rfc7468::decode_vec(pem.as_bytes()).map_err(|_| rejected(expected))?;
    Ok((label, Zeroizing::new(der)))
}
