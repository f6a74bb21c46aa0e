//! A field of its own in the body.

use bytes::Bytes;
use http::{HeaderValue, header::CONTENT_TYPE};

use super::{VerifyError, eval::unescaped, json};
use crate::{
    Draft, SignError,
    draft::{conflict, escape},
};

/// What a body is, if it has fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Pairs, as of a form in HTML.
    Pairs,
    /// An object in JSON.
    Object,
}

/// Returns the body with a field put in front: of a form, or of an object in JSON.
///
/// A body without a content type is a form, and so is none at all.
pub(super) fn put(draft: &mut Draft, name: &str, value: &str) -> Result<Bytes, SignError> {
    let body = draft.body()?.clone();
    let form = form(draft).ok_or_else(|| SignError::missing("form or JSON object in its body"))?;
    let unreadable = |_| SignError::encoding(name.to_owned());
    let text = std::str::from_utf8(&body).map_err(unreadable)?;
    if form == Form::Object {
        return put_json(text, name, value).map(Bytes::from);
    }
    if pairs(text, name).next().is_some() {
        return Err(conflict(name.to_owned()));
    }
    if !draft.headers().contains_key(CONTENT_TYPE) {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        draft.set_header(CONTENT_TYPE, form)?;
    }
    let mut out = String::with_capacity(name.len() + value.len() + text.len() + 2);
    out.push_str(name);
    out.push('=');
    escape(value.as_bytes(), &mut out);
    if !text.is_empty() {
        out.push('&');
        out.push_str(text);
    }
    Ok(Bytes::from(out))
}

/// Reads the field back, wherever it is: of a form, or a string or number of an object in JSON.
pub(super) fn get(draft: &Draft, name: &str) -> Result<Vec<u8>, VerifyError> {
    let body = draft.body().map_err(|_| VerifyError::Missing)?;
    let text = std::str::from_utf8(body).map_err(|_| VerifyError::Malformed)?;
    match form(draft).ok_or(VerifyError::Missing)? {
        Form::Pairs => {
            let mut values = pairs(text, name);
            match (values.next(), values.next()) {
                (Some(value), None) => Ok(unescaped(value)),
                (None, _) => Err(VerifyError::Missing),
                _ => Err(VerifyError::Malformed),
            }
        }
        Form::Object => {
            let members = json::members(text).ok_or(VerifyError::Malformed)?;
            let mut values = members.iter().filter(|member| member.name == name);
            match (values.next(), values.next()) {
                (Some(member), None) if member.value.starts_with('"') => {
                    let text = json::string(member.value).ok_or(VerifyError::Malformed)?;
                    Ok(text.into_bytes())
                }
                (Some(member), None) => Ok(member.value.as_bytes().to_vec()),
                (None, _) => Err(VerifyError::Missing),
                _ => Err(VerifyError::Malformed),
            }
        }
    }
}

/// Whether the body is a form that has such a field: where query and body are one, it must not be in
/// both.
pub(super) fn is_in_form(draft: &Draft, name: &str) -> bool {
    let text = draft.body().map(|body| std::str::from_utf8(body));
    match text {
        Ok(Ok(text)) => form(draft) == Some(Form::Pairs) && pairs(text, name).next().is_some(),
        _ => false,
    }
}

/// The values of a field of a form, however its name is written.
fn pairs<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    text.split('&').filter_map(move |pair| {
        let (own, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescaped(own) == name.as_bytes()).then_some(value)
    })
}

fn put_json(text: &str, name: &str, value: &str) -> Result<String, SignError> {
    let members = json::members(text);
    let members = members.ok_or_else(|| SignError::missing("form or JSON object in its body"))?;
    if members.iter().any(|member| member.name == name) {
        return Err(conflict(name.to_owned()));
    }
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
    };
    if !plain(value) || !plain(name) {
        return Err(SignError::encoding(name.to_owned()));
    }
    let rest = text.trim_start().strip_prefix('{').unwrap_or_default();
    let comma = if members.is_empty() { "" } else { "," };
    Ok(format!("{{\"{name}\":\"{value}\"{comma}{rest}"))
}

/// What the body is by its content type, of which there must be one at most. `None` if it has no fields.
fn form(draft: &Draft) -> Option<Form> {
    let mut types = draft.headers().get_all(CONTENT_TYPE).iter();
    let Some(first) = types.next() else {
        // Whoever has forgotten to name JSON does not want a form made of it.
        let start = draft.body().ok()?.trim_ascii_start().first().copied();
        return (!matches!(start, Some(b'{' | b'['))).then_some(Form::Pairs);
    };
    if types.next().is_some() {
        return None;
    }
    let essence = first.as_bytes().split(|byte| *byte == b';').next()?;
    let essence = essence.trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Some(Form::Object)
    } else if essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        Some(Form::Pairs)
    } else {
        None
    }
}
