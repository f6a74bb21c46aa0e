//! What is put where.

use super::{Part, eval::Eval};
use crate::{Draft, SignError};
use http::HeaderName;
use zeroize::Zeroizing;

/// Something that is put into the request.
#[derive(Clone, Debug)]
pub(super) struct Assign {
    pub(super) target: Target,
    pub(super) value: Value,
    /// Whether it proves or names the sender.
    pub(super) secret: bool,
}

/// Where it is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Header(HeaderName),
    Query(String),
    BodyField(String),
}

/// What is put there.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Parts, one after the other.
    Text(Vec<Part>),
    /// `name=part`, separated by commas.
    Items(Vec<(&'static str, Part)>),
    /// The signature after a prefix; of several, separated by spaces, with other prefixes or other keys,
    /// one counts.
    Signatures(&'static str),
}

// === impl Value ===

impl Value {
    /// Writes it into `out`, in the place of what is there.
    pub(super) fn write(
        &self,
        eval: &Eval<'_>,
        draft: &Draft,
        out: &mut Zeroizing<Vec<u8>>,
    ) -> Result<(), SignError> {
        out.clear();
        let mut length = 0;
        self.visit(&mut |part| {
            if let Part::Secret(secret) = part {
                length += secret.expose().len();
            }
        });
        if length > 0 {
            // It must not move while a secret is in it: what it leaves behind nobody overwrites.
            self.feed(eval, draft, &mut |bytes| length += bytes.len())?;
            *out = Zeroizing::new(Vec::with_capacity(length));
        }
        self.feed(eval, draft, &mut |bytes| out.extend_from_slice(bytes))
    }

    /// Hands on what it stands for.
    #[inline]
    fn feed(
        &self,
        eval: &Eval<'_>,
        draft: &Draft,
        out: &mut impl FnMut(&[u8]),
    ) -> Result<(), SignError> {
        match self {
            Self::Text(parts) => {
                for part in parts {
                    eval.feed(part, draft, out)?;
                }
                Ok(())
            }
            Self::Signatures(prefix) => {
                out(prefix.as_bytes());
                eval.feed(&Part::Signature, draft, out)
            }
            Self::Items(items) => {
                for (at, (name, part)) in items.iter().enumerate() {
                    if at > 0 {
                        out(b",");
                    }
                    out(name.as_bytes());
                    out(b"=");
                    eval.feed(part, draft, out)?;
                }
                Ok(())
            }
        }
    }

    /// Returns whether the signature is in it.
    pub(super) fn has_signature(&self) -> bool {
        let mut found = false;
        self.visit(&mut |part| found |= matches!(part, Part::Signature));
        found
    }

    /// Visits all parts.
    pub(super) fn visit(&self, look: &mut impl FnMut(&Part)) {
        match self {
            Self::Text(parts) => parts.iter().for_each(|part| part.visit(look)),
            Self::Signatures(_) => look(&Part::Signature),
            Self::Items(items) => items.iter().for_each(|(_, part)| part.visit(look)),
        }
    }
}
