//! What can be known to be wrong with a description before anything is signed.

use http::HeaderValue;
use tower_outcome_core::ConfigError;

use super::{Assign, Part, Target, Value};
use crate::{
    Secret,
    secret::{Redacted, rejected},
};

/// Checks names, values and what the two have to do with each other.
pub(super) fn all(key_id: &Secret, signed: &[Part], assigns: &[Assign]) -> Result<(), ConfigError> {
    for (at, assign) in assigns.iter().enumerate() {
        target(&assign.target)?;
        if assigns[..at]
            .iter()
            .any(|other| other.target == assign.target)
        {
            let (field, name) = named(&assign.target);
            return Err(ConfigError::new(field, name, "each name once"));
        }
        if let Target::Header(_) = assign.target {
            in_header(&assign.value)?;
        }
    }
    let mut wrong = None;
    let mut look = |part: &Part| {
        let found = match part {
            Part::KeyId => key_name(key_id),
            Part::Secret(secret) if secret.expose().is_empty() => Err(rejected("not empty")),
            _ => Ok(()),
        };
        if let Err(error) = found {
            wrong.get_or_insert(error);
        }
    };
    signed.iter().for_each(|part| part.visit(&mut look));
    assigns
        .iter()
        .for_each(|assign| assign.value.visit(&mut look));
    match wrong {
        Some(wrong) => Err(wrong),
        None => told(signed, assigns),
    }
}

fn named(target: &Target) -> (&'static str, String) {
    match target {
        Target::Header(name) => ("header", name.to_string()),
        Target::Query(name) => ("query", name.clone()),
        Target::BodyField(name) => ("body_field", name.clone()),
    }
}

/// A name goes into a query or form as it is.
fn target(target: &Target) -> Result<(), ConfigError> {
    let (field, name) = named(target);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if name.is_empty() || !matches!(target, Target::Header(_)) && !name.bytes().all(plain) {
        let expected = "letters, digits, dashes, dots, underscores or tildes";
        return Err(ConfigError::new(field, name, expected));
    }
    Ok(())
}

/// Literals, and secrets that are sent as they are.
fn in_header(value: &Value) -> Result<(), ConfigError> {
    let Value::Text(parts) = value else {
        return Ok(());
    };
    for part in parts {
        match part {
            Part::Literal(text) if HeaderValue::from_bytes(text.as_bytes()).is_err() => {
                let expected = "what can be in a header";
                return Err(ConfigError::new("literal", text.to_string(), expected));
            }
            Part::Secret(secret) if HeaderValue::from_bytes(secret.expose()).is_err() => {
                return Err(rejected("what can be in a header, and no line end"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name of a key, which is often read from where its secret is.
fn key_name(key_id: &Secret) -> Result<(), ConfigError> {
    let bytes = key_id.expose();
    if bytes.is_empty() {
        let expected = "the name of the key";
        return Err(ConfigError::new("key_id", Redacted("empty"), expected));
    }
    if bytes.trim_ascii() != bytes || bytes.iter().any(u8::is_ascii_control) {
        let expected = "no line ends, and no spaces around it";
        return Err(ConfigError::new("key_id", Redacted("[redacted]"), expected));
    }
    Ok(())
}

/// What is new for each attempt has to be told to the server, or it cannot know what was signed.
fn told(signed: &[Part], assigns: &[Assign]) -> Result<(), ConfigError> {
    let is_written = |like: &dyn Fn(&Part) -> bool| {
        let parts = |value: &Value| match value {
            Value::Text(parts) => parts.iter().any(like),
            Value::Items(items) => items.iter().any(|(_, part)| like(part)),
            Value::Signatures(_) => false,
        };
        assigns.iter().any(|assign| parts(&assign.value))
    };
    let mut untold = None;
    for part in signed {
        part.visit(&mut |part| {
            let (what, written) = match part {
                Part::Timestamp(_) | Part::TimestampRfc3339 => {
                    ("a time", is_written(&|part| part.time().is_some()))
                }
                Part::Expires(_) => (
                    "an end",
                    is_written(&|part| matches!(part, Part::Expires(_))),
                ),
                Part::WindowMillis => (
                    "a window",
                    is_written(&|part| matches!(part, Part::WindowMillis)),
                ),
                Part::Nonce => ("a nonce", is_written(&|part| matches!(part, Part::Nonce))),
                Part::TokenUuid | Part::TokenHex => (
                    "a token",
                    is_written(&|part| matches!(part, Part::TokenUuid | Part::TokenHex)),
                ),
                _ => return,
            };
            if !written {
                untold.get_or_insert(what);
            }
        });
    }
    match untold {
        None => Ok(()),
        Some(what) => {
            let expected = "what is also written somewhere, so that it can be verified";
            Err(ConfigError::new("sign", Redacted(what), expected))
        }
    }
}
