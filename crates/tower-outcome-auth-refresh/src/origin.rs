//! To whom a credential belongs.

use std::fmt;

use http::{Uri, uri::Authority};
use tower_outcome_core::ConfigError;

/// To whom a credential belongs: scheme, host and port (RFC 6454, section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: Box<str>,
    host: Box<str>,
    port: Option<u16>,
    /// As it was written, which is how nearly every target has it.
    written: Authority,
}

// === impl Origin ===

impl Origin {
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = || {
            ConfigError::new(
                "origin",
                text,
                "scheme and authority, such as https://api.venue.example",
            )
        };
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        let has_path = uri
            .path_and_query()
            .is_some_and(|path| path.as_str() != "/");
        if has_path || authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            scheme: scheme.to_ascii_lowercase().into(),
            host: authority.host().to_ascii_lowercase().into(),
            port: authority.port_u16().or_else(|| default_port(scheme)),
            written: authority.clone(),
        })
    }

    /// Returns whether a request goes there. A target without an authority does: the client below is
    /// bound to one peer.
    #[inline]
    pub(crate) fn is_of(&self, target: &Uri) -> bool {
        let (Some(scheme), Some(authority)) = (target.scheme_str(), target.authority()) else {
            return target.authority().is_none();
        };
        authority.as_str().as_bytes() == self.written.as_str().as_bytes()
            && scheme.as_bytes() == self.scheme.as_bytes()
            || self.is_of_another_spelling(scheme, authority)
    }

    #[cold]
    fn is_of_another_spelling(&self, scheme: &str, authority: &Authority) -> bool {
        authority.host().eq_ignore_ascii_case(&self.host)
            && scheme.eq_ignore_ascii_case(&self.scheme)
            && authority.port_u16().or_else(|| default_port(scheme)) == self.port
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    if scheme.eq_ignore_ascii_case("https") {
        Some(443)
    } else if scheme.eq_ignore_ascii_case("http") {
        Some(80)
    } else {
        None
    }
}
