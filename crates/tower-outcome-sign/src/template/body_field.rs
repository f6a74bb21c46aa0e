//! A field of its own in the body.

use bytes::Bytes;
use http::{HeaderValue, header::CONTENT_TYPE};

use crate::{
    Draft, SignError,
    draft::{conflict, escape, field},
};

/// Returns the body with a field put in front: of a form, or of an object in JSON.
///
/// A body without a content type is a form, and so is none at all.
pub(super) fn put(draft: &mut Draft, name: &str, value: &str) -> Result<Bytes, SignError> {
    let body = draft.body()?.clone();
    let unreadable = |_| SignError::encoding(name.to_owned());
    let text = std::str::from_utf8(&body).map_err(unreadable)?;
    if is_json(draft) {
        return put_json(text, name, value).map(Bytes::from);
    }
    if field(text, name).is_some() {
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

/// Reads the field back.
pub(super) fn get<'a>(draft: &'a Draft, name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(draft.body().ok()?).ok()?;
    if !is_json(draft) {
        return field(text, name);
    }
    // It is the first, where it was put.
    let rest = text.trim_start().strip_prefix('{')?.trim_start();
    let rest = rest
        .strip_prefix('"')?
        .strip_prefix(name)?
        .strip_prefix('"')?;
    let rest = rest
        .trim_start()
        .strip_prefix(':')?
        .trim_start()
        .strip_prefix('"')?;
    rest.split_once('"').map(|(value, _)| value)
}

fn put_json(text: &str, name: &str, value: &str) -> Result<String, SignError> {
    let rest = text.trim_start().strip_prefix('{');
    let rest = rest.ok_or_else(|| SignError::missing("object in its body"))?;
    // Anywhere at all, since nested objects are not told apart: rather once too often.
    if rest.contains(&format!("\"{name}\"")) {
        return Err(conflict(name.to_owned()));
    }
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
    };
    if !plain(value) || !plain(name) {
        return Err(SignError::encoding(name.to_owned()));
    }
    let comma = if rest.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    Ok(format!("{{\"{name}\":\"{value}\"{comma}{rest}"))
}

fn is_json(draft: &Draft) -> bool {
    let value = draft.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| {
        let start = value.as_bytes().get(..16);
        start.is_some_and(|start| start.eq_ignore_ascii_case(b"application/json"))
    })
}
