//! Whether what a template writes can be read back.

use tower_outcome_core::ConfigError;

use crate::{
    Unit,
    secret::Redacted,
    template::{Assign, Part, Target, Template, Value},
};

/// What a text may go on with.
#[derive(Clone, Copy, Debug)]
enum Class {
    Digits,
    Token,
    Signature,
}

/// Refuses what could not be verified, however right it is.
pub(super) fn check(template: &Template) -> Result<(), ConfigError> {
    let wrong = |field, what, expected| Err(ConfigError::new(field, Redacted(what), expected));
    let (mut times, mut ends, mut signatures) = (Vec::new(), Vec::new(), 0);
    for assign in template.before.iter().chain(&template.after) {
        let parts: Vec<&Part> = match &assign.value {
            Value::Text(parts) => {
                if parts
                    .windows(2)
                    .any(|pair| runs_on(template, &pair[0], &pair[1]))
                {
                    let expected = "something in between, by which they can be told apart";
                    return wrong("parts", "one runs into the next", expected);
                }
                parts.iter().collect()
            }
            Value::Items(items) => items.iter().map(|(_, part)| part).collect(),
            Value::Signatures(_) => vec![&Part::Signature],
        };
        for part in parts {
            let mut hidden = false;
            if let Part::Hash(_, inner) = part {
                let mut look = |part: &Part| hidden |= part.is_fresh();
                inner.iter().for_each(|part| part.visit(&mut look));
            }
            if hidden {
                let expected = "what is new for each attempt as it is, not in a hash";
                return wrong("parts", "a hash", expected);
            }
            if part.is_fresh() && !is_signed(template, assign, part) {
                let expected = "what is written to be signed, or anybody could change it";
                return wrong("sign", "less than is written", expected);
            }
            times.extend(part.time());
            signatures += usize::from(matches!(part, Part::Signature));
            if let Part::Expires(unit) = part {
                ends.push(*unit);
            }
        }
    }
    if signatures > 1 {
        return wrong("signature", "in two places", "in one");
    }
    for part in &template.signed {
        let mut finer = false;
        let mut look = |part: &Part| {
            let than = |written: &[Unit], unit| written.iter().any(|written| unit < *written);
            finer |= part.time().is_some_and(|unit| than(&times, unit));
            finer |= matches!(part, Part::Expires(unit) if than(&ends, *unit));
        };
        part.visit(&mut look);
        if finer {
            return wrong("sign", "a time", "none that is finer than is written");
        }
    }
    let differ = |units: &[Unit]| units.windows(2).any(|pair| pair[0] != pair[1]);
    if differ(&times) || differ(&ends) {
        return wrong("parts", "times", "all of one unit");
    }
    Ok(())
}

/// Whether what is written somewhere is signed: by itself, or because what it is put into is.
fn is_signed(template: &Template, assign: &Assign, written: &Part) -> bool {
    if matches!(written, Part::Signature) {
        return true;
    }
    let mut found = false;
    let mut look = |part: &Part| {
        found |= match &assign.target {
            Target::Query(_) => matches!(part, Part::Query | Part::PathAndQuery | Part::Url),
            Target::BodyField(_) => {
                matches!(part, Part::Body | Part::BodyHash(..) | Part::SortedForm)
            }
            Target::Header(name) => matches!(part, Part::Header(own) if own == name),
        };
        found |= match written {
            Part::Timestamp(_) | Part::TimestampRfc3339 => part.time().is_some(),
            Part::Expires(_) => matches!(part, Part::Expires(_)),
            Part::WindowMillis => matches!(part, Part::WindowMillis),
            Part::Nonce => matches!(part, Part::Nonce),
            Part::TokenUuid | Part::TokenHex => {
                matches!(part, Part::TokenUuid | Part::TokenHex)
            }
            _ => false,
        };
    };
    template
        .signed
        .iter()
        .for_each(|part| part.visit(&mut look));
    found
}

/// Whether nobody can say where one part ends and the next begins.
fn runs_on(template: &Template, part: &Part, next: &Part) -> bool {
    let class = match part {
        Part::Timestamp(_) | Part::Expires(_) | Part::WindowMillis | Part::Nonce => Class::Digits,
        Part::TokenUuid | Part::TokenHex => Class::Token,
        Part::Signature => Class::Signature,
        _ => return false,
    };
    let belongs = |byte: u8| match class {
        Class::Digits => byte.is_ascii_digit(),
        Class::Token => byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_',
        Class::Signature => template.encoding.has(byte),
    };
    match next {
        Part::Literal(text) => text.bytes().next().is_none_or(belongs),
        Part::Secret(secret) => secret.expose().first().copied().is_none_or(belongs),
        Part::KeyId => template
            .key_id
            .expose()
            .first()
            .copied()
            .is_none_or(belongs),
        Part::Path | Part::PathAndQuery => belongs(b'/'),
        Part::Timestamp(_)
        | Part::TimestampRfc3339
        | Part::Expires(_)
        | Part::WindowMillis
        | Part::Nonce => belongs(b'0'),
        // Whatever a request may have.
        _ => true,
    }
}
