//! Where a request goes.

use std::borrow::Cow;

use http::{Uri, uri::PathAndQuery};

/// The part of the paths of this gateway that belongs to one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(String);

/// Where an upstream is: scheme and authority, and a path before all paths.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    origin: String,
    path: String,
}

// === impl Prefix ===

impl Prefix {
    /// Takes `/` or a path without a slash at its end.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if !text.starts_with('/')
            || !text.bytes().all(fits)
            || is_ambiguous(text)
            || text.contains("//")
        {
            return None;
        }
        match text.strip_suffix('/') {
            Some("") => Some(Self(String::new())),
            Some(_) => None,
            None => Some(Self(text.to_owned())),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        if self.0.is_empty() { "/" } else { &self.0 }
    }

    /// Returns what is left of a path that belongs to it. It ends where a segment ends: `/venue` has
    /// nothing to do with `/venues`.
    pub(crate) fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(&self.0)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

// === impl Base ===

impl Base {
    /// Takes `http://host[:port][/path]`.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
        let (origin, uri) = plain_http(text)?;
        if uri.query().is_some() {
            return Err(FORM);
        }
        Ok(Self {
            origin,
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns the origin, to whom credentials and signatures belong.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns where a request goes, or `None` if it could leave the base.
    pub(crate) fn target(&self, rest: &str, query: Option<&str>) -> Option<Uri> {
        if is_ambiguous(rest) {
            return None;
        }
        let rest = if rest.is_empty() && self.path.is_empty() {
            "/"
        } else {
            rest
        };
        let path = match query {
            Some(query) => format!("{}{rest}?{query}", self.path),
            None => format!("{}{rest}", self.path),
        };
        let path: PathAndQuery = path.parse().ok()?;
        format!("{}{path}", self.origin).parse().ok()
    }
}

/// What an address has to look like, for messages.
const FORM: &str = "http://host[:port][/path]";

/// Takes a whole address without TLS; returns its origin, too.
pub(crate) fn plain_http(text: &str) -> Result<(String, Uri), &'static str> {
    let uri: Uri = text.parse().map_err(|_| FORM)?;
    match uri.scheme_str() {
        Some("http") => {}
        // Where one is needed, a connector such as hyper-rustls goes around that of the client.
        Some("https") => return Err("http://…: this example brings no TLS"),
        _ => return Err(FORM),
    }
    let authority = uri.authority().ok_or(FORM)?;
    if text.contains('#') {
        return Err(FORM);
    }
    let origin = format!("http://{authority}");
    tower_outcome::Origin::parse(&origin).map_err(|error| error.expected())?;
    Ok((origin, uri))
}

/// Writes a path as it is meant: without escapes of what needs none (RFC 3986, section 6.2.2.2), so that it
/// has one upstream and one cost. `None` if servers do not agree on what it means.
pub(crate) fn plain(path: &str) -> Option<Cow<'_, str>> {
    if is_ambiguous(path) {
        return None;
    }
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let digits = after.get(..2).filter(|digits| is_hex(digits));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.map(char::from) {
            Some(meant) if meant.is_ascii_alphanumeric() || "-_~".contains(meant) => {
                plain.push(meant);
                rest = &after[2..];
            }
            _ => {
                plain.push('%');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    Some(Cow::Owned(plain))
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a path would be another one for some servers than it is here: by a segment that goes up or stays
/// (RFC 3986, section 5.2.4), also with parameters, or by an escaped dot or slash of either kind.
fn is_ambiguous(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let escaped = ["%2e", "%2f", "%5c", "\\"];
    escaped.iter().any(|escaped| path.contains(escaped))
        || path.replace("%3b", ";").split('/').any(|segment| {
            let name = segment.split(';').next().unwrap_or_default();
            name == "." || name == ".."
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_a_segment_ends() {
        let venue = Prefix::new("/venue").unwrap();
        assert_eq!(venue.rest("/venue/orders"), Some("/orders"));
        assert_eq!(venue.rest("/venue"), Some(""));
        assert_eq!(venue.rest("/venues"), None);
        assert_eq!(Prefix::new("/").unwrap().rest("/orders"), Some("/orders"));
        for wrong in ["", "venue", "/venue/", "//", "/a/../b", "/a b", "/a?b"] {
            assert_eq!(Prefix::new(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_target_is_below_its_base() {
        let base = Base::new("http://venue.example:81/api/").unwrap();
        let target = |rest, query| base.target(rest, query).map(|uri| uri.to_string());
        let orders = "http://venue.example:81/api/orders?a=b".to_owned();
        assert_eq!(target("/orders", Some("a=b")), Some(orders));
        assert_eq!(
            target("", None),
            Some("http://venue.example:81/api".to_owned())
        );
        for wrong in ["/../admin", "/a/%2e%2E/b", "/./a", "/.."] {
            assert_eq!(target(wrong, None), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_base_is_an_origin_and_a_path() {
        for wrong in [
            "",
            "venue",
            "/venue",
            "https://venue.example",
            "ftp://venue.example",
            "http://",
            "http://user@venue.example",
            "http://venue.example?a",
            "http://venue.example:0",
        ] {
            assert!(Base::new(wrong).is_err(), "{wrong:?}");
        }
    }
    #[test]
    fn a_path_is_written_in_one_way_or_refused() {
        for (path, meant) in [
            ("/a/b", "/a/b"),
            ("/%61%7E%2d/%5a", "/a~-/Z"),
            ("/%20%3A%c3%a9", "/%20%3A%c3%a9"),
            // Nobody's escapes are taken off twice, and what is none stays.
            ("/%2561/%/%6/%+1/%zz%61", "/%2561/%/%6/%+1/%zza"),
            ("/a.b;c=..", "/a.b;c=.."),
            ("/...", "/..."),
        ] {
            assert_eq!(plain(path).as_deref(), Some(meant), "{path:?}");
        }
        for path in [
            "/a/..", "/./a", "/%2E", "/a%2eb", "/a%2Fb", "/a%5Cb", "/a\\b", "/..;a/b", "/.%3ba",
        ] {
            assert_eq!(plain(path), None, "{path:?}");
        }
    }
}
