//! The other side: verifying signed messages.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, Request, request, uri::Scheme};
use sfv::{BareItem, InnerList, ListEntry, Parameters};
use tower_outcome_core::ConfigError;

use super::{
    Component, FieldType, SIGNATURE, SIGNATURE_INPUT,
    base::Base,
    builder::{covered, named},
    component::Covered,
    digest::{self, Checked},
    fields::{Fields, dictionary, member},
};
use crate::{Key, SignErrorKind, SigningTime, Unit, VerifyError, secret::Redacted};

/// Verifies requests with HTTP Message Signatures (RFC 9421), and their `Content-Digest` (RFC 9530).
///
/// A signature is of whoever has the key that its `keyid` names. It is accepted if it is right, covers
/// what was [required](MessageVerifierBuilder::require), and is of now. A body is accepted if its digest
/// is covered, and is that of the body.
///
/// Signatures are compared in constant time. A nonce that was seen before is for the caller to find out,
/// who keeps what was seen; so is whether the sender may do what is asked.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use bytes::Bytes;
/// use http::Request;
/// use tower_outcome_sign::{Component, Key, MessageVerifier, Secret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let secret = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";
/// let verifier = MessageVerifier::builder()
///     .key("test-shared-secret", Key::hmac_sha256(Secret::base64(secret)?)?)
///     .require([Component::authority()])
///     .unsigned_body()
///     .build()?;
///
/// // RFC 9421, appendix B.2.5.
/// let request = Request::post("/foo?param=Value&Pet=dog")
///     .header("host", "example.com")
///     .header("date", "Tue, 20 Apr 2021 02:07:55 GMT")
///     .header("content-type", "application/json")
///     .header("signature-input", r#"sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#)
///     .header("signature", "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:")
///     .body(Bytes::from(r#"{"hello": "world"}"#))?;
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_618_884_475);
/// assert_eq!(verifier.verify(&request, now)?.key_id(), "test-shared-secret");
/// assert!(verifier.verify(&request, now + Duration::from_secs(300)).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MessageVerifier {
    /// By their names, which are of no use without them.
    keys: Vec<(String, Key)>,
    unnamed: Option<Key>,
    uncreated: bool,
    required: Vec<Covered>,
    label: Option<String>,
    tag: Option<String>,
    tolerance: Duration,
    ahead: Duration,
    scheme: Scheme,
    fields: Fields,
    unsigned_body: bool,
}

/// Builds a [`MessageVerifier`]; start with [`MessageVerifier::builder`].
#[derive(Debug)]
#[must_use]
pub struct MessageVerifierBuilder {
    keys: Vec<(String, Key)>,
    unnamed: Option<Key>,
    uncreated: bool,
    required: Vec<Component>,
    label: Option<String>,
    tag: Option<String>,
    tolerance: Duration,
    ahead: Duration,
    scheme: Scheme,
    fields: Fields,
    unsigned_body: bool,
}

/// What a verified signature says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedMessage {
    label: String,
    key_id: String,
    tag: Option<String>,
    nonce: Option<String>,
    created: Option<SigningTime>,
    expires: Option<SigningTime>,
    covered: Vec<Component>,
}

/// So many signatures are tried, as there may be of senders and of proxies on the way.
const SIGNATURES: usize = 8;

// === impl MessageVerifierBuilder ===

impl MessageVerifierBuilder {
    /// Adds a key, by the name that is in the parameter `keyid`.
    pub fn key(mut self, id: impl Into<String>, key: Key) -> Self {
        self.keys.push((id.into(), key));
        self
    }

    /// Sets the key of signatures without the parameter `keyid`, of a sender who is known by other means.
    pub fn unnamed_key(mut self, key: Key) -> Self {
        self.unnamed = Some(key);
        self
    }

    /// Accepts signatures without the parameter `created` too, if they have `expires`.
    pub const fn without_created(mut self) -> Self {
        self.uncreated = true;
        self
    }

    /// Adds components that a signature has to cover. The digest of a body need not be named.
    pub fn require(mut self, components: impl IntoIterator<Item = Component>) -> Self {
        self.required.extend(components);
        self
    }

    /// Looks at the signature of this label only; at all of them by default, of which one has to be right.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Looks at signatures with this parameter `tag` only; whatever their tag by default.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Sets how old a signature may be by its parameter `created`: five minutes by default, which is
    /// longer than an attempt takes.
    pub const fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets how far the sender's clock may be ahead of or behind this one: a second by default. So long
    /// before its parameter `created` and after its `expires` a signature is accepted.
    pub const fn ahead(mut self, ahead: Duration) -> Self {
        self.ahead = ahead;
        self
    }

    /// Sets the scheme by which requests come in, which they do not say themselves: `https` by default.
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Says that a header is structured, so that it can be verified as such. Those of the standards are
    /// known.
    pub fn structured_field(mut self, name: HeaderName, field_type: FieldType) -> Self {
        self.fields.add(name, field_type);
        self
    }

    /// Accepts a body whose digest is not covered: whoever is on the way may have replaced it.
    pub const fn unsigned_body(mut self) -> Self {
        self.unsigned_body = true;
        self
    }

    /// Builds the verifier.
    ///
    /// # Errors
    ///
    /// If there is no key, or two of the same name, or one of an algorithm that is not in the standard;
    /// if nothing is required, since a signature may cover nothing; or if a name cannot be written.
    pub fn build(self) -> Result<MessageVerifier, ConfigError> {
        if let Some(key) = &self.unnamed {
            named(key)?;
        } else if self.keys.is_empty() {
            return Err(ConfigError::new("key", Redacted("none"), "a key"));
        }
        for (at, (id, key)) in self.keys.iter().enumerate() {
            named(key)?;
            if self.keys[..at].iter().any(|(other, _)| other == id) {
                return Err(ConfigError::new("key", Redacted("two"), "one of each name"));
            }
        }
        Ok(MessageVerifier {
            keys: self.keys,
            unnamed: self.unnamed,
            uncreated: self.uncreated,
            required: covered(self.required)?,
            label: self.label,
            tag: self.tag,
            tolerance: self.tolerance,
            ahead: self.ahead,
            scheme: self.scheme,
            fields: self.fields,
            unsigned_body: self.unsigned_body,
        })
    }
}

// === impl MessageVerifier ===

impl MessageVerifier {
    /// Starts without a key.
    pub const fn builder() -> MessageVerifierBuilder {
        MessageVerifierBuilder {
            keys: Vec::new(),
            unnamed: None,
            uncreated: false,
            required: Vec::new(),
            label: None,
            tag: None,
            tolerance: Duration::from_secs(300),
            ahead: Duration::from_secs(1),
            scheme: Scheme::HTTPS,
            fields: Fields::new(),
            unsigned_body: false,
        }
    }

    /// Verifies a request with its whole body, as it was received.
    ///
    /// # Errors
    ///
    /// If the request was not signed with one of the keys, not all that has to be, or not for now. Of
    /// several signatures that are wrong the first counts.
    pub fn verify(
        &self,
        request: &Request<Bytes>,
        now: SystemTime,
    ) -> Result<VerifiedMessage, VerifyError> {
        // The body is not copied, the head is.
        let (head, body) = request.clone().into_parts();
        if !head.headers.contains_key(SIGNATURE) || !head.headers.contains_key(SIGNATURE_INPUT) {
            return Err(VerifyError::Missing);
        }
        let read = |name| dictionary(&head.headers, &name).ok_or(VerifyError::Malformed);
        let (inputs, signatures) = (read(SIGNATURE_INPUT)?, read(SIGNATURE)?);
        let mut wrong = None;
        let mut tried = 0;
        for (label, input) in &inputs {
            let ListEntry::InnerList(input) = input else {
                wrong.get_or_insert(VerifyError::Malformed);
                continue;
            };
            let other_label = self.label.as_ref().is_some_and(|own| label.as_str() != own);
            // One that is no text is not the one that is looked for.
            let other_tag =
                self.tag.is_some() && text(&input.params, "tag") != Ok(self.tag.clone());
            if other_label || other_tag || tried == SIGNATURES {
                continue;
            }
            tried += 1;
            let one = match signatures.get(label) {
                Some(ListEntry::Item(item)) => match item.bare_item.as_byte_sequence() {
                    Some(signature) => self.verify_one(&head, &body, input, signature, now),
                    None => Err(VerifyError::Malformed),
                },
                Some(ListEntry::InnerList(_)) => Err(VerifyError::Malformed),
                None => Err(VerifyError::Missing),
            };
            match one {
                Ok(mut verified) => {
                    verified.label = label.as_str().to_owned();
                    return Ok(verified);
                }
                Err(error) => {
                    wrong.get_or_insert(error);
                }
            }
        }
        Err(wrong.unwrap_or(VerifyError::Missing))
    }

    fn verify_one(
        &self,
        head: &request::Parts,
        body: &Bytes,
        input: &InnerList,
        signature: &[u8],
        now: SystemTime,
    ) -> Result<VerifiedMessage, VerifyError> {
        let parameters = &input.params;
        let key_id = text(parameters, "keyid")?;
        let key = match &key_id {
            Some(key_id) => {
                let found = self.keys.iter().find(|(id, _)| id == key_id);
                found.map(|(_, key)| key).ok_or(VerifyError::UnknownKey)?
            }
            None => self.unnamed.as_ref().ok_or(VerifyError::Missing)?,
        };
        let algorithm = text(parameters, "alg")?;
        if algorithm.is_some() && algorithm.as_deref() != key.message_algorithm() {
            return Err(VerifyError::Mismatch);
        }
        let created = time(parameters, "created")?;
        let expires = time(parameters, "expires")?;
        if created.is_none() && !(self.uncreated && expires.is_some()) {
            return Err(VerifyError::Missing);
        }
        let covered = self.covered(input, body)?;
        let base = Base {
            head,
            received: Some(&self.scheme),
            fields: &self.fields,
        };
        let base = base.write(&covered, &member(&ListEntry::InnerList(input.clone())));
        let base = base.map_err(|error| match error.kind() {
            SignErrorKind::Missing { .. } => VerifyError::Missing,
            _ => VerifyError::Malformed,
        })?;
        if !key.verify(base.as_bytes(), signature) {
            return Err(VerifyError::Mismatch);
        }
        for covered in &covered {
            let component = &covered.component;
            if digest::is_digest(component)
                && digest::check(&head.headers, component, body) == Checked::Wrong
            {
                return Err(VerifyError::BodyMismatch);
            }
        }
        self.check_time(created, expires, now)?;
        Ok(VerifiedMessage {
            label: String::new(),
            key_id: key_id.unwrap_or_default(),
            tag: text(parameters, "tag")?,
            nonce: text(parameters, "nonce")?,
            created,
            expires,
            covered: covered
                .into_iter()
                .map(|covered| covered.component)
                .collect(),
        })
    }

    /// What a signature covers, if that is all it has to.
    fn covered(&self, input: &InnerList, body: &Bytes) -> Result<Vec<Covered>, VerifyError> {
        let mut all: Vec<Covered> = Vec::with_capacity(input.items.len());
        for item in &input.items {
            let covered = Covered::read(item).ok_or(VerifyError::Malformed)?;
            if all.iter().any(|other| other.component == covered.component) {
                return Err(VerifyError::Malformed);
            }
            all.push(covered);
        }
        let covers = |component: &Component| all.iter().any(|one| one.component == *component);
        if !self
            .required
            .iter()
            .all(|required| covers(&required.component))
        {
            return Err(VerifyError::NotCovered);
        }
        let digest = all
            .iter()
            .any(|covered| digest::is_digest(&covered.component));
        if !body.is_empty() && !digest && !self.unsigned_body {
            return Err(VerifyError::NotCovered);
        }
        Ok(all)
    }

    fn check_time(
        &self,
        created: Option<SigningTime>,
        expires: Option<SigningTime>,
        now: SystemTime,
    ) -> Result<(), VerifyError> {
        let now = SigningTime::new(now)
            .map_err(|_| VerifyError::TooOld)?
            .since_epoch();
        let since = |time: SigningTime| now.saturating_sub(time.since_epoch());
        let until = |time: SigningTime| time.since_epoch().saturating_sub(now);
        // Of an end alone nobody knows when it began: it may not be further away than a beginning.
        let far = match (created, expires) {
            (Some(created), _) => until(created) > self.ahead,
            (None, Some(expires)) => until(expires) > self.tolerance.saturating_add(self.ahead),
            (None, None) => false,
        };
        if far {
            return Err(VerifyError::TooEarly);
        }
        let late = expires.is_some_and(|expires| since(expires) > self.ahead);
        if late || created.is_some_and(|created| since(created) > self.tolerance) {
            return Err(VerifyError::TooOld);
        }
        Ok(())
    }
}

// === impl VerifiedMessage ===

impl VerifiedMessage {
    /// Returns the label of the signature.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the name of the key with which it was made; nothing if it names none.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Returns what it says it is for.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the nonce, if there is one: it must not have been seen before.
    #[must_use]
    pub fn nonce(&self) -> Option<&str> {
        self.nonce.as_deref()
    }

    /// Returns when it was made, if it says so.
    #[must_use]
    pub const fn created(&self) -> Option<SigningTime> {
        self.created
    }

    /// Returns until when it is valid, if it says so.
    #[must_use]
    pub const fn expires(&self) -> Option<SigningTime> {
        self.expires
    }

    /// Returns what it covers. Nothing else of the request is proven to be of the sender.
    #[must_use]
    pub fn covered(&self) -> &[Component] {
        &self.covered
    }
}

fn text(parameters: &Parameters, name: &str) -> Result<Option<String>, VerifyError> {
    match parameters.get(name) {
        None => Ok(None),
        Some(BareItem::String(text)) => Ok(Some(text.as_str().to_owned())),
        Some(_) => Err(VerifyError::Malformed),
    }
}

fn time(parameters: &Parameters, name: &str) -> Result<Option<SigningTime>, VerifyError> {
    match parameters.get(name) {
        None => Ok(None),
        Some(BareItem::Integer(seconds)) => {
            let seconds = u64::try_from(*seconds).map_err(|_| VerifyError::Malformed)?;
            let time = SigningTime::from_unit(seconds, Unit::Seconds);
            time.map(Some).map_err(|_| VerifyError::Malformed)
        }
        Some(_) => Err(VerifyError::Malformed),
    }
}
