//! What a venue answers and what an answer is made from.

use std::time::Duration;

use bytes::Bytes;

/// An answer of a venue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers, without those that frame the body.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// The trailers.
    pub trailers: Vec<(String, String)>,
}

/// A complete request on which the venue is about to act.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// The time since the venue started.
    pub at: Duration,
}

// === impl Answer ===

impl Answer {
    /// Makes an answer without a body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            trailers: Vec::new(),
        }
    }

    /// Makes an answer with a JSON document.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::status(status)
            .header("content-type", "application/json")
            .body(body)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds a trailer.
    #[must_use]
    pub fn trailer(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.trailers.push((name.into(), value.into()));
        self
    }

    /// What a venue without an answer of its own says to an applied request.
    pub(crate) fn applied(grpc: bool) -> Self {
        if grpc {
            // One empty message: not compressed, length 0.
            Self::grpc()
                .body(&[0_u8; 5][..])
                .trailer("grpc-status", "0")
        } else {
            Self::json(200, r#"{"status":"applied"}"#)
        }
    }

    /// Whether answers with this status never have a body (RFC 9110, section 6.4.1).
    pub(crate) fn is_bodyless(&self) -> bool {
        matches!(self.status, 204 | 304)
    }

    /// The head of a gRPC answer.
    pub(crate) fn grpc() -> Self {
        Self::status(200).header("content-type", "application/grpc")
    }
}

// === impl Request ===

impl Request {
    /// Returns the first value of a header, its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Returns it as others know requests: with its target, headers in their order, and body.
    ///
    /// # Errors
    ///
    /// If its target or a header is none by the rules of `http`; the venue takes more than that.
    pub fn to_http(&self) -> Result<http::Request<Bytes>, http::Error> {
        let mut request = http::Request::builder()
            .method(self.method.as_str())
            .uri(self.path.as_str());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(self.body.clone())
    }

    /// Returns the name of the client, the header `x-client`.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.header("x-client")
    }
}

pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(candidate, _)| candidate == name)
        .map(|(_, value)| value.as_str())
}
