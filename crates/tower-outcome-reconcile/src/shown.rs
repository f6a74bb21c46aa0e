//! What is shown of requests and responses in logs: nothing that may be a secret.

use std::fmt;

use http::{HeaderMap, Response, request};

/// A response with its status and the names of its headers.
pub(crate) struct ShownResponse<'a, B>(pub(crate) &'a Response<B>);

/// The head of a request with its method, its path and the names of its headers.
pub(crate) struct ShownRequest<'a>(pub(crate) &'a request::Parts);

struct Names<'a>(&'a HeaderMap);

impl<B> fmt::Debug for ShownResponse<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.0.status())
            .field("headers", &Names(self.0.headers()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ShownRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.0.method)
            .field("path", &self.0.uri.path())
            .field("headers", &Names(&self.0.headers))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.keys().map(http::HeaderName::as_str);
        f.debug_list().entries(names).finish()
    }
}
