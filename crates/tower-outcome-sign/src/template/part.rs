//! What a signature is made of.

use std::borrow::Cow;

use http::{
    HeaderName,
    header::{CONTENT_TYPE, HOST},
};

use super::TextEncoding;
use crate::{Secret, Unit};

/// One piece of what is signed, or of what is written into the request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Part {
    /// A text that is always the same.
    Literal(Cow<'static, str>),
    /// A text that is always the same and must not be seen, such as a passphrase.
    Secret(Secret),
    /// The public half of the key.
    KeyId,
    /// The signature; only in what is written into the request.
    Signature,
    /// The time of the attempt, in whole units since the Unix epoch.
    Timestamp(Unit),
    /// The time of the attempt in the form of RFC 3339 with milliseconds.
    TimestampRfc3339,
    /// The end of validity, in whole units since the Unix epoch, rounded up: the template's window after
    /// the time of the attempt, or the call's deadline where that is sooner.
    Expires(Unit),
    /// How long the server may take to accept it, in milliseconds, rounded up: the template's
    /// window, or the time that is left until the call's deadline where that is less.
    WindowMillis,
    /// The nonce of the attempt.
    Nonce,
    /// The token of the attempt, as a lower-case UUID.
    TokenUuid,
    /// The token of the attempt, as 32 hexadecimal digits.
    TokenHex,
    /// The method, in upper case.
    Method,
    /// The method, in lower case.
    MethodLower,
    /// The host, with the port where it is not the one of the scheme.
    Host,
    /// The path.
    Path,
    /// The path after a prefix that is not signed. A path without it is taken whole.
    PathAfter(Cow<'static, str>),
    /// The path, and the query with its question mark where there is one.
    PathAndQuery,
    /// The query without its question mark; nothing where there is none.
    Query,
    /// The body.
    Body,
    /// A hash of the body, as text.
    BodyHash(HashAlgorithm, TextEncoding),
    /// A hash of parts, as bytes.
    Hash(HashAlgorithm, Vec<Self>),
    /// A header, which must be there.
    Header(HeaderName),
    /// The content type of a request with a body, which must be there; nothing where there is no body.
    ContentTypeOfBody,
    /// The whole target, as a URL.
    Url,
    /// The fields of a body that is a form, sorted by name and then value, names and values unescaped
    /// and without anything in between; the same field with the same value counts once.
    SortedForm,
}

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashAlgorithm {
    /// SHA-1, for what is old.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

// === impl Part ===

impl Part {
    /// Takes a text that is always the same.
    pub fn literal(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Literal(text.into())
    }

    /// Visits this part and those in it.
    pub(super) fn visit(&self, look: &mut impl FnMut(&Self)) {
        look(self);
        if let Self::Hash(_, parts) = self {
            for part in parts {
                part.visit(look);
            }
        }
    }

    pub(super) const fn needs_body(&self) -> bool {
        matches!(
            self,
            Self::Body | Self::BodyHash(..) | Self::ContentTypeOfBody | Self::SortedForm
        )
    }

    /// The unit of the time that it tells.
    pub(super) const fn time(&self) -> Option<Unit> {
        match self {
            Self::Timestamp(unit) => Some(*unit),
            Self::TimestampRfc3339 => Some(Unit::Millis),
            _ => None,
        }
    }

    /// Whether it is another in each attempt.
    pub(super) const fn is_fresh(&self) -> bool {
        matches!(
            self,
            Self::Timestamp(_)
                | Self::TimestampRfc3339
                | Self::Expires(_)
                | Self::WindowMillis
                | Self::Nonce
                | Self::TokenUuid
                | Self::TokenHex
                | Self::Signature
        )
    }

    /// The header of the caller's that it stands for.
    pub(super) fn header(&self) -> Option<HeaderName> {
        match self {
            Self::Header(name) => Some(name.clone()),
            Self::ContentTypeOfBody => Some(CONTENT_TYPE),
            Self::Host => Some(HOST),
            _ => None,
        }
    }

    pub(super) const fn is_secret(&self) -> bool {
        matches!(self, Self::Secret(_) | Self::KeyId | Self::Signature)
    }
}

impl From<&'static str> for Part {
    fn from(text: &'static str) -> Self {
        Self::literal(text)
    }
}
