//! Describing a signer.

use std::time::Duration;

use http::HeaderName;
use tower_outcome_core::ConfigError;

use super::{Assign, Key, Lifetime, Part, Target, Template, TextEncoding, Value};
use crate::{Needs, Secret, secret::Redacted};

mod check;

/// Builds a [`Template`]; start with [`Template::builder`].
///
/// What is written into the request is written in the order of the calls; what does not contain the
/// signature comes before signing, so that a query or body that is signed has it already.
#[derive(Debug)]
#[must_use]
pub struct TemplateBuilder {
    key: Key,
    key_id: Secret,
    signed: Vec<Part>,
    encoding: TextEncoding,
    assigns: Vec<Assign>,
    window: Option<Duration>,
    webhook: bool,
    wrong: Option<ConfigError>,
}

// === impl TemplateBuilder ===

impl TemplateBuilder {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            key_id: Secret::new(""),
            signed: Vec::new(),
            encoding: TextEncoding::HexLower,
            assigns: Vec::new(),
            window: None,
            webhook: false,
            wrong: None,
        }
    }

    /// Sets the public half of the key, for [`Part::KeyId`].
    pub fn key_id(mut self, id: impl Into<String>) -> Self {
        self.key_id = Secret::new(id.into());
        self
    }

    /// Sets what is signed: the parts, one after the other, with nothing in between.
    pub fn sign(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        self.signed = parts.into_iter().collect();
        self
    }

    /// Sets how the signature is written: in lower-case hexadecimal digits by default.
    pub const fn signature_as(mut self, encoding: TextEncoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Writes parts into a header. One that names or proves the sender is marked sensitive.
    pub fn header(mut self, name: &str, parts: impl IntoIterator<Item = Part>) -> Self {
        let value = Value::Text(parts.into_iter().collect());
        match self.header_name(name) {
            Some(name) => self.assign(Target::Header(name), value),
            None => self,
        }
    }

    /// Writes a list of `name=part`, separated by commas, into a header.
    pub fn header_items(
        mut self,
        name: &str,
        items: impl IntoIterator<Item = (&'static str, Part)>,
    ) -> Self {
        let value = Value::Items(items.into_iter().collect());
        match self.header_name(name) {
            Some(name) => self.assign(Target::Header(name), value),
            None => self,
        }
    }

    /// Writes the signature into a header after a prefix, such as `v1,`. What verifies takes a list of
    /// them, separated by spaces, and passes over those with other prefixes.
    #[cfg(feature = "hmac")]
    pub(super) fn header_signatures(mut self, name: &str, prefix: &'static str) -> Self {
        match self.header_name(name) {
            Some(name) => self.assign(Target::Header(name), Value::Signatures(prefix)),
            None => self,
        }
    }

    /// Says that it is of a server that sends, whose clock may be off by as much as it may be late.
    #[cfg(feature = "hmac")]
    pub(super) const fn webhook(mut self) -> Self {
        self.webhook = true;
        self
    }

    /// Adds a parameter to the query; the value is escaped, and the name must not need it.
    pub fn query(self, name: impl Into<String>, parts: impl IntoIterator<Item = Part>) -> Self {
        let value = Value::Text(parts.into_iter().collect());
        self.assign(Target::Query(name.into()), value)
    }

    /// Adds a field at the front of the body: a form, or by its content type an object in JSON, where
    /// it is a string.
    pub fn body_field(
        self,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = Part>,
    ) -> Self {
        let value = Value::Text(parts.into_iter().collect());
        self.assign(Target::BodyField(name.into()), value)
    }

    /// Sets how long after its time the server accepts a request. Without it a signature does not age:
    /// its nonce protects it.
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Builds the template.
    ///
    /// # Errors
    ///
    /// If nothing is signed or the signature goes nowhere; if a name or a value that is known already
    /// cannot be written, or is written twice; if the name of the key is used and there is none; if what
    /// is new for each attempt is signed and not written, so that nobody could verify it; or if the
    /// signature is asked for where it cannot be yet.
    pub fn build(self) -> Result<Template, ConfigError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        check::all(&self.key_id, &self.signed, &self.assigns)?;
        if self.signed.is_empty() {
            return Err(ConfigError::new(
                "sign",
                Redacted("empty"),
                "something to sign",
            ));
        }
        if self.window == Some(Duration::ZERO) {
            return Err(ConfigError::new(
                "window",
                Duration::ZERO,
                "longer than zero",
            ));
        }
        let (after, before): (Vec<_>, _) = self
            .assigns
            .into_iter()
            .partition(|assign| assign.value.has_signature());
        if after.is_empty() {
            let expected = "a header or parameter for Part::Signature";
            return Err(ConfigError::new("signature", Redacted("nowhere"), expected));
        }
        if after
            .iter()
            .any(|assign| matches!(assign.target, Target::BodyField(_)))
        {
            let expected = "a header or parameter: a body cannot hold what is made of it";
            return Err(ConfigError::new(
                "signature",
                Redacted("in the body"),
                expected,
            ));
        }
        let mut needs = if self.key.signs() {
            Needs::HEAD
        } else {
            Needs::HEAD.of_verifier()
        };
        let mut lifetime = Lifetime::default();
        let mut covered = Vec::new();
        let mut lacks_window = false;
        let mut signs_itself = false;
        let window = self.window;
        let mut look = |part: &Part| {
            if part.needs_body() {
                needs = needs.and_body();
            }
            lifetime.look(part);
            match part {
                Part::Nonce => needs = needs.and_nonce(),
                Part::TokenUuid | Part::TokenHex => needs = needs.and_token(),
                Part::WindowMillis | Part::Expires(_) => lacks_window |= window.is_none(),
                _ => {}
            }
        };
        for part in &self.signed {
            part.visit(&mut look);
            part.visit(&mut |part| {
                signs_itself |= matches!(part, Part::Signature);
                covered.extend(part.header());
            });
        }
        for assign in before.iter().chain(&after) {
            assign.value.visit(&mut look);
        }
        if before
            .iter()
            .any(|assign| matches!(assign.target, Target::BodyField(_)))
        {
            needs = needs.and_body();
        }
        if signs_itself {
            let expected = "parts that are there before it";
            return Err(ConfigError::new(
                "sign",
                Redacted("the signature"),
                expected,
            ));
        }
        if lacks_window {
            let expected = "a window, which a part speaks of";
            return Err(ConfigError::new("window", Redacted("none"), expected));
        }
        Ok(Template {
            key: self.key,
            key_id: self.key_id,
            before,
            signed: self.signed,
            encoding: self.encoding,
            after,
            window: self.window,
            lifetime,
            webhook: self.webhook,
            needs,
            covered,
        })
    }

    fn header_name(&mut self, name: &str) -> Option<HeaderName> {
        let parsed = HeaderName::try_from(name).ok();
        if parsed.is_none() && self.wrong.is_none() {
            self.wrong = Some(ConfigError::new("header", name, "a header name"));
        }
        parsed
    }

    fn assign(mut self, target: Target, value: Value) -> Self {
        let mut secret = false;
        value.visit(&mut |part| secret |= part.is_secret());
        self.assigns.push(Assign {
            target,
            value,
            secret,
        });
        self
    }
}
