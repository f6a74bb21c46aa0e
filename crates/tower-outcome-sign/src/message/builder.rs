//! Describing the signatures of messages.

use std::{fmt, time::Duration};

use http::HeaderName;
use tower_outcome_core::ConfigError;

use super::{
    CONTENT_DIGEST, Component, DigestAlgorithm, FieldType, MessageSigner, component::Covered,
    digest::is_digest, fields::Fields,
};
use crate::{Key, secret::Redacted};

/// Builds a [`MessageSigner`]; start with [`MessageSigner::builder`].
#[must_use]
pub struct MessageSignerBuilder {
    key: Key,
    label: String,
    components: Vec<Component>,
    key_id: Option<String>,
    tag: Option<String>,
    algorithm: bool,
    digest: Option<DigestAlgorithm>,
    fields: Fields,
    created: bool,
    nonce: bool,
    window: Option<Duration>,
    expires: bool,
}

// === impl MessageSignerBuilder ===

impl MessageSignerBuilder {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            label: "sig1".to_owned(),
            components: Vec::new(),
            key_id: None,
            tag: None,
            algorithm: false,
            digest: None,
            fields: Fields::new(),
            created: true,
            nonce: false,
            window: None,
            expires: false,
        }
    }

    /// Sets the label by which the signature is found among others: `sig1` by default, as in the examples
    /// of the standard.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds what is signed, in this order.
    pub fn cover(mut self, components: impl IntoIterator<Item = Component>) -> Self {
        self.components.extend(components);
        self
    }

    /// Sets the parameter `keyid`, by which the verifier finds its key.
    pub fn key_id(mut self, id: impl Into<String>) -> Self {
        self.key_id = Some(id.into());
        self
    }

    /// Sets the parameter `tag`, which says what the signature is for.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Writes the parameter `alg`. Verifiers know it from the key, and by default it is left to them.
    pub const fn algorithm(mut self) -> Self {
        self.algorithm = true;
        self
    }

    /// Writes a `Content-Digest` of the body, and signs it: last where it is not in the list.
    ///
    /// Without it the body is not signed, and not read.
    pub const fn content_digest(mut self, algorithm: DigestAlgorithm) -> Self {
        self.digest = Some(algorithm);
        self
    }

    /// Says that a header is structured, so that it can be signed as such. Those of the standards are
    /// known.
    pub fn structured_field(mut self, name: HeaderName, field_type: FieldType) -> Self {
        self.fields.add(name, field_type);
        self
    }

    /// Leaves out the parameter `created`, which is there by default: most verifiers want it.
    pub const fn without_created(mut self) -> Self {
        self.created = false;
        self
    }

    /// Writes the parameter `nonce`: a text that no other attempt has.
    pub const fn nonce(mut self) -> Self {
        self.nonce = true;
        self
    }

    /// Writes the parameter `expires`: how long after its time the request may be accepted, in whole
    /// seconds rounded up, or until the call's deadline where that is sooner.
    pub const fn expires_after(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self.expires = true;
        self
    }

    /// Sets how long after its time the server accepts a request, without writing it: where the server
    /// goes by `created` and a tolerance of its own. Without either a signature does not age.
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self.expires = false;
        self
    }

    /// Builds the signer.
    ///
    /// # Errors
    ///
    /// If nothing is signed or something twice, if the key only verifies or is of an algorithm that is
    /// not in the standard, if a text or a name cannot be written, or if a window is shorter than a
    /// second, the unit of these signatures.
    pub fn build(self) -> Result<MessageSigner, ConfigError> {
        let algorithm = named(&self.key)?;
        if !self.key.signs() {
            return Err(ConfigError::new("key", &self.key, "a key that signs"));
        }
        if let Some(window) = self.window {
            if window < Duration::from_secs(1) {
                return Err(ConfigError::new("window", window, "a second or more"));
            }
        }
        let mut components = self.components;
        if self.digest.is_some() && !components.iter().any(is_digest) {
            components.push(Component::field(CONTENT_DIGEST));
        }
        let covered = covered(components)?;
        let label = self.label;
        let Ok(label) = sfv::Key::from_string(label.clone()) else {
            let expected = "lower-case letters, digits, and _-.* after the first";
            return Err(ConfigError::new("label", label, expected));
        };
        let algorithm = self.algorithm.then(|| algorithm.to_owned());
        Ok(MessageSigner {
            key: self.key,
            label,
            covered,
            key_id: text("key_id", self.key_id)?,
            tag: text("tag", self.tag)?,
            algorithm: text("algorithm", algorithm)?,
            digest: self.digest,
            fields: self.fields,
            created: self.created,
            nonce: self.nonce,
            window: self.window,
            expires: self.expires,
        })
    }
}

/// Shows the algorithm, and nothing of the key or its name.
impl fmt::Debug for MessageSignerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSignerBuilder")
            .field("key", &self.key)
            .field("components", &self.components)
            .finish_non_exhaustive()
    }
}

/// The name of a key's algorithm in the standard.
pub(super) fn named(key: &Key) -> Result<&'static str, ConfigError> {
    let expected = "HMAC-SHA-256, Ed25519, ECDSA P-256, RSA PKCS#1 v1.5 SHA-256 or RSA PSS SHA-512";
    key.message_algorithm()
        .ok_or_else(|| ConfigError::new("key", key, expected))
}

/// Components with their names, each once and at least one.
pub(super) fn covered(components: Vec<Component>) -> Result<Vec<Covered>, ConfigError> {
    if components.is_empty() {
        let expected = "something of the request to sign";
        return Err(ConfigError::new("components", Redacted("none"), expected));
    }
    let mut all: Vec<Covered> = Vec::with_capacity(components.len());
    for component in components {
        if all.iter().any(|covered| covered.component == component) {
            return Err(ConfigError::new("components", component, "each once"));
        }
        match Covered::new(component.clone()) {
            Some(covered) => all.push(covered),
            None => {
                let expected = "names that can be written";
                return Err(ConfigError::new("components", component, expected));
            }
        }
    }
    Ok(all)
}

/// A text that can be a parameter.
fn text(field: &'static str, text: Option<String>) -> Result<Option<sfv::String>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    match sfv::String::from_string(text) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(ConfigError::new(
            field,
            Redacted("[redacted]"),
            "printable characters of ASCII",
        )),
    }
}
