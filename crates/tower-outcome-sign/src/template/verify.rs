//! The same templates the other way round.

use std::{
    error::Error,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::Request;

use super::{Assign, Eval, Target, Template, Value, body_field, eval::unescaped};
use crate::{Draft, Fresh, Nonce, SigningTime, Token, draft::field};

mod read;

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
/// let verifier = Verifier::new(Template::stripe_webhook("whsec_test_secret")?)
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
#[derive(Clone, Debug)]
pub struct Verifier {
    template: Template,
    tolerance: Duration,
    ahead: Duration,
}

/// What a verified request says of its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    time: Option<SigningTime>,
    nonce: Option<Nonce>,
    token: Option<String>,
}

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
    /// Creates a verifier with a tolerance of the template's window, or five minutes where it has
    /// none, and of a second for times that have not come.
    #[must_use]
    pub fn new(template: Template) -> Self {
        let tolerance = template.window.unwrap_or(Duration::from_secs(300));
        Self {
            template,
            tolerance,
            ahead: Duration::from_secs(1),
        }
    }

    /// Sets how old a signature may be.
    #[must_use]
    pub const fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets how far ahead of this clock its time may be.
    #[must_use]
    pub const fn ahead(mut self, ahead: Duration) -> Self {
        self.ahead = ahead;
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
        let template = &self.template;
        let mut draft = Draft::new(request.clone());
        let mut read = Read::default();
        for assign in template.before.iter().chain(&template.after) {
            let text = take(template, &mut draft, assign)?;
            match &assign.value {
                Value::Text(parts) => read.text(template, parts, &text, &draft)?,
                Value::Items(items) => read.items(template, items, &text, &draft)?,
            }
        }
        let time = read.time(template)?;
        let mut fresh = Fresh::new(time.unwrap_or(read::EPOCH));
        if let Some(nonce) = read.nonce {
            fresh = fresh.with_nonce(Nonce::new(nonce));
        }
        if let Some(token) = &read.token {
            fresh = fresh.with_token(Token::text(token.as_str()));
        }
        let mut eval = Eval::new(template, &fresh);
        if let Some(window) = read.window {
            eval.window = window;
        }
        let mut right = false;
        for signature in &read.signatures {
            let verified = template
                .key
                .verify(&template.signed, &eval, &draft, signature);
            right |= verified.map_err(|_| VerifyError::Missing)?;
        }
        if !right {
            return Err(VerifyError::Mismatch);
        }
        if let Some(time) = time {
            let now = SigningTime::new(now).map_err(|_| VerifyError::TooOld)?;
            let (now, time) = (now.since_epoch(), time.since_epoch());
            if now.saturating_sub(time) > self.tolerance {
                return Err(VerifyError::TooOld);
            }
            if time.saturating_sub(now) > self.ahead {
                return Err(VerifyError::TooEarly);
            }
        }
        Ok(Verified {
            time,
            nonce: read.nonce.map(Nonce::new),
            token: read.token,
        })
    }
}

/// The text that was put somewhere. A signature in the query is taken out of it: it was put there
/// after signing.
fn take(template: &Template, draft: &mut Draft, assign: &Assign) -> Result<Vec<u8>, VerifyError> {
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
            let text = unescaped_value(field(query, name).ok_or(VerifyError::Missing)?)?;
            let has_signature = super::builder::has_signature(assign);
            if has_signature {
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
        Target::BodyField(name) => body_field::get(draft, name),
    }
}

/// A value of a query. Base64 that somebody forgot to escape has a plus sign that is no space.
fn unescaped_value(value: &str) -> Result<Vec<u8>, VerifyError> {
    Ok(unescaped(&value.replace('+', "%2B")))
}

// === impl Verified ===

impl Verified {
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
