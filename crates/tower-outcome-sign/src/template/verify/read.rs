//! Reading back what a template has written.

use std::time::Duration;

use super::VerifyError;
use crate::{
    Draft, Fresh, SigningTime, Unit,
    template::{Eval, HashAlgorithm, Part, Template},
};

/// The Unix epoch, for templates without a time.
pub(super) const EPOCH: SigningTime = SigningTime::EPOCH;

/// Signatures that are tried, of as many as a sender who changes keys has at once.
const SIGNATURES: usize = 8;

/// What a template has written into a request.
#[derive(Debug, Default)]
pub(super) struct Read {
    at: Option<SigningTime>,
    expires: Option<SigningTime>,
    pub(super) window: Option<Duration>,
    pub(super) nonce: Option<u64>,
    pub(super) token: Option<String>,
    pub(super) signatures: Vec<Vec<u8>>,
}

// === impl Read ===

impl Read {
    /// Reads parts, one after the other. A list of signatures is separated by spaces.
    pub(super) fn text(
        &mut self,
        template: &Template,
        parts: &[Part],
        text: &[u8],
        draft: &Draft,
    ) -> Result<(), VerifyError> {
        let has_signature = parts.iter().any(|part| matches!(part, Part::Signature));
        let mut rest = text;
        loop {
            for part in parts {
                rest = self.part(template, part, rest, draft)?;
            }
            match rest.split_first() {
                None => return Ok(()),
                Some((b' ', more)) if has_signature && self.signatures.len() < SIGNATURES => {
                    rest = more;
                }
                Some(_) => return Err(VerifyError::Malformed),
            }
        }
    }

    /// Reads a list of `name=part`; names that nobody knows are passed over.
    pub(super) fn items(
        &mut self,
        template: &Template,
        items: &[(&'static str, Part)],
        text: &[u8],
        draft: &Draft,
    ) -> Result<(), VerifyError> {
        let mut seen = vec![false; items.len()];
        for item in text.split(|&byte| byte == b',') {
            let item = item.trim_ascii();
            let Some(equals) = item.iter().position(|&byte| byte == b'=') else {
                return Err(VerifyError::Malformed);
            };
            let (name, value) = (&item[..equals], &item[equals + 1..]);
            let known = items.iter().position(|(known, _)| known.as_bytes() == name);
            let Some(known) = known else { continue };
            let part = &items[known].1;
            let again = std::mem::replace(&mut seen[known], true);
            let may_repeat = matches!(part, Part::Signature) && self.signatures.len() < SIGNATURES;
            if again && !may_repeat || !self.part(template, part, value, draft)?.is_empty() {
                return Err(VerifyError::Malformed);
            }
        }
        if seen.contains(&false) {
            return Err(VerifyError::Missing);
        }
        Ok(())
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
                let signature = std::str::from_utf8(signature).ok();
                let signature = signature.and_then(|signature| encoding.decode(signature));
                self.signatures
                    .push(signature.ok_or(VerifyError::Malformed)?);
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
                let fresh = Fresh::new(EPOCH);
                let eval = Eval::new(template, &fresh);
                let known = eval.collect(std::slice::from_ref(part), draft);
                let known = known.map_err(|_| VerifyError::Missing)?;
                text.strip_prefix(&*known).ok_or(VerifyError::Mismatch)
            }
        }
    }

    /// The time at which it was signed.
    pub(super) fn time(&self, template: &Template) -> Result<Option<SigningTime>, VerifyError> {
        match (self.at, self.expires) {
            (Some(at), _) => Ok(Some(at)),
            (None, Some(expires)) => {
                let window = template.window.unwrap_or_default();
                let at = expires.since_epoch().checked_sub(window);
                let at = at.map(|at| std::time::UNIX_EPOCH + at);
                let at = at.and_then(|at| SigningTime::new(at).ok());
                at.map(Some).ok_or(VerifyError::Malformed)
            }
            (None, None) => Ok(None),
        }
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
