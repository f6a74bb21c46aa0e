//! For whom a signer signs.

use std::fmt;

#[cfg(any(
    feature = "aws-sigv4",
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
use http::HeaderMap;
use http::{
    header::HOST,
    request,
    uri::{Authority, Scheme, Uri},
};
use tower_outcome_core::ConfigError;

#[cfg(any(
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
use crate::Draft;
#[cfg(any(
    feature = "aws-sigv4",
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
use crate::SignError;

/// For whom a signer signs: a scheme, where one was given, a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: Option<Scheme>,
    authority: Authority,
}

/// An origin as it was written, without the user that it may name.
pub(crate) struct Shown<T>(pub(crate) T);

/// The origins for which requests are signed.
#[derive(Clone, Debug)]
pub(crate) enum Origins {
    Any,
    These(Box<[Origin]>),
}

// === impl Origin ===

impl Origin {
    /// Reads `https://venue.example`, or `venue.example` for any scheme.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |expected| ConfigError::new("origin", Shown(text), expected);
        let form = "scheme://host[:port] or host[:port]";
        if text.contains('@') {
            return Err(wrong("no user in front of the host"));
        }
        let uri: Uri = text.parse().map_err(|_| wrong(form))?;
        let parts = uri.into_parts();
        let path = parts
            .path_and_query
            .as_ref()
            .map_or("", |path| path.as_str());
        let Some(authority) = parts.authority else {
            return Err(wrong(form));
        };
        // A fragment is not in the parts.
        if !matches!(path, "" | "/") || text.contains('#') {
            return Err(wrong(form));
        }
        if let Some(scheme) = &parts.scheme {
            if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS {
                return Err(wrong("http or https"));
            }
        }
        let host = authority.host();
        let port = authority.as_str().strip_prefix(host);
        if port != Some("") && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(wrong("a port from 1 to 65535"));
        }
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let numbered = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || !numbered && !host.bytes().all(named) {
            return Err(wrong("the name or address of one host"));
        }
        Ok(Self {
            scheme: parts.scheme,
            authority,
        })
    }

    #[inline]
    fn matches(&self, scheme: Option<&Scheme>, authority: &str) -> bool {
        if let (Some(own), Some(scheme)) = (&self.scheme, scheme) {
            if own != scheme {
                return false;
            }
        }
        let own = self.authority.as_str();
        // Mostly they are written alike.
        own == authority
            || own.eq_ignore_ascii_case(authority)
            || self.matches_by_port(scheme.or(self.scheme.as_ref()), authority)
    }

    /// The same where one of them leaves out the port that the scheme implies.
    #[cold]
    fn matches_by_port(&self, scheme: Option<&Scheme>, authority: &str) -> bool {
        let own = without_port(self.authority.as_str(), scheme);
        own.eq_ignore_ascii_case(without_port(authority, scheme))
    }
}

// === impl Shown ===

impl<T: AsRef<str>> fmt::Debug for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref().rsplit_once('@') {
            Some((_, host)) => write!(f, "\"[redacted]@{}\"", host.escape_debug()),
            None => fmt::Debug::fmt(self.0.as_ref(), f),
        }
    }
}

// === impl Origins ===

impl Origins {
    /// Returns whether a request is for one of them.
    ///
    /// A request without an authority, as written to a connection that is already there, is for the
    /// host in its `Host` header; without one it is for nobody known.
    #[inline]
    pub(crate) fn contains(&self, head: &request::Parts) -> bool {
        let these = match self {
            Self::Any => return true,
            Self::These(these) => these,
        };
        let authority = match head.uri.authority() {
            Some(authority) => Some(authority.as_str()),
            None => head.headers.get(HOST).and_then(|host| host.to_str().ok()),
        };
        authority.is_some_and(|authority| {
            let scheme = head.uri.scheme();
            these.iter().any(|origin| origin.matches(scheme, authority))
        })
    }
}

/// The host to which a request is sent, as the server sees it: without a user, and without a port that
/// the scheme implies.
#[cfg(any(
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
pub(crate) fn host(draft: &Draft) -> Result<&str, SignError> {
    let uri = draft.uri();
    let given = match one_host(draft.headers())? {
        Some(host) => Some(host),
        None => uri.authority().map(|authority| authority.as_str()),
    };
    let given = given.ok_or_else(|| SignError::missing("host"))?;
    let given = given.rsplit_once('@').map_or(given, |(_, host)| host);
    Ok(without_port(given, uri.scheme().or(Some(&Scheme::HTTPS))))
}

/// The `Host` header. Of two, one would be signed and the other gone by.
#[cfg(any(
    feature = "aws-sigv4",
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
pub(crate) fn one_host(headers: &HeaderMap) -> Result<Option<&str>, SignError> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => Ok(None),
        (Some(host), None) => {
            let host = host.to_str().map(Some);
            host.map_err(|_| SignError::encoding("host"))
        }
        _ => Err(SignError::missing("one host")),
    }
}

/// Leaves out a port that the scheme implies.
pub(crate) fn without_port<'a>(authority: &'a str, scheme: Option<&Scheme>) -> &'a str {
    let port = match scheme.map(Scheme::as_str) {
        Some("http") => ":80",
        Some("https") => ":443",
        _ => return authority,
    };
    authority.strip_suffix(port).unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn signs(origin: &str, uri: &str) -> bool {
        let origins = Origins::These(Box::new([Origin::parse(origin).unwrap()]));
        let (head, ()) = Request::get(uri).body(()).unwrap().into_parts();
        origins.contains(&head)
    }

    #[test]
    fn only_the_same_origin_is_signed_for() {
        for (origin, uri, expected) in [
            ("https://venue.test", "https://venue.test/a", true),
            ("https://venue.test", "https://VENUE.test:443/a", true),
            ("https://venue.test:443", "https://venue.test/a", true),
            ("https://venue.test", "http://venue.test/a", false),
            ("https://venue.test", "https://venue.test:8443/a", false),
            (
                "https://venue.test",
                "https://venue.test.evil.test/a",
                false,
            ),
            ("https://venue.test", "https://user@venue.test/a", false),
            ("https://venue.test", "https://evil.test/a", false),
            ("https://venue.test", "/a", false),
            ("venue.test", "http://venue.test/a", true),
            ("venue.test", "https://venue.test:443/a", true),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/", true),
        ] {
            assert_eq!(signs(origin, uri), expected, "{origin} {uri}");
        }
    }

    #[test]
    fn a_request_in_origin_form_is_for_its_host() {
        let origin = Origin::parse("https://venue.test").unwrap();
        let origins = Origins::These(Box::new([origin]));
        let request = Request::get("/a").header(HOST, "venue.test");
        assert!(origins.contains(&request.body(()).unwrap().into_parts().0));
        let request = Request::get("/a").header(HOST, "evil.test");
        assert!(!origins.contains(&request.body(()).unwrap().into_parts().0));
    }

    #[test]
    fn addresses_are_hosts_too() {
        for text in [
            "http://127.0.0.1:8080",
            "https://[::1]:8443",
            "https://[::1]",
        ] {
            assert!(Origin::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in [
            "",
            "/",
            "https://",
            "https://venue.test/path",
            "a b",
            "u@venue.test",
            "https://venue.test:99999",
            "https://venue.test:0",
            "https://venue.test:",
            "ftp://venue.test",
            "https://*.venue.test",
            "https://venue.test/#a",
            "https://venue.test?a",
        ] {
            let error = Origin::parse(text).unwrap_err();
            assert_eq!(error.field(), "origin", "{text}");
        }
    }
}
