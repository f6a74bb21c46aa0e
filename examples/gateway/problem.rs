//! Answers of this gateway itself, for machines (RFC 9457).

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

/// An answer of this gateway itself, as `application/problem+json`.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    members: Map<String, Value>,
}

// === impl Problem ===

impl Problem {
    /// Starts with a status, the last part of the type, and a title, which is the same for all of a type.
    pub(crate) fn new(status: StatusCode, kind: &str, title: &str) -> Self {
        let mut members = Map::new();
        // A name and no address: there is nothing to be fetched (RFC 9457, section 3.1.1).
        members.insert(
            "type".to_owned(),
            json!(format!("tag:gateway.example,2026:{kind}")),
        );
        members.insert("title".to_owned(), json!(title));
        members.insert("status".to_owned(), json!(status.as_u16()));
        Self { status, members }
    }

    /// Adds a member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Makes the answer.
    pub(crate) fn into_response(self) -> Response<Body> {
        let body = format!("{}\n", Value::Object(self.members));
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
