//! What is put where.

use super::{Part, eval::Eval};
use crate::{Draft, SignError};
use http::HeaderName;

/// Something that is put into the request.
#[derive(Clone, Debug)]
pub(super) struct Assign {
    pub(super) target: Target,
    pub(super) value: Value,
    /// Whether it proves or names the sender.
    pub(super) secret: bool,
}

/// Where it is put.
#[derive(Clone, Debug)]
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
}

// === impl Value ===

impl Value {
    /// Writes it into `out`, in the place of what is there.
    pub(super) fn write(
        &self,
        eval: &Eval<'_>,
        draft: &Draft,
        out: &mut Vec<u8>,
    ) -> Result<(), SignError> {
        out.clear();
        match self {
            Self::Text(parts) => {
                for part in parts {
                    eval.feed(part, draft, &mut |bytes| out.extend_from_slice(bytes))?;
                }
                Ok(())
            }
            Self::Items(items) => {
                for (name, part) in items {
                    if !out.is_empty() {
                        out.push(b',');
                    }
                    out.extend_from_slice(name.as_bytes());
                    out.push(b'=');
                    eval.feed(part, draft, &mut |bytes| out.extend_from_slice(bytes))?;
                }
                Ok(())
            }
        }
    }

    /// Visits all parts.
    pub(super) fn visit(&self, look: &mut impl FnMut(&Part)) {
        match self {
            Self::Text(parts) => parts.iter().for_each(|part| part.visit(look)),
            Self::Items(items) => items.iter().for_each(|(_, part)| part.visit(look)),
        }
    }
}
