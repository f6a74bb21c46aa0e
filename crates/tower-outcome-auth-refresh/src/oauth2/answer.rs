//! What the answer of a token endpoint means.

use std::{error::Error, fmt, time::Duration};

use ::oauth2::{
    HttpResponse, RequestTokenError,
    basic::{BasicErrorResponse, BasicErrorResponseType},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use tower_outcome_core::{BoxError, Clock, RetryAfter};

use crate::FetchError;

/// Says that a token endpoint gave no answer that could be used.
#[derive(Debug)]
pub(super) struct NotAnswered {
    status: Option<StatusCode>,
    after: Option<Duration>,
    /// What the tokens are that it issues, if they are of no use here.
    token_type: Option<String>,
    source: Option<BoxError>,
}

/// Says that a token endpoint refused.
#[derive(Debug)]
struct RefusedGrant {
    code: String,
}

/// The answer itself is not kept: it may have a token in it.
pub(super) fn class(error: RequestTokenError<NotAnswered, BasicErrorResponse>) -> FetchError {
    match error {
        RequestTokenError::ServerResponse(refused) => {
            let code = refused.error();
            let is_dead = match code {
                BasicErrorResponseType::InvalidGrant
                | BasicErrorResponseType::InvalidClient
                | BasicErrorResponseType::InvalidScope
                | BasicErrorResponseType::UnauthorizedClient
                | BasicErrorResponseType::UnsupportedGrantType => true,
                BasicErrorResponseType::InvalidRequest => false,
                BasicErrorResponseType::Extension(code) => code == "unsupported_token_type",
            };
            let error = RefusedGrant {
                code: code.as_ref().chars().take(64).collect(),
            };
            if is_dead {
                FetchError::dead(error)
            } else {
                FetchError::transient(error)
            }
        }
        // Nothing changes by itself.
        RequestTokenError::Request(error) if error.token_type.is_some() => FetchError::dead(error),
        RequestTokenError::Request(error) => {
            let after = error.after;
            let error = FetchError::transient(error);
            match after {
                Some(after) => error.with_after(after),
                None => error,
            }
        }
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            FetchError::transient(NotAnswered {
                status: None,
                after: None,
                token_type: None,
                source: None,
            })
        }
    }
}

/// Returns an answer as the standard has it, if it can be used.
///
/// A server that fails says nothing about the grant, whatever stands in its body.
pub(super) fn usable(
    answer: Result<HttpResponse, BoxError>,
    clock: &dyn Clock,
) -> Result<HttpResponse, NotAnswered> {
    let answer = answer.map_err(|source| NotAnswered {
        status: None,
        after: None,
        token_type: None,
        source: Some(source),
    })?;
    let status = answer.status();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let after = RetryAfter::from_headers(answer.headers(), clock.now());
        return Err(NotAnswered {
            status: Some(status),
            after: after.map(|after| after.delay()),
            token_type: None,
            source: None,
        });
    }
    if status.is_success() || status.is_client_error() {
        return canonical(answer);
    }
    Ok(answer)
}

/// Puts what servers get slightly wrong as RFC 6749 has it (section 5), and leaves the rest alone.
fn canonical(mut answer: HttpResponse) -> Result<HttpResponse, NotAnswered> {
    let Ok(Value::Object(mut found)) = serde_json::from_slice(answer.body()) else {
        return Ok(answer);
    };
    let json = HeaderValue::from_static("application/json");
    let token = found.remove("access_token");
    let (Some(Value::String(token)), true) = (token, answer.status().is_success()) else {
        if found.get("error").is_some_and(Value::is_string) {
            // A refusal, whatever its status and type of content.
            *answer.status_mut() = StatusCode::BAD_REQUEST;
            answer.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        return Ok(answer);
    };
    let token_type = found.get("token_type").and_then(Value::as_str);
    let token_type = token_type.unwrap_or("bearer");
    if !token_type.eq_ignore_ascii_case("bearer") {
        return Err(NotAnswered {
            status: None,
            after: None,
            token_type: Some(token_type.chars().take(32).collect()),
            source: None,
        });
    }
    let mut written = Map::new();
    written.insert("access_token".to_owned(), Value::String(token));
    written.insert("token_type".to_owned(), Value::from("bearer"));
    if let Some(seconds) = found.get("expires_in").and_then(seconds) {
        written.insert("expires_in".to_owned(), Value::from(seconds));
    }
    match found.remove("refresh_token") {
        Some(token @ Value::String(_)) => {
            written.insert("refresh_token".to_owned(), token);
        }
        None | Some(Value::Null) => {}
        // Without it the next refresh would spend the one that this has replaced.
        Some(_) => return Ok(answer),
    }
    *answer.body_mut() = Value::Object(written).to_string().into_bytes();
    *answer.status_mut() = StatusCode::OK;
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(answer)
}

/// A lifetime, rounded down; `None` if it is none.
fn seconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let lifetime = Duration::try_from_secs_f64(seconds?).ok()?;
    Some(lifetime.as_secs())
}

// === impl NotAnswered ===

impl fmt::Display for NotAnswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(token_type) = &self.token_type {
            let what = "the token endpoint issues tokens of another type than bearer";
            return write!(f, "{what}: {token_type:?}");
        }
        match (&self.status, &self.source) {
            (Some(status), _) => write!(f, "the token endpoint answered {status}"),
            (None, Some(_)) => f.write_str("the token endpoint did not answer"),
            (None, None) => f.write_str("the token endpoint's answer could not be read"),
        }
    }
}

impl Error for NotAnswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

// === impl RefusedGrant ===

impl fmt::Display for RefusedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the token endpoint refused: {}", self.code)
    }
}

impl Error for RefusedGrant {}
