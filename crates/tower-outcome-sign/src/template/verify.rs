//! The same templates the other way round.

use std::{
    error::Error,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Request, uri::Scheme};
use tower_outcome_core::ConfigError;

use super::{Assign, Eval, Part, Target, Template, Value, body_field, eval::unescaped};
use crate::{Draft, Fresh, Nonce, SigningTime, Token, draft::field, secret::Redacted};

mod read;
mod readable;

use self::read::Read;

/// Verifies requests that were signed by a [`Template`], or webhooks in its manner.
///
/// Signatures are compared in constant time. A nonce or token that was seen before is for the caller
/// to find out, who keeps what was seen; so is whether the sender may do what is asked.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use bytes::Bytes;
/// use http::Request;
/// use tower_outcome_sign::{Template, Verifier};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let verifier = Verifier::new(Template::stripe_webhook("whsec_test_secret")?)?
///     .tolerance(Duration::from_secs(300));
/// let webhook = Request::post("/webhook")
///     .header("stripe-signature", "t=1492774577,v1=799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f")
///     .body(Bytes::from(r#"{"id":"evt_1"}"#))?;
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_492_774_600);
/// assert!(verifier.verify(&webhook, now).is_ok());
/// assert!(verifier.verify(&webhook, now + Duration::from_secs(300)).is_err());
/// # Ok(())
/// # }
/// ```
///
/// A gateway with several clients takes a template for each key, and finds it by the name of the key in the
/// request:
///
/// ```
/// # use tower_outcome_sign::{Template, Verifier};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clients = [("alice", "her secret"), ("bob", "his secret")];
/// let templates = clients.map(|(key_id, secret)| Template::bybit(key_id, secret));
/// let verifier = Verifier::any_of(templates.into_iter().collect::<Result<Vec<_>, _>>()?)?;
/// # let _ = verifier;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Verifier {
    /// One, or some with different names of keys.
    templates: Vec<Template>,
    tolerance: Option<Duration>,
    ahead: Option<Duration>,
    scheme: Scheme,
}

/// What a verified request says of its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    key_id: Option<Name>,
    time: Option<SigningTime>,
    expires: Option<SigningTime>,
    nonce: Option<Nonce>,
    token: Option<String>,
}

/// The name of a key, which is of no use without it, and nothing to be printed all the same.
#[derive(Clone, PartialEq, Eq)]
struct Name(String);

/// Says why a request was not accepted, without saying what would have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// It has no signature in the place where it should be, or another part is missing.
    Missing,
    /// Something is not in the form that it should have.
    Malformed,
    /// The signature is not that of this request under this key.
    Mismatch,
    /// Something is not signed that has to be.
    NotCovered,
    /// The signature is right, and the body is not the one whose digest was signed.
    BodyMismatch,
    /// It was signed with a key of a name that is not known.
    UnknownKey,
    /// The signature is right, and older than is tolerated.
    TooOld,
    /// The signature is right, and of a time that has not come.
    TooEarly,
}

// === impl Verifier ===

impl Verifier {
    /// Creates a verifier for one key.
    ///
    /// # Errors
    ///
    /// If what the template writes cannot be read back: a number or token with something behind it that
    /// might belong to it, times in different units, a part that is written and not signed, or what is
    /// only written as a part of a hash.
    pub fn new(template: Template) -> Result<Self, ConfigError> {
        Self::any_of([template])
    }

    /// Creates a verifier for several keys: that counts which the request names.
    ///
    /// # Errors
    ///
    /// If there are none; if what one of them writes cannot be read back; or if of several one does not
    /// write the name of its key, or two write the same in the same place.
    pub fn any_of(templates: impl IntoIterator<Item = Template>) -> Result<Self, ConfigError> {
        let templates: Vec<_> = templates.into_iter().collect();
        if templates.is_empty() {
            return Err(ConfigError::new(
                "templates",
                Redacted("none"),
                "a template",
            ));
        }
        for (at, template) in templates.iter().enumerate() {
            readable::check(template)?;
            let place = named_in(template);
            let same = |other: &Template| {
                other.key_id.expose() == template.key_id.expose() && named_in(other) == place
            };
            if templates.len() > 1 && (place.is_none() || templates[..at].iter().any(same)) {
                let expected = "a name of its own for each key, which is written into the request";
                return Err(ConfigError::new("key_id", Redacted("[redacted]"), expected));
            }
        }
        Ok(Self {
            templates,
            tolerance: None,
            ahead: None,
            scheme: Scheme::HTTPS,
        })
    }

    /// Sets how old a signature may be, and how far away its end.
    ///
    /// Where the request says itself for how long it is valid, and signs that, it is so for no longer; by
    /// default five minutes at most. Where it does not, the default is the window of the template.
    #[must_use]
    pub const fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Sets how far ahead of this clock its time may be: a second by default, and for webhooks as much as
    /// it may be old, since of them this clock is the one that nobody has set right.
    #[must_use]
    pub const fn ahead(mut self, ahead: Duration) -> Self {
        self.ahead = Some(ahead);
        self
    }

    /// Sets the scheme by which requests come in, which they do not say themselves, for
    /// [`Part::Url`](super::Part::Url): `https` by default.
    #[must_use]
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Verifies a request with its whole body, as it was received.
    ///
    /// # Errors
    ///
    /// If the request was not signed with the key, or not for now.
    pub fn verify(
        &self,
        request: &Request<Bytes>,
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        let mut draft = Draft::new(request.clone());
        let template = self.find(&draft)?;
        let mut read = Read::default();
        for assign in template.before.iter().chain(&template.after) {
            let text = match take(template, &mut draft, assign) {
                Err(VerifyError::Missing) if template.may_lack(assign) => continue,
                text => text?,
            };
            read.value(template, &assign.value, &text, &draft)?;
        }
        let mut fresh = Fresh::new(read.at.unwrap_or(SigningTime::EPOCH));
        if let Some(nonce) = read.nonce {
            fresh = fresh.with_nonce(Nonce::new(nonce));
        }
        if let Some(token) = &read.token {
            fresh = fresh.with_token(Token::text(token.as_str()));
        }
        let mut eval = Eval::new(template, &fresh);
        eval.expires = read.expires;
        eval.received = Some(&self.scheme);
        if let Some(window) = read.window {
            eval.window = window;
        }
        let mut right = false;
        for signature in read.signatures()? {
            let verified = template
                .key
                .verify_parts(&template.signed, &eval, &draft, signature);
            right |= verified.map_err(|_| VerifyError::Missing)?;
        }
        if !right {
            return Err(VerifyError::Mismatch);
        }
        self.check_time(template, &read, now)?;
        Ok(Verified {
            key_id: named_in(template).map(|_| Name::of(template)),
            time: read.at,
            expires: read.expires,
            nonce: read.nonce.map(Nonce::new),
            token: read.token,
        })
    }

    /// The template whose key the request names.
    fn find(&self, draft: &Draft) -> Result<&Template, VerifyError> {
        if let [template] = &*self.templates {
            return Ok(template);
        }
        let mut error = VerifyError::Missing;
        for template in &self.templates {
            let mut named = Ok(());
            for assign in template.before.iter().chain(&template.after) {
                if names_key(assign) && named.is_ok() {
                    named = text_of(template, draft, assign).and_then(|text| {
                        Read::default().value(template, &assign.value, &text, draft)
                    });
                }
            }
            match named {
                Ok(()) => return Ok(template),
                Err(VerifyError::Missing) => {}
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    fn check_time(
        &self,
        template: &Template,
        read: &Read,
        now: SystemTime,
    ) -> Result<(), VerifyError> {
        let now = SigningTime::new(now).map_err(|_| VerifyError::TooOld)?;
        let now = now.since_epoch();
        let day_to_day = Duration::from_secs(300);
        let tolerance = self.tolerance.unwrap_or(match template.window {
            Some(window) if template.lifetime.is_told() => window.max(day_to_day),
            window => window.unwrap_or(day_to_day),
        });
        let ahead = match self.ahead {
            Some(ahead) => ahead,
            None if template.webhook => tolerance,
            None => Duration::from_secs(1),
        };
        if let Some(at) = read.at {
            let at = at.since_epoch();
            // One that might have said how long it is valid, and has not, is so for the usual time.
            let window = read.window.or(template.window);
            let window = window.filter(|_| template.lifetime.tells_window());
            let age = now.saturating_sub(at);
            if age > tolerance || window.is_some_and(|window| age > window) {
                return Err(VerifyError::TooOld);
            }
            if at.saturating_sub(now) > ahead {
                return Err(VerifyError::TooEarly);
            }
        }
        if let Some(expires) = read.expires {
            let expires = expires.since_epoch();
            if now > expires {
                return Err(VerifyError::TooOld);
            }
            if expires.saturating_sub(now) > tolerance.saturating_add(ahead) {
                return Err(VerifyError::TooEarly);
            }
        }
        Ok(())
    }
}

impl Template {
    /// Whether a request is right without it: a window that is only told, of which the server then has its
    /// own.
    fn may_lack(&self, assign: &Assign) -> bool {
        let mut signed = false;
        for part in &self.signed {
            part.visit(&mut |part| signed |= matches!(part, Part::WindowMillis));
        }
        let only =
            matches!(&assign.value, Value::Text(parts) if matches!(&**parts, [Part::WindowMillis]));
        only && !signed
    }
}

/// Where the name of the key is written.
fn named_in(template: &Template) -> Option<&Target> {
    let mut all = template.before.iter().chain(&template.after);
    all.find(|assign| names_key(assign))
        .map(|assign| &assign.target)
}

fn names_key(assign: &Assign) -> bool {
    let mut named = false;
    assign
        .value
        .visit(&mut |part| named |= matches!(part, Part::KeyId));
    named
}

/// The text that was put somewhere. A signature in the query is taken out of it: it was put there
/// after signing.
fn take(template: &Template, draft: &mut Draft, assign: &Assign) -> Result<Vec<u8>, VerifyError> {
    let text = text_of(template, draft, assign)?;
    if let (Target::Query(name), true) = (&assign.target, assign.value.has_signature()) {
        let query = draft.uri().query().unwrap_or_default();
        let left: Vec<&str> = query
            .split('&')
            .filter(|pair| pair.split_once('=').is_none_or(|(key, _)| key != name))
            .collect();
        let mut target = draft.uri().path().to_owned();
        if !left.is_empty() {
            target.push('?');
            target.push_str(&left.join("&"));
        }
        let put = draft.set_path_and_query(target);
        put.map_err(|_| VerifyError::Malformed)?;
    }
    Ok(text)
}

/// The text that was put somewhere.
fn text_of(template: &Template, draft: &Draft, assign: &Assign) -> Result<Vec<u8>, VerifyError> {
    match &assign.target {
        Target::Header(name) => {
            let mut values = draft.headers().get_all(name).iter();
            match (values.next(), values.next()) {
                (Some(value), None) => Ok(value.as_bytes().to_vec()),
                (None, _) => Err(VerifyError::Missing),
                _ => Err(VerifyError::Malformed),
            }
        }
        Target::Query(name) => {
            let query = draft.uri().query().unwrap_or_default();
            // However it is written, it must be there once: of two, one would be signed and the other
            // gone by.
            let named = |pair: &&str| unescaped(pair.split('=').next().unwrap_or_default());
            let count = query
                .split('&')
                .filter(|pair| named(pair) == name.as_bytes());
            let in_body = template.needs.body() && body_field::is_in_form(draft, name);
            if count.count() > 1 || in_body {
                return Err(VerifyError::Malformed);
            }
            Ok(unescaped_value(
                field(query, name).ok_or(VerifyError::Missing)?,
            ))
        }
        Target::BodyField(name) => body_field::get(draft, name),
    }
}

/// A value of a query. Base64 that somebody forgot to escape has a plus sign that is no space.
fn unescaped_value(value: &str) -> Vec<u8> {
    unescaped(&value.replace('+', "%2B"))
}

// === impl Verified ===

impl Verified {
    /// Returns the name of the key with which it was signed, if it names one.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_ref().map(|name| name.0.as_str())
    }

    /// Returns until when it says that it is valid, if it does.
    #[must_use]
    pub const fn expires(&self) -> Option<SigningTime> {
        self.expires
    }

    /// Returns the time in the signature, if it has one.
    #[must_use]
    pub const fn time(&self) -> Option<SigningTime> {
        self.time
    }

    /// Returns the nonce, if there is one: it must be higher than all before under this key.
    #[must_use]
    pub const fn nonce(&self) -> Option<Nonce> {
        self.nonce
    }

    /// Returns the token, if there is one: it must not have been seen before.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

// === impl Name ===

impl Name {
    fn of(template: &Template) -> Self {
        Self(String::from_utf8_lossy(template.key_id.expose()).into_owned())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

// === impl VerifyError ===

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "a part of the signature is missing",
            Self::Malformed => "a part of the signature is malformed",
            Self::Mismatch => "the signature is not that of the request",
            Self::NotCovered => "a part of the request is not signed",
            Self::BodyMismatch => "the body is not the one that was signed",
            Self::UnknownKey => "the signature is of an unknown key",
            Self::TooOld => "the signature is too old",
            Self::TooEarly => "the signature is of a time to come",
        })
    }
}

impl Error for VerifyError {}
