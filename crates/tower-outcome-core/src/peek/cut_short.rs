//! Bodies that end before the length they announced.

use std::{error::Error, fmt};

use http_body::Body;

/// A body ended before the length it announced.
///
/// hyper ends a body without an error when an HTTP/2 peer resets the stream with `NO_ERROR` or
/// `CANCEL`, so half an answer looks like a whole one. Where the peer has announced the length, the
/// size hint still knows what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutShort {
    missing: u64,
}

// === impl CutShort ===

impl CutShort {
    /// Returns how many bytes are missing, at least.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.missing
    }

    /// Looks at a body that has just said that it has no more frames.
    ///
    /// The answer to a `HEAD` announces the length of what it does not carry; it is at its end from
    /// the start.
    pub(super) fn check<B: Body>(body: &B) -> Result<(), Self> {
        match body.size_hint().lower() {
            missing if missing > 0 && !body.is_end_stream() => Err(Self { missing }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "body ended {} bytes before its announced length",
            self.missing
        )
    }
}

impl Error for CutShort {}

#[cfg(test)]
mod tests;
