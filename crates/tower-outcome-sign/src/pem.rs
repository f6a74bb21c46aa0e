//! PEM files (RFC 7468), and what becomes of them on their way.

use tower_outcome_core::ConfigError;

use crate::secret::rejected;

/// Which half of a pair of keys a PEM is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Private,
    Public,
}

/// Returns the block of a PEM that has the key, or says what is wrong with it where that can be told.
///
/// Parameters of a curve in front of it, as `openssl ecparam -genkey` writes them, are passed over: they
/// are in the key too.
pub(crate) fn block(text: &str, half: Half) -> Result<&str, ConfigError> {
    let text = text.trim();
    if text.contains("\\n") {
        return Err(rejected(
            "a PEM with line breaks, not with a backslash and an n in their place",
        ));
    }
    if text.starts_with(['"', '\'']) {
        return Err(rejected("a PEM without quotation marks around it"));
    }
    let parameters = text.strip_prefix("-----BEGIN EC PARAMETERS-----");
    let after = parameters.and_then(|rest| rest.split_once("-----END EC PARAMETERS-----"));
    let text = after.map_or(text, |(_, rest)| rest.trim());
    let label = text.strip_prefix("-----BEGIN ");
    let Some((label, rest)) = label.and_then(|rest| rest.split_once("-----")) else {
        return Err(rejected("a PEM, which begins with -----BEGIN"));
    };
    if label.starts_with("ENCRYPTED") || rest.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(rejected("a PEM that is not encrypted"));
    }
    if label.starts_with("OPENSSH") {
        return Err(rejected("a PEM of PKCS#8, not of OpenSSH"));
    }
    match half {
        Half::Private if label.ends_with("PUBLIC KEY") || label == "CERTIFICATE" => {
            return Err(rejected("a private key, not a public one"));
        }
        Half::Public if label.ends_with("PRIVATE KEY") => {
            return Err(rejected("a public key, not a private one"));
        }
        _ => {}
    }
    if !rest.starts_with(['\n', '\r']) {
        return Err(rejected(
            "a PEM with line breaks, not with spaces in their place",
        ));
    }
    Ok(text)
}
