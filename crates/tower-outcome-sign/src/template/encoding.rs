//! How bytes are written as text.

use base64ct::{Base64, Base64UrlUnpadded, Encoding};

/// How bytes are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextEncoding {
    /// Hexadecimal digits, lower case.
    HexLower,
    /// Hexadecimal digits, upper case.
    HexUpper,
    /// Base64 of the standard alphabet, padded.
    Base64,
    /// Base64 of the alphabet for URLs, without padding.
    Base64Url,
}

// === impl TextEncoding ===

impl TextEncoding {
    pub(super) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::HexLower => base16ct::lower::encode_string(bytes),
            Self::HexUpper => base16ct::upper::encode_string(bytes),
            Self::Base64 => Base64::encode_string(bytes),
            Self::Base64Url => Base64UrlUnpadded::encode_string(bytes),
        }
    }

    /// Reads it back; hexadecimal digits in either case.
    pub(super) fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::HexLower | Self::HexUpper => base16ct::mixed::decode_vec(text).ok(),
            Self::Base64 => Base64::decode_vec(text).ok(),
            Self::Base64Url => Base64UrlUnpadded::decode_vec(text).ok(),
        }
    }

    pub(super) const fn has(self, byte: u8) -> bool {
        match self {
            Self::HexLower | Self::HexUpper => byte.is_ascii_hexdigit(),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Base64Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
        }
    }
}
