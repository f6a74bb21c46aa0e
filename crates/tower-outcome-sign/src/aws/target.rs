//! What is signed of a request's target and head.

use http::{
    HeaderMap, HeaderName, Uri,
    header::{
        AUTHORIZATION, CONNECTION, EXPECT, HOST, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};

use crate::{Draft, SignError, draft::escape, origin::without_port};

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

/// Writes the target as the server writes it before it signs: `twice` encoded is what is on the wire
/// encoded once more, otherwise it is decoded first, so that however a key was escaped, it is the same.
pub(super) fn canonical(uri: &Uri, twice: bool) -> Result<String, SignError> {
    let mut target = String::with_capacity(uri.path().len() + 32);
    let path = uri.path();
    let decoded;
    let path = if twice {
        path.as_bytes()
    } else {
        decoded = unescaped(path);
        &decoded
    };
    if path.is_empty() {
        target.push('/');
    }
    for (at, segment) in path.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            target.push('/');
        }
        escape(segment, &mut target);
    }
    if let Some(query) = uri.query() {
        // What is no text after decoding is signed as another byte.
        std::str::from_utf8(&unescaped(query)).map_err(|_| SignError::encoding("query"))?;
        target.push('?');
        // Somebody may have written letters of other alphabets as they are.
        for char in query.chars() {
            if char.is_ascii() {
                target.push(char);
            } else {
                escape(char.encode_utf8(&mut [0; 4]).as_bytes(), &mut target);
            }
        }
    }
    Ok(target)
}

/// The host as the server sees it.
pub(super) fn host(draft: &Draft) -> Result<&str, SignError> {
    let uri = draft.uri();
    let given = match draft.headers().get(HOST) {
        Some(host) => return host.to_str().map_err(|_| SignError::encoding("host")),
        None => uri.authority().map(|authority| authority.as_str()),
    };
    let given = given.ok_or_else(|| SignError::missing("host"))?;
    let given = given.rsplit_once('@').map_or(given, |(_, host)| host);
    Ok(without_port(given, uri.scheme()))
}

/// The headers that are signed besides the host, in the order in which they are sent.
pub(super) fn headers<'a>(
    headers: &'a HeaderMap,
    out: &mut Vec<(&'a str, &'a str)>,
) -> Result<(), SignError> {
    for (name, value) in headers {
        if name == HOST || UNSIGNED.contains(name) {
            continue;
        }
        let value = value.to_str();
        let value = value.map_err(|_| SignError::encoding(name.to_string()))?;
        out.push((name.as_str(), value));
    }
    Ok(())
}

/// Undoes the escapes of a path. What is no escape stays as it is.
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

    fn canonical_of(target: &str, twice: bool) -> String {
        canonical(&target.parse().unwrap(), twice).unwrap()
    }

    #[test]
    fn a_key_is_the_same_however_it_was_escaped() {
        for path in ["/b/a%20b%2bc(1)", "/b/a%20b%2Bc%281%29", "/b/a%20b+c(1)"] {
            assert_eq!(canonical_of(path, false), "/b/a%20b%2Bc%281%29");
        }
        assert_eq!(canonical_of("/b//%2Fx", false), "/b///x");
        assert_eq!(canonical_of("/100%", false), "/100%25");
        assert_eq!(canonical_of("/%FF", false), "/%FF");
    }

    #[test]
    fn twice_encoded_is_the_wire_encoded_once_more() {
        assert_eq!(canonical_of("/a%20b/~", true), "/a%2520b/~");
        assert_eq!(canonical_of("/a(b)", true), "/a%28b%29");
    }

    #[test]
    fn a_query_that_is_no_text_is_refused() {
        let uri: Uri = "/?a=%FF".parse().unwrap();
        assert!(canonical(&uri, true).is_err());
        assert_eq!(canonical_of("/?a=%E1%88%B4", true), "/?a=%E1%88%B4");
    }
}
