//! A malformed hint, kept for whoever reports it.

use std::fmt;

use http::{HeaderName, HeaderValue};

/// Keeps a hint header that was ignored because its value is malformed.
///
/// The value is made printable: bytes outside visible ASCII are escaped as in a Rust literal,
/// and it is cut to 64 characters, the last three of which are then dots. A value marked as
/// [sensitive](HeaderValue::is_sensitive) is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedHint {
    header: HeaderName,
    value: String,
}

const MAX_VALUE: usize = 64;
const CUT: &str = "...";

// === impl RejectedHint ===

impl RejectedHint {
    pub(super) fn new(header: &'static str, value: &HeaderValue) -> Self {
        Self {
            header: HeaderName::from_static(header),
            value: printable(value),
        }
    }

    /// The name of the header.
    #[must_use]
    pub fn header(&self) -> &HeaderName {
        &self.header
    }

    /// The printable form of its value, at most 64 characters; empty if the value was empty.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for RejectedHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}: \"{}\"", self.header, self.value)
    }
}

fn printable(value: &HeaderValue) -> String {
    if value.is_sensitive() {
        return "(sensitive)".to_owned();
    }
    let mut text = String::new();
    let mut fits = 0;
    for byte in value.as_bytes() {
        text.extend(byte.escape_ascii().map(char::from));
        if text.len() > MAX_VALUE {
            text.truncate(fits);
            text.push_str(CUT);
            break;
        }
        // Where to cut, so that no escape is split.
        if text.len() <= MAX_VALUE - CUT.len() {
            fits = text.len();
        }
    }
    text
}
