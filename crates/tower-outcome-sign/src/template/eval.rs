//! What parts stand for, in a request.

use std::{collections::BTreeSet, time::Duration};

use http::{HeaderMap, HeaderName, header::CONTENT_TYPE, uri::Scheme};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::{HashAlgorithm, Part, Template, lifetime::end_in};
use crate::{
    Draft, Fresh, SignError, SignErrorKind, SigningTime, Unit,
    host::{host, one_host},
};

/// What parts stand for, in one attempt.
pub(super) struct Eval<'a> {
    pub(super) key_id: &'a [u8],
    pub(super) fresh: &'a Fresh,
    pub(super) window: Duration,
    /// The end that was written, where that is read and not made.
    pub(super) expires: Option<SigningTime>,
    /// The scheme by which a request was received, where it does not say.
    pub(super) received: Option<&'a Scheme>,
    pub(super) signature: Option<&'a str>,
}

// === impl Eval ===

impl<'a> Eval<'a> {
    #[inline]
    pub(super) fn new(template: &'a Template, fresh: &'a Fresh) -> Self {
        let window = template.window.unwrap_or_default();
        let window = template.lifetime.window(window, fresh);
        Self {
            key_id: template.key_id.expose(),
            fresh,
            window,
            expires: None,
            received: None,
            signature: None,
        }
    }

    /// Writes parts one after the other.
    pub(super) fn collect(&self, parts: &[Part], draft: &Draft) -> Result<Vec<u8>, SignError> {
        let mut out = Vec::with_capacity(128);
        for part in parts {
            self.feed(part, draft, &mut |bytes| out.extend_from_slice(bytes))?;
        }
        Ok(out)
    }

    /// Hands on what a part stands for.
    #[inline]
    pub(super) fn feed(
        &self,
        part: &Part,
        draft: &Draft,
        out: &mut impl FnMut(&[u8]),
    ) -> Result<(), SignError> {
        match part {
            Part::Literal(text) => out(text.as_bytes()),
            Part::Secret(secret) => out(secret.expose()),
            Part::KeyId => out(self.key_id),
            Part::Timestamp(unit) => decimal(in_unit(self.fresh.time(), *unit)?, out),
            Part::Method => out(draft.method().as_str().as_bytes()),
            Part::Path => out(draft.uri().path().as_bytes()),
            Part::PathAndQuery => {
                let target = draft.uri().path_and_query();
                out(target.map_or("/", |target| target.as_str()).as_bytes());
            }
            Part::Query => out(draft.uri().query().unwrap_or_default().as_bytes()),
            Part::Body => out(draft.body()?),
            Part::WindowMillis => decimal(Unit::Millis.count_up(self.window), out),
            Part::Nonce => decimal(self.fresh.nonce()?.get(), out),
            Part::Signature => {
                let signature = self
                    .signature
                    .ok_or_else(|| SignError::missing("signature"))?;
                out(signature.as_bytes());
            }
            _ => return self.feed_rare(part, draft, out),
        }
        Ok(())
    }

    fn feed_rare(
        &self,
        part: &Part,
        draft: &Draft,
        out: &mut dyn FnMut(&[u8]),
    ) -> Result<(), SignError> {
        match part {
            Part::TimestampRfc3339 => out(self.fresh.time().to_rfc3339_millis().as_bytes()),
            Part::Expires(unit) => {
                let end = match self.expires {
                    Some(end) => unit.count_up(end.since_epoch()),
                    None => end_in(*unit, self.window, self.fresh.time()),
                };
                decimal(end, &mut |bytes| out(bytes));
            }
            Part::TokenUuid => out(self.fresh.token()?.to_uuid().as_bytes()),
            Part::TokenHex => out(self.fresh.token()?.to_hex().as_bytes()),
            Part::MethodLower => out(draft.method().as_str().to_ascii_lowercase().as_bytes()),
            Part::Host => out(host(draft)?.as_bytes()),
            Part::PathAfter(prefix) => {
                let path = draft.uri().path();
                let rest = path.strip_prefix(&**prefix).unwrap_or(path);
                out(rest.as_bytes());
            }
            Part::BodyHash(algorithm, encoding) => {
                let hash = algorithm.hash(&[draft.body()?]);
                out(encoding.encode(&hash).as_bytes());
            }
            Part::Hash(algorithm, parts) => {
                let mut hashing = Hashing::new(*algorithm);
                for part in parts {
                    // One level down, through a pointer: this may be nested.
                    let feed: &mut dyn FnMut(&[u8]) = &mut |bytes| hashing.update(bytes);
                    self.feed_any(part, draft, feed)?;
                }
                out(&hashing.finish());
            }
            Part::Header(name) => out(one_value(draft.headers(), name)?),
            Part::ContentTypeOfBody => {
                if !draft.body()?.is_empty() {
                    out(one_value(draft.headers(), &CONTENT_TYPE)?);
                }
            }
            Part::Url => {
                let uri = draft.uri();
                let scheme = uri.scheme().or(self.received);
                let scheme = scheme.ok_or_else(|| SignError::missing("scheme"))?;
                let authority = match uri.authority() {
                    Some(authority) => Some(authority.as_str()),
                    None => one_host(draft.headers())?,
                };
                let authority = authority.ok_or_else(|| SignError::missing("host"))?;
                out(scheme.as_str().as_bytes());
                out(b"://");
                out(authority.as_bytes());
                let target = uri.path_and_query();
                out(target.map_or("/", |target| target.as_str()).as_bytes());
            }
            Part::SortedForm => sorted_form(draft.body()?, out)?,
            _ => unreachable!("what is common was dealt with before"),
        }
        Ok(())
    }

    fn feed_any(
        &self,
        part: &Part,
        draft: &Draft,
        out: &mut dyn FnMut(&[u8]),
    ) -> Result<(), SignError> {
        self.feed(part, draft, &mut |bytes: &[u8]| out(bytes))
    }
}

/// Counts a time, if there is a number for it: of nanoseconds there is none after the year 2554.
#[inline]
fn in_unit(time: SigningTime, unit: Unit) -> Result<u64, SignError> {
    match time.count(unit) {
        u64::MAX => Err(SignErrorKind::TimeOutOfRange.into()),
        count => Ok(count),
    }
}

/// The value of a header. Which of several would be meant, nobody has written down.
fn one_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a [u8], SignError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value.as_bytes()),
        _ => Err(SignError::missing(format!("one header {name}"))),
    }
}

/// The fields of a form, unescaped and in order; the same field with the same value once.
fn sorted_form(body: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(), SignError> {
    let body = std::str::from_utf8(body).map_err(|_| SignError::encoding("form"))?;
    let mut fields = BTreeSet::new();
    for pair in body.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        fields.insert((unescaped(name), unescaped(value)));
    }
    for (name, value) in fields {
        out(&name);
        out(&value);
    }
    Ok(())
}

/// Undoes the escapes of a form. What is no escape stays as it is.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = match (bytes.get(at + 1), bytes.get(at + 2)) {
            (Some(&high), Some(&low)) if bytes[at] == b'%' => digit(high).zip(digit(low)),
            _ => None,
        };
        match escape.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    out
}

/// Hands on a number in decimal digits.
#[inline]
fn decimal(mut number: u64, out: &mut impl FnMut(&[u8])) {
    // As many digits as the largest number has.
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out(&digits[at..]);
}

/// A hash of which nobody knows at compile time which it is.
enum Hashing {
    Sha1(Sha1),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

// === impl Hashing ===

impl Hashing {
    fn new(algorithm: HashAlgorithm) -> Self {
        match algorithm {
            HashAlgorithm::Sha1 => Self::Sha1(Sha1::new()),
            HashAlgorithm::Sha256 => Self::Sha256(Sha256::new()),
            HashAlgorithm::Sha384 => Self::Sha384(Sha384::new()),
            HashAlgorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hash) => hash.update(bytes),
            Self::Sha256(hash) => hash.update(bytes),
            Self::Sha384(hash) => hash.update(bytes),
            Self::Sha512(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha1(hash) => hash.finalize().to_vec(),
            Self::Sha256(hash) => hash.finalize().to_vec(),
            Self::Sha384(hash) => hash.finalize().to_vec(),
            Self::Sha512(hash) => hash.finalize().to_vec(),
        }
    }
}

// === impl HashAlgorithm ===

impl HashAlgorithm {
    pub(super) fn hash(self, parts: &[&[u8]]) -> Vec<u8> {
        let mut hashing = Hashing::new(self);
        for part in parts {
            hashing.update(part);
        }
        hashing.finish()
    }
}
