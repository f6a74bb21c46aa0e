//! HTTP Message Signatures.

use std::{fmt, time::Duration};

use http::{HeaderName, HeaderValue};
use sfv::{KeyRef, ListSerializer, StringRef};

use crate::{Draft, Fresh, Key, Needs, Sign, SignError, SigningTime, Unit, Validity};

mod base;
mod builder;
mod component;
mod digest;
mod fields;
mod verify;

pub use self::{
    builder::MessageSignerBuilder,
    component::Component,
    digest::DigestAlgorithm,
    fields::FieldType,
    verify::{MessageVerifier, MessageVerifierBuilder, VerifiedMessage},
};

use self::{base::Base, component::Covered, fields::Fields};

const SIGNATURE: HeaderName = HeaderName::from_static("signature");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");

/// Signs requests with HTTP Message Signatures (RFC 9421), and the body with a `Content-Digest`
/// (RFC 9530).
///
/// It writes `Signature-Input` and `Signature`, and `Content-Digest` where that was asked for. What is
/// signed is a list of [components](Component). The time (`created`), the end of validity (`expires`)
/// and the `nonce` are those of the attempt.
///
/// ```
/// use std::time::Duration;
/// use http::header::CONTENT_TYPE;
/// use tower_outcome_sign::{Component, DigestAlgorithm, Key, MessageSigner, Secret};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let signer = MessageSigner::builder(Key::hmac_sha256(Secret::new("the secret"))?)
///     .key_id("the name of the key")
///     .cover([Component::method(), Component::target_uri()])
///     .cover([Component::field(CONTENT_TYPE)])
///     .content_digest(DigestAlgorithm::Sha256)
///     .expires_after(Duration::from_secs(30))
///     .nonce()
///     .build()?;
/// # let _ = signer;
/// # Ok(())
/// # }
/// ```
///
/// Keys may be HMAC with SHA-256, Ed25519, and with the features `ecdsa` and `rsa` also ECDSA with P-256,
/// RSA with PKCS#1 v1.5 and SHA-256, and RSA with PSS and SHA-512.
///
/// A request that has a `Signature` or `Signature-Input` already is refused: what a second signature of a
/// message would be over is for whoever made the first to say.
///
/// [`MessageVerifier`] is the other side.
#[derive(Clone)]
pub struct MessageSigner {
    key: Key,
    /// Checked when it was built, like the other texts.
    label: sfv::Key,
    covered: Vec<Covered>,
    key_id: Option<sfv::String>,
    tag: Option<sfv::String>,
    algorithm: Option<sfv::String>,
    digest: Option<DigestAlgorithm>,
    fields: Fields,
    created: bool,
    nonce: bool,
    window: Option<Duration>,
    expires: bool,
}

/// What one attempt puts into the parameters of a signature.
#[derive(Debug, Default)]
struct Parameters {
    created: Option<u64>,
    expires: Option<u64>,
    nonce: Option<sfv::String>,
}

// === impl MessageSigner ===

impl MessageSigner {
    /// Starts with the key.
    pub fn builder(key: Key) -> MessageSignerBuilder {
        MessageSignerBuilder::new(key)
    }

    /// The parameters of this attempt, and until when the server accepts it.
    fn parameters(&self, fresh: &Fresh) -> Result<(Parameters, Validity), SignError> {
        let created = fresh.time().as_secs();
        let mut parameters = Parameters::default();
        if self.created {
            parameters.created = Some(created);
        }
        if self.nonce {
            let nonce = sfv::String::from_string(fresh.token()?.to_hex());
            parameters.nonce = Some(nonce.map_err(|_| SignError::encoding("nonce"))?);
        }
        let Some(window) = self.window else {
            return Ok((parameters, Validity::UNLIMITED));
        };
        if !self.expires {
            // The server counts from what it is told.
            let created = SigningTime::from_unit(created, Unit::Seconds)?;
            return Ok((parameters, Validity::for_window(created, window)));
        }
        // The server need not accept what nobody waits for any more. A second that has begun counts as
        // a whole one, or the request would end before its time.
        let window = window.min(fresh.time_left().unwrap_or(Duration::MAX));
        let window = window.max(Duration::from_millis(1));
        let end = Unit::Seconds.count_up(fresh.time().since_epoch().saturating_add(window));
        let end = SigningTime::from_unit(end, Unit::Seconds)?;
        parameters.expires = Some(end.as_secs());
        Ok((parameters, Validity::until(end)))
    }

    /// Writes what is covered and the parameters, as in `("@method");created=1618884473`.
    ///
    /// Their order is for the signer to choose, and signed. It is that of RFC 9421, section 2.3: there are
    /// verifiers that put them back into it.
    fn input(&self, parameters: &Parameters) -> Result<String, SignError> {
        let mut text = String::with_capacity(256);
        let mut list = ListSerializer::with_buffer(&mut text);
        let mut items = list.inner_list();
        items.items(self.covered.iter().map(|covered| &covered.item));
        let mut to = items.finish();
        for (name, time) in [
            ("created", parameters.created),
            ("expires", parameters.expires),
        ] {
            if let Some(time) = time {
                // Times end with the year 9999, integers with fifteen digits.
                let time = sfv::Integer::try_from(time).map_err(|_| SignError::encoding(name))?;
                to = to.parameter(key(name)?, time);
            }
        }
        for (name, text) in [
            ("nonce", &parameters.nonce),
            ("alg", &self.algorithm),
            ("keyid", &self.key_id),
            ("tag", &self.tag),
        ] {
            if let Some(text) = text {
                let text: &StringRef = text;
                to = to.parameter(key(name)?, text);
            }
        }
        let _ = to.finish();
        Ok(text)
    }
}

impl Sign for MessageSigner {
    fn needs(&self) -> Needs {
        let mut needs = Needs::HEAD;
        if self.digest.is_some() {
            needs = needs.and_body();
        }
        if self.nonce {
            needs = needs.and_token();
        }
        needs
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        for name in [SIGNATURE_INPUT, SIGNATURE] {
            if draft.headers().contains_key(&name) {
                return Err(crate::draft::conflict(name.to_string()));
            }
        }
        if let Some(digest) = self.digest {
            let value = digest.header(draft.body()?)?;
            draft.set_header(CONTENT_DIGEST, value)?;
        }
        let (parameters, validity) = self.parameters(fresh)?;
        let input = self.input(&parameters)?;
        let base = Base {
            head: draft.head(),
            received: None,
            fields: &self.fields,
        };
        let signature = self
            .key
            .sign(base.write(&self.covered, &input)?.as_bytes())?;
        for covered in &self.covered {
            if let Some(name) = covered.component.header() {
                draft.note_covered(&name);
            }
        }
        let label = &self.label;
        let value = HeaderValue::try_from(format!("{label}={input}"));
        let value = value.map_err(|_| SignError::encoding("signature-input"))?;
        draft.set_secret_header(SIGNATURE_INPUT, value)?;
        let signature = sfv::ItemSerializer::new()
            .bare_item(&signature[..])
            .finish();
        let value = HeaderValue::try_from(format!("{label}={signature}"));
        let value = value.map_err(|_| SignError::encoding("signature"))?;
        draft.set_secret_header(SIGNATURE, value)?;
        Ok(validity)
    }
}

/// Shows the algorithm, and nothing of the key or its name.
impl fmt::Debug for MessageSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSigner")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

fn key(name: &'static str) -> Result<&'static KeyRef, SignError> {
    KeyRef::from_str(name).map_err(|_| SignError::encoding(name))
}
