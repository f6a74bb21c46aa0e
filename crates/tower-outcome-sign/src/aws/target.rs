//! What is signed of a request's target and head.

use http::{
    HeaderMap, HeaderName, HeaderValue, Uri,
    header::{
        AUTHORIZATION, CONNECTION, EXPECT, HOST, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};

use crate::{
    Draft, SignError,
    draft::escape,
    host::{one_host, without_port},
};

/// What is for the next hop alone, or what proxies and tracing below may change.
const UNSIGNED: [HeaderName; 15] = [
    AUTHORIZATION,
    CONNECTION,
    EXPECT,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    USER_AGENT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("x-amzn-trace-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
];

/// Writes the path as the server writes it before it signs: `twice` encoded is what is on the wire
/// encoded once more, otherwise it is decoded first, so that however a key was escaped, it is the same.
pub(super) fn path(uri: &Uri, twice: bool) -> String {
    let path = uri.path();
    let mut text = String::with_capacity(path.len() + 8);
    let decoded;
    let path = if twice {
        path.as_bytes()
    } else {
        decoded = unescaped(path);
        &decoded
    };
    if path.is_empty() {
        text.push('/');
    }
    for (at, segment) in path.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            text.push('/');
        }
        escape(segment, &mut text);
    }
    text
}

/// A name or value of a query without its escapes.
pub(super) fn parameter(text: &str) -> Result<Vec<u8>, SignError> {
    // Of forms, in which a space may be a plus sign.
    let bytes = unescaped(&text.replace('+', " "));
    match std::str::from_utf8(&bytes) {
        // What is no text is read in one way here and in another there.
        Err(_) => Err(SignError::encoding("query")),
        Ok(_) => Ok(bytes),
    }
}

/// The host as the server sees it.
pub(super) fn host(draft: &Draft) -> Result<&str, SignError> {
    let uri = draft.uri();
    let given = match one_host(draft.headers())? {
        Some(host) => return Ok(host),
        None => uri.authority().map(|authority| authority.as_str()),
    };
    let given = given.ok_or_else(|| SignError::missing("host"))?;
    let given = given.rsplit_once('@').map_or(given, |(_, host)| host);
    Ok(without_port(given, uri.scheme()))
}

/// The headers that are signed besides the host, in the order in which they are sent.
pub(super) fn headers(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers
        .iter()
        .filter(|(name, _)| *name != HOST && !UNSIGNED.contains(name))
}

/// Undoes escapes. What is no escape stays as it is.
fn unescaped(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = match (bytes.get(at + 1), bytes.get(at + 2)) {
            (Some(&high), Some(&low)) if bytes[at] == b'%' => digit(high).zip(digit(low)),
            _ => None,
        };
        match escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(target: &str, twice: bool) -> String {
        path(&target.parse().unwrap(), twice)
    }

    #[test]
    fn a_key_is_the_same_however_it_was_escaped() {
        for path in ["/b/a%20b%2bc(1)", "/b/a%20b%2Bc%281%29", "/b/a%20b+c(1)"] {
            assert_eq!(path_of(path, false), "/b/a%20b%2Bc%281%29");
        }
        assert_eq!(path_of("/b//%2Fx", false), "/b///x");
        assert_eq!(path_of("/100%", false), "/100%25");
        assert_eq!(path_of("/%FF", false), "/%FF");
    }

    #[test]
    fn twice_encoded_is_the_wire_encoded_once_more() {
        assert_eq!(path_of("/a%20b/~", true), "/a%2520b/~");
        assert_eq!(path_of("/a(b)", true), "/a%28b%29");
    }

    #[test]
    fn a_parameter_that_is_no_text_is_refused() {
        assert!(parameter("%FF").is_err());
        assert_eq!(parameter("a+%E1%88%B4").unwrap(), "a \u{1234}".as_bytes());
    }
}
