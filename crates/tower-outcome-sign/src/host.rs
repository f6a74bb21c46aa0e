//! The host to which a request is sent, as a signature covers it.

use http::{HeaderMap, header::HOST, uri::Scheme};

#[cfg(any(
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
use crate::Draft;
use crate::SignError;

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
