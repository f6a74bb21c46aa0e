//! The digest of a body.

use http::{HeaderMap, HeaderValue};
use sfv::{BareItem, ItemSerializer, ListEntry};
use sha2::{Digest, Sha256, Sha512};

use super::{
    CONTENT_DIGEST,
    component::{Component, Form, What},
    fields::dictionary,
};
use crate::SignError;

/// A hash function of `Content-Digest` (RFC 9530, section 5): those that are not marked as unfit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DigestAlgorithm {
    /// `sha-256`.
    Sha256,
    /// `sha-512`.
    Sha512,
}

/// What came of looking at a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// It is that of the body.
    Right,
    /// It is that of another body, or not one that can be read.
    Wrong,
}

// === impl DigestAlgorithm ===

impl DigestAlgorithm {
    const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha-256",
            Self::Sha512 => "sha-512",
        }
    }

    fn hash(self, body: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(body).to_vec(),
            Self::Sha512 => Sha512::digest(body).to_vec(),
        }
    }

    /// The value of the header for a body.
    pub(super) fn header(self, body: &[u8]) -> Result<HeaderValue, SignError> {
        let hash = ItemSerializer::new()
            .bare_item(&self.hash(body)[..])
            .finish();
        let value = HeaderValue::try_from(format!("{}={hash}", self.name()));
        value.map_err(|_| SignError::encoding("content-digest"))
    }
}

/// Checks the digests that a signature covers: all those whose algorithm is known, and at least one.
///
/// No secret goes into them, so that the time it takes tells nothing.
pub(super) fn check(headers: &HeaderMap, covered: &Component, body: &[u8]) -> Checked {
    let Some(digests) = dictionary(headers, &CONTENT_DIGEST) else {
        return Checked::Wrong;
    };
    let only = match covered.what() {
        What::Field(_, Form::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    let mut seen = false;
    for algorithm in DigestAlgorithm::ALL {
        if only.is_some_and(|only| only != algorithm.name()) {
            continue;
        }
        match digests.get(algorithm.name()) {
            Some(ListEntry::Item(item)) => match &item.bare_item {
                BareItem::ByteSequence(given) if *given == algorithm.hash(body) => seen = true,
                _ => return Checked::Wrong,
            },
            Some(ListEntry::InnerList(_)) => return Checked::Wrong,
            None => {}
        }
    }
    if seen { Checked::Right } else { Checked::Wrong }
}

/// Returns whether a component is the digest of the body, in whatever form.
pub(super) fn is_digest(component: &Component) -> bool {
    matches!(component.what(), What::Field(name, _) if *name == CONTENT_DIGEST)
}
