//! What signing a call came to.

use std::fmt;

use http::Extensions;

use crate::OffsetEstimate;

/// What the server had against the time or the nonce of a request, in the extensions of its
/// response. A response to which nothing of that kind happened has none.
///
/// `Display` says what to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignReport {
    pub(crate) resigned: Option<Resigned>,
    pub(crate) refused: Option<Resigned>,
    pub(crate) offset: Option<OffsetEstimate>,
}

/// Why a request was signed and sent once more, or would have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resigned {
    /// The server refused the time.
    ClockSkew,
    /// The server refused the nonce.
    InvalidNonce,
}

// === impl SignReport ===

impl SignReport {
    /// Returns the report in the extensions of a response.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Self>().copied()
    }

    /// Returns why the request was signed and sent once more, if it was.
    #[must_use]
    pub const fn resigned(self) -> Option<Resigned> {
        self.resigned
    }

    /// Returns what the server had against this response's request, if it was refused at last.
    #[must_use]
    pub const fn refused(self) -> Option<Resigned> {
        self.refused
    }

    /// Returns how far the server's clock was from this one by this answer alone, if it tells.
    #[must_use]
    pub const fn offset(self) -> Option<OffsetEstimate> {
        self.offset
    }
}

impl fmt::Display for SignReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.refused, self.resigned) {
            (Some(Resigned::ClockSkew), _) => {
                f.write_str("time refused: ")?;
                match self.offset {
                    Some(offset) => write!(
                        f,
                        "the server is {} ms ahead, to within {} ms, by an answer that took {} ms",
                        offset.millis(),
                        offset.error().as_millis(),
                        offset.round_trip().as_millis(),
                    ),
                    None => {
                        f.write_str("nothing was learned of the server's time from this answer")
                    }
                }
            }
            (Some(Resigned::InvalidNonce), _) => f.write_str(
                "nonce refused: another program uses the same key, or has used it with a larger \
                 unit, or requests overtook each other",
            ),
            (None, Some(Resigned::ClockSkew)) => {
                f.write_str("signed again after its time was refused")
            }
            (None, Some(Resigned::InvalidNonce)) => {
                f.write_str("signed again after its nonce was refused")
            }
            (None, None) => f.write_str("nothing to report"),
        }
    }
}
