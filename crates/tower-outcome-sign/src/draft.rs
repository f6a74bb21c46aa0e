//! A request that is about to be signed.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri,
    header::{CONTENT_LENGTH, Entry},
    request,
    uri::PathAndQuery,
};

use crate::{SignError, SignErrorKind};

/// A request that is about to be signed: as the caller made it, the same for every attempt.
///
/// A signer may add to it, and not replace what is there: a header that the caller has set, such as
/// an idempotency key, is the caller's.
pub struct Draft {
    head: request::Parts,
    /// `None` where the signer did not ask for it.
    body: Option<Bytes>,
    /// What was added or is covered, for the seal that debug builds put on it.
    #[cfg(debug_assertions)]
    added: Vec<HeaderName>,
}

/// Escapes of a query: everything but the unreserved characters of RFC 3986.
const HEX: &[u8; 16] = b"0123456789ABCDEF";

// === impl Draft ===

impl Draft {
    /// Takes a request with its whole body.
    #[must_use]
    pub fn new(request: Request<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        Self::from_parts(head, Some(body))
    }

    #[inline]
    pub(crate) fn from_parts(head: request::Parts, body: Option<Bytes>) -> Self {
        Self {
            head,
            body,
            #[cfg(debug_assertions)]
            added: Vec::new(),
        }
    }

    /// Returns the request, with an empty body where the signer did not ask for it.
    #[must_use]
    pub fn into_request(self) -> Request<Bytes> {
        Request::from_parts(self.head, self.body.unwrap_or_default())
    }

    /// Shows the body to the signer.
    #[inline]
    pub(crate) fn show(&mut self, body: Option<Bytes>) {
        self.body = body;
    }

    #[inline]
    pub(crate) fn take_body(&mut self) -> Option<Bytes> {
        self.body.take()
    }

    #[inline]
    pub(crate) fn head_mut(&mut self) -> &mut request::Parts {
        &mut self.head
    }

    #[inline]
    pub(crate) fn into_head(self) -> request::Parts {
        self.head
    }

    /// The headers that were added, and those that are covered.
    #[cfg(debug_assertions)]
    pub(crate) fn take_added(&mut self) -> Vec<HeaderName> {
        std::mem::take(&mut self.added)
    }

    /// Returns the head.
    #[must_use]
    pub const fn head(&self) -> &request::Parts {
        &self.head
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.head.method
    }

    /// Returns the target.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        &self.head.uri
    }

    /// Returns the headers.
    #[must_use]
    pub const fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the whole body.
    ///
    /// # Errors
    ///
    /// If the signer did not ask for it in its [`Needs`](crate::Needs): signing the lack of a body
    /// that is there would be a mistake that nobody sees.
    pub fn body(&self) -> Result<&Bytes, SignError> {
        self.body
            .as_ref()
            .ok_or_else(|| SignErrorKind::BodyNotAsked.into())
    }

    /// Adds a header.
    ///
    /// # Errors
    ///
    /// If the request has one of that name.
    pub fn set_header(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), SignError> {
        #[cfg(debug_assertions)]
        let added = name.clone();
        match self.head.headers.try_entry(name) {
            Ok(Entry::Vacant(entry)) => {
                let put = entry.try_insert(value);
                put.map_err(|_| SignError::encoding("headers"))?;
            }
            Ok(Entry::Occupied(entry)) => return Err(conflict(entry.key().to_string())),
            Err(_) => return Err(SignError::encoding("headers")),
        }
        #[cfg(debug_assertions)]
        self.added.push(added);
        Ok(())
    }

    /// Adds a header that is marked sensitive, so that `Debug` and header compression keep it to
    /// themselves.
    ///
    /// # Errors
    ///
    /// If the request has one of that name.
    pub fn set_secret_header(
        &mut self,
        name: HeaderName,
        mut value: HeaderValue,
    ) -> Result<(), SignError> {
        value.set_sensitive(true);
        self.set_header(name, value)
    }

    /// Notes that the signature covers a header that the caller has set, if it is there.
    ///
    /// A [`SealLayer`](crate::SealLayer) then finds, in debug builds, whoever changes it below; in release
    /// builds this does nothing. What the signer has added is noted without being asked, and so are
    /// method, target and body.
    #[inline]
    pub fn note_covered(&mut self, name: &HeaderName) {
        #[cfg(debug_assertions)]
        {
            // Of several values the seal would compare but one.
            let mut values = self.head.headers.get_all(name).iter();
            let one = values.next().is_some() && values.next().is_none();
            if one && !self.added.contains(name) {
                self.added.push(name.clone());
            }
        }
        #[cfg(not(debug_assertions))]
        let _ = name;
    }

    /// Adds a parameter at the end of the query; the value is escaped, the name is not.
    ///
    /// # Errors
    ///
    /// If the query has one of that name, or the result is no target of a request.
    pub fn add_query(&mut self, name: &str, value: &str) -> Result<(), SignError> {
        let query = self.head.uri.query();
        if query.is_some_and(|query| field(query, name).is_some()) {
            return Err(conflict(name.to_owned()));
        }
        let mut target = String::with_capacity(self.head.uri.path().len() + value.len() + 64);
        target.push_str(self.head.uri.path());
        target.push('?');
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            target.push_str(query);
            target.push('&');
        }
        target.push_str(name);
        target.push('=');
        escape(value.as_bytes(), &mut target);
        self.set_path_and_query(target)
    }

    /// Replaces the path and query.
    ///
    /// # Errors
    ///
    /// If it is no target of a request.
    pub fn set_path_and_query(&mut self, target: String) -> Result<(), SignError> {
        let target = PathAndQuery::from_maybe_shared(Bytes::from(target))
            .map_err(|_| SignError::encoding("request target"))?;
        let mut parts = std::mem::take(&mut self.head.uri).into_parts();
        parts.path_and_query = Some(target);
        self.head.uri =
            Uri::from_parts(parts).map_err(|_| SignError::encoding("request target"))?;
        Ok(())
    }

    /// Replaces the body; a `Content-Length` that is there follows.
    pub fn set_body(&mut self, body: Bytes) {
        if let Some(length) = self.head.headers.get_mut(CONTENT_LENGTH) {
            *length = HeaderValue::from(body.len());
        }
        self.body = Some(body);
    }
}

/// Prints neither headers nor query nor body: a signature may be in any of them.
impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("method", &self.head.method)
            .field("path", &self.head.uri.path())
            .finish_non_exhaustive()
    }
}

pub(crate) fn conflict(name: impl Into<Cow<'static, str>>) -> SignError {
    SignErrorKind::Conflict { name: name.into() }.into()
}

/// The first value of a field in a query or form, as it is written there.
pub(crate) fn field<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    fields.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

/// Writes bytes as they may stand in a query.
pub(crate) fn escape(bytes: &[u8], out: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
