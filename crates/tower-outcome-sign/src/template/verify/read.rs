//! Reading back what a template has written.

use std::time::Duration;

use super::VerifyError;
use crate::{
    Draft, Fresh, SigningTime, Unit,
    template::{Eval, HashAlgorithm, Part, Template, Value},
};

/// Signatures that are tried, of as many as a sender who changes keys has at once.
const SIGNATURES: usize = 8;

/// What a template has written into a request.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) at: Option<SigningTime>,
    pub(super) expires: Option<SigningTime>,
    pub(super) window: Option<Duration>,
    pub(super) nonce: Option<u64>,
    pub(super) token: Option<String>,
    signatures: Vec<Vec<u8>>,
    /// Whether there was one that is none.
    undecoded: bool,
}

// === impl Read ===

impl Read {
    /// Reads what was put in one place.
    pub(super) fn value(
        &mut self,
        template: &Template,
        value: &Value,
        text: &[u8],
        draft: &Draft,
    ) -> Result<(), VerifyError> {
        match value {
            Value::Text(parts) => self.text(template, parts, text, draft),
            Value::Items(items) => self.items(template, items, text, draft),
            Value::Signatures(prefix) => self.list(template, prefix, text),
        }
    }

    /// The signatures of which one has to be right.
    pub(super) fn signatures(&self) -> Result<&[Vec<u8>], VerifyError> {
        match (self.signatures.is_empty(), self.undecoded) {
            (true, true) => Err(VerifyError::Malformed),
            (true, false) => Err(VerifyError::Missing),
            (false, _) => Ok(&self.signatures),
        }
    }

    /// Reads parts, one after the other.
    fn text(
        &mut self,
        template: &Template,
        parts: &[Part],
        text: &[u8],
        draft: &Draft,
    ) -> Result<(), VerifyError> {
        let mut rest = text;
        for (at, part) in parts.iter().enumerate() {
            rest = match (part, parts.get(at + 1)) {
                (Part::KeyId, next) => key_id(template, next, rest)?,
                (Part::TokenUuid | Part::TokenHex, None) => self.whole_token(rest)?,
                _ => self.part(template, part, rest, draft)?,
            };
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(VerifyError::Malformed)
        }
    }

    /// Reads a list of signatures, separated by spaces. Those of other versions are passed over.
    fn list(&mut self, template: &Template, prefix: &str, text: &[u8]) -> Result<(), VerifyError> {
        for item in text.split(u8::is_ascii_whitespace) {
            if let Some(signature) = item.strip_prefix(prefix.as_bytes()) {
                self.signature(template, signature)?;
            }
        }
        Ok(())
    }

    /// Reads a list of `name=part`; names that nobody knows are passed over, and so is nothing between
    /// two commas.
    fn items(
        &mut self,
        template: &Template,
        items: &[(&'static str, Part)],
        text: &[u8],
        draft: &Draft,
    ) -> Result<(), VerifyError> {
        let mut seen = vec![false; items.len()];
        for item in text.split(|&byte| byte == b',') {
            let item = item.trim_ascii();
            if item.is_empty() && !text.trim_ascii().is_empty() {
                continue;
            }
            let Some(equals) = item.iter().position(|&byte| byte == b'=') else {
                return Err(VerifyError::Malformed);
            };
            let (name, value) = (&item[..equals], &item[equals + 1..]);
            let known = items.iter().position(|(known, _)| known.as_bytes() == name);
            let Some(known) = known else { continue };
            let part = &items[known].1;
            let again = std::mem::replace(&mut seen[known], true);
            match part {
                Part::Signature => self.signature(template, value)?,
                _ if again => return Err(VerifyError::Malformed),
                part => self.text(template, std::slice::from_ref(part), value, draft)?,
            }
        }
        if seen.contains(&false) {
            return Err(VerifyError::Missing);
        }
        Ok(())
    }

    /// Reads one of some signatures. Of a sender who changes keys, one may be in another form.
    fn signature(&mut self, template: &Template, text: &[u8]) -> Result<(), VerifyError> {
        if self.signatures.len() == SIGNATURES {
            return Err(VerifyError::Malformed);
        }
        let text = std::str::from_utf8(text).ok();
        match text.and_then(|text| template.encoding.decode(text)) {
            Some(signature) => self.signatures.push(signature),
            None => self.undecoded = true,
        }
        Ok(())
    }

    /// Reads a token behind which there is nothing, whatever it is made of.
    fn whole_token<'a>(&mut self, text: &'a [u8]) -> Result<&'a [u8], VerifyError> {
        let graphic = !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
        let token = std::str::from_utf8(text).ok().filter(|_| graphic);
        same(
            &mut self.token,
            token.ok_or(VerifyError::Malformed)?.to_owned(),
        )?;
        Ok(&[])
    }

    /// Reads one part, and returns what follows it.
    fn part<'a>(
        &mut self,
        template: &Template,
        part: &Part,
        text: &'a [u8],
        draft: &Draft,
    ) -> Result<&'a [u8], VerifyError> {
        let encoding = template.encoding;
        match part {
            Part::Timestamp(unit) => {
                let (count, rest) = number(text)?;
                same(&mut self.at, time(count, *unit)?)?;
                Ok(rest)
            }
            Part::TimestampRfc3339 => {
                let (date, rest) = text.split_at_checked(24).ok_or(VerifyError::Malformed)?;
                let date = std::str::from_utf8(date).map_err(|_| VerifyError::Malformed)?;
                let date = SigningTime::parse_rfc3339_millis(date);
                same(&mut self.at, date.map_err(|_| VerifyError::Malformed)?)?;
                Ok(rest)
            }
            Part::Expires(unit) => {
                let (count, rest) = number(text)?;
                same(&mut self.expires, time(count, *unit)?)?;
                Ok(rest)
            }
            Part::WindowMillis => {
                let (count, rest) = number(text)?;
                let window = Duration::from_millis(count);
                same(&mut self.window, window)?;
                Ok(rest)
            }
            Part::Nonce => {
                let (count, rest) = number(text)?;
                same(&mut self.nonce, count)?;
                Ok(rest)
            }
            Part::TokenUuid | Part::TokenHex => {
                let (token, rest) = run(text, |byte| {
                    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
                });
                let token =
                    String::from_utf8(token.to_vec()).map_err(|_| VerifyError::Malformed)?;
                if token.is_empty() {
                    return Err(VerifyError::Malformed);
                }
                same(&mut self.token, token)?;
                Ok(rest)
            }
            Part::Signature => {
                let (signature, rest) = run(text, |byte| encoding.has(byte));
                self.signature(template, signature)?;
                Ok(rest)
            }
            Part::Secret(secret) => {
                let length = secret.expose().len();
                let given = text.get(..length).ok_or(VerifyError::Mismatch)?;
                // What is compared are hashes, so that time tells nothing of the secret.
                let hash = |bytes: &[u8]| HashAlgorithm::Sha256.hash(&[bytes]);
                if hash(given) != hash(secret.expose()) {
                    return Err(VerifyError::Mismatch);
                }
                Ok(&text[length..])
            }
            // What both sides know.
            part => {
                let fresh = Fresh::new(SigningTime::EPOCH);
                let eval = Eval::new(template, &fresh);
                let known = eval.collect(std::slice::from_ref(part), draft);
                let known = known.map_err(|_| VerifyError::Missing)?;
                text.strip_prefix(&*known).ok_or(VerifyError::Mismatch)
            }
        }
    }
}

/// Reads the name of a key, which ends where the next part begins.
fn key_id<'a>(
    template: &Template,
    next: Option<&Part>,
    text: &'a [u8],
) -> Result<&'a [u8], VerifyError> {
    let own = template.key_id.expose();
    let end = match next {
        None => text.len(),
        Some(Part::Literal(next)) if !next.is_empty() => {
            let next = next.as_bytes();
            let found = text.windows(next.len()).position(|window| window == next);
            found.ok_or(VerifyError::Malformed)?
        }
        // It may go on in whatever comes next.
        Some(_) => own.len(),
    };
    match text.split_at_checked(end) {
        Some((name, rest)) if name == own => Ok(rest),
        _ => Err(VerifyError::UnknownKey),
    }
}

/// Notes what is said, which must be the same wherever it is said.
fn same<T: PartialEq>(slot: &mut Option<T>, value: T) -> Result<(), VerifyError> {
    if slot.as_ref().is_some_and(|before| *before != value) {
        return Err(VerifyError::Malformed);
    }
    *slot = Some(value);
    Ok(())
}

fn run(text: &[u8], belongs: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| !belongs(byte));
    text.split_at(end.unwrap_or(text.len()))
}

fn number(text: &[u8]) -> Result<(u64, &[u8]), VerifyError> {
    let (digits, rest) = run(text, |byte| byte.is_ascii_digit());
    let digits = std::str::from_utf8(digits).map_err(|_| VerifyError::Malformed)?;
    // A leading zero would be another text of the same number.
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(VerifyError::Malformed);
    }
    let number = digits.parse().map_err(|_| VerifyError::Malformed)?;
    Ok((number, rest))
}

fn time(count: u64, unit: Unit) -> Result<SigningTime, VerifyError> {
    SigningTime::from_unit(count, unit).map_err(|_| VerifyError::Malformed)
}
