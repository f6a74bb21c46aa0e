//! To whom something belongs that nobody else must get.

use std::fmt;

use http::{
    header::HOST,
    request,
    uri::{Authority, Scheme, Uri},
};

use crate::ConfigError;

/// To whom a credential or a signature belongs: a scheme, where one was given, a host and a port
/// (RFC 6454, section 4).
///
/// ```
/// use http::Request;
/// use tower_outcome_core::Origin;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let venue = Origin::parse("https://venue.example")?;
/// let is_theirs = |uri: &str| -> Result<_, http::Error> {
///     let (head, ()) = Request::get(uri).body(())?.into_parts();
///     Ok(venue.is_of(&head))
/// };
/// assert_eq!(is_theirs("https://VENUE.example:443/orders")?, Some(true));
/// assert_eq!(is_theirs("https://venue.example.evil.example/")?, Some(false));
/// assert_eq!(is_theirs("/orders")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: Option<Scheme>,
    authority: Authority,
}

/// An origin as it was written, without the user that it may name.
struct Shown<'a>(&'a str);

// === impl Origin ===

impl Origin {
    /// Reads `https://venue.example`, or `venue.example` for any scheme.
    ///
    /// # Errors
    ///
    /// If it is none, or more than that: a path, a user, several hosts. A user is not shown.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
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

    /// Returns whether a request goes there.
    ///
    /// A request without an authority, as written to a connection that is already there, goes to the host in
    /// its `Host` header. `None` without one: whoever makes the connection knows.
    #[must_use]
    #[inline]
    pub fn is_of(&self, head: &request::Parts) -> Option<bool> {
        let authority = match head.uri.authority() {
            Some(authority) => authority.as_str(),
            None => {
                let mut hosts = head.headers.get_all(HOST).iter();
                match (hosts.next(), hosts.next()) {
                    (None, _) => return None,
                    // One of two would be gone by, and nobody knows which.
                    (Some(_), Some(_)) => return Some(false),
                    (Some(host), None) => match host.to_str() {
                        Ok(host) => host,
                        Err(_) => return Some(false),
                    },
                }
            }
        };
        Some(self.matches(head.uri.scheme(), authority))
    }

    /// Returns the scheme, if it belongs to one.
    #[must_use]
    pub const fn scheme(&self) -> Option<&Scheme> {
        self.scheme.as_ref()
    }

    /// Shows an origin as it was written, which may be none, without the user that it may name.
    #[must_use]
    pub fn shown(text: &str) -> impl fmt::Debug + '_ {
        Shown(text)
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

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.rsplit_once('@') {
            Some((_, host)) => write!(f, "\"[redacted]@{}\"", host.escape_debug()),
            None => fmt::Debug::fmt(self.0, f),
        }
    }
}

/// Leaves out a port that the scheme implies.
fn without_port<'a>(authority: &'a str, scheme: Option<&Scheme>) -> &'a str {
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

    fn is_of(origin: &str, uri: &str) -> bool {
        let origin = Origin::parse(origin).unwrap();
        let (head, ()) = Request::get(uri).body(()).unwrap().into_parts();
        origin.is_of(&head) == Some(true)
    }

    #[test]
    fn only_the_same_origin_is_the_same() {
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
            assert_eq!(is_of(origin, uri), expected, "{origin} {uri}");
        }
    }

    #[test]
    fn a_request_in_origin_form_is_for_its_host() {
        let origin = Origin::parse("https://venue.test").unwrap();
        for (hosts, expected) in [
            (&[][..], None),
            (&["venue.test"], Some(true)),
            (&["evil.test"], Some(false)),
            (&["venue.test", "evil.test"], Some(false)),
        ] {
            let mut request = Request::get("/a");
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(origin.is_of(&head), expected, "{hosts:?}");
        }
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
        let error = Origin::parse("https://bob:hunter2@venue.test").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
