//! A credential as text.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{StoreError, Stored};
use crate::Credential;

/// A credential as JSON. What is missing or unknown makes it no credential: it may be half of one.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    /// Whose it is, if the store was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    revision: u64,
    token: Zeroizing<String>,
    fields: Vec<(String, Zeroizing<String>)>,
    refresh_token: Option<Zeroizing<String>>,
    expires_at_ms: Option<u64>,
    login_until_ms: Option<u64>,
}

const VERSION: u32 = 1;

/// Writes a credential down.
pub(super) fn write(
    stored: &Stored,
    account: Option<&str>,
) -> Result<Zeroizing<String>, StoreError> {
    let credential = &stored.credential;
    let copy = |secret: &crate::Secret| Zeroizing::new(secret.expose().to_owned());
    let document = Document {
        version: VERSION,
        account: account.map(str::to_owned),
        revision: stored.revision,
        token: copy(credential.token()),
        fields: credential
            .fields()
            .map(|(name, value)| (name.to_owned(), copy(value)))
            .collect(),
        refresh_token: credential.refresh_token().map(copy),
        expires_at_ms: credential.expires_at().map(to_ms),
        login_until_ms: credential.login_until().map(to_ms),
    };
    let text = serde_json::to_string_pretty(&document);
    text.map(Zeroizing::new).map_err(StoreError::new)
}

/// Reads a credential, unless it is somebody else's.
pub(super) fn read(text: &str, account: Option<&str>) -> Result<Stored, StoreError> {
    // What the parser says may name what it found, and that may be a secret.
    let not_whole = |error: serde_json::Error| {
        let (line, column) = (error.line(), error.column());
        StoreError::new(format!("no whole credential: line {line}, column {column}"))
    };
    let document: Document = serde_json::from_str(text).map_err(not_whole)?;
    if document.version != VERSION || document.revision == 0 {
        let what = "a version of the file that is not known here";
        return Err(StoreError::new(what));
    }
    if let (Some(found), Some(account)) = (&document.account, account) {
        if found != account {
            let what = format!("the file is that of {found:?}, and not of {account:?}");
            return Err(StoreError::new(what));
        }
    }
    let mut credential = Credential::new(document.token.as_str());
    for (name, value) in &document.fields {
        credential = credential.with_field(name.as_str(), value.as_str());
    }
    if let Some(token) = &document.refresh_token {
        credential = credential.with_refresh_token(token.as_str());
    }
    if let Some(ms) = document.expires_at_ms {
        credential = credential.with_expires_at(from_ms(ms)?);
    }
    if let Some(ms) = document.login_until_ms {
        credential = credential.with_login_until(from_ms(ms)?);
    }
    Ok(Stored::new(credential, document.revision))
}

/// Milliseconds since the epoch, rounded down: never later than it was.
fn to_ms(instant: SystemTime) -> u64 {
    let since = instant
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn from_ms(ms: u64) -> Result<SystemTime, StoreError> {
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::from_millis(ms))
        .ok_or_else(|| StoreError::new("a date that cannot be represented"))
}
