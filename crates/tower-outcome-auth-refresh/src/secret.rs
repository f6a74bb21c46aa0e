//! Text that is not shown.

use std::fmt;

use bytes::Bytes;
use http::HeaderValue;
use zeroize::Zeroizing;

use crate::Unattachable;

/// A text that nobody prints by mistake, and that is wiped from memory when it is dropped.
///
/// `Debug` and `Display` show `[redacted]`. [`expose`](Self::expose) is the only way to read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

// === impl Secret ===

impl Secret {
    /// Takes a text in.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether there is no text at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes a header value of `prefix` and the text: marked sensitive, and wiped when its last clone
    /// is dropped. What a transport copies into its buffers is beyond this crate.
    ///
    /// # Errors
    ///
    /// If the text is empty or holds what no header value may (RFC 9110, section 5.5); `part` is what
    /// the error calls it.
    pub fn header_value(&self, part: &str, prefix: &str) -> Result<HeaderValue, Unattachable> {
        if self.is_empty() {
            return Err(Unattachable::new(part, "empty"));
        }
        let mut line = Vec::with_capacity(prefix.len() + self.0.len());
        line.extend_from_slice(prefix.as_bytes());
        line.extend_from_slice(self.0.as_bytes());
        let line = Bytes::from_owner(Zeroizing::new(line));
        let mut value = HeaderValue::from_maybe_shared(line)
            .map_err(|_| Unattachable::new(part, "no valid header value"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
