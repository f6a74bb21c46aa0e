//! Headers that are for the next hop only, and those that this hop adds.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// What is about one connection and not about the message (RFC 9110, section 7.6.1), besides what
/// `Connection` names, and what a proxy consumes (section 11.7).
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
];

/// Who is behind this hop. Callers may say what they like, so what they say is not passed on.
const FORWARDED: [HeaderName; 4] = [
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
];

/// Whether a header is about the connection or the length or destination of a message, so that it can say
/// nothing else.
pub(crate) fn is_about_transport(name: &HeaderName) -> bool {
    let others = [header::CONTENT_LENGTH, header::HOST, header::TRAILER];
    HOP_BY_HOP.contains(name) || others.contains(name)
}

/// Removes what is for this hop alone.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Makes the headers of a request those that the upstream gets.
///
/// `Host` goes, and the client sets the upstream's own. The upstream is told of the caller only if `peer` is
/// given: most are somebody else's, whom the addresses in this network do not concern.
pub(crate) fn for_upstream(headers: &mut HeaderMap, peer: Option<IpAddr>) {
    remove_hop_by_hop(headers);
    headers.remove(header::HOST);
    for name in &FORWARDED {
        headers.remove(name);
    }
    if let Some(Ok(peer)) = peer.map(|peer| HeaderValue::from_str(&peer.to_string())) {
        headers.insert(&FORWARDED[1], peer);
    }
    // RFC 9110, section 7.6.3: a gateway has to, on the way in.
    headers.append(header::VIA, HeaderValue::from_static("1.1 gateway"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_connection_names_is_removed_too() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("connection", "x-second"),
            ("x-mine", "1"),
            ("x-second", "2"),
            ("x-other", "3"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic eA=="),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-other"]);
    }

    #[test]
    fn callers_do_not_say_who_they_are() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static("10.0.0.1"));
        headers.insert("forwarded", HeaderValue::from_static("for=10.0.0.1"));
        let mut told = headers.clone();
        for_upstream(&mut headers, None);
        assert!(!headers.contains_key("x-forwarded-for") && !headers.contains_key("forwarded"));
        for_upstream(&mut told, Some(IpAddr::from([192, 0, 2, 7])));
        assert_eq!(told["x-forwarded-for"], "192.0.2.7");
    }
}
