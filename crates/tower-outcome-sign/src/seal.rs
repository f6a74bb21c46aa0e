//! Finding, in debug builds, whoever changes what was signed.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
#[cfg(debug_assertions)]
use http::{HeaderName, HeaderValue, Method, Uri, header::HOST};
use http::{Request, request};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_outcome_core::BoxError;
use tower_service::Service;

use crate::SignError;
#[cfg(debug_assertions)]
use crate::SignErrorKind;

mod body;

pub use self::body::SealedBody;

/// Finds, in debug builds, a layer between [`SignLayer`](crate::SignLayer) and this one that changes
/// what was signed, and refuses to send the request.
///
/// Put it directly above the client. A layer that adds a query parameter, rewrites the path, replaces
/// a header of the signature or compresses the body would have every request refused by the server,
/// with a message about keys; here the error names the part. Compared are the method, the target with its
/// scheme, `Host`, the headers that the signer added or [covers](crate::Draft::note_covered), and, where
/// the signer asked for it, the body: its length at once and its bytes as they are sent.
///
/// A request that carries no seal is refused as well: a layer has made another request of it, or this one
/// stands above the signature. Where some requests are not meant to be signed, say so with
/// [`optional`](Self::optional).
///
/// In release builds it hands everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct SealLayer {
    is_optional: bool,
}

/// Compares requests with what was signed. See [`SealLayer`].
#[derive(Clone, Debug)]
pub struct Seal<S = ()> {
    inner: S,
    #[cfg_attr(
        not(debug_assertions),
        expect(dead_code, reason = "nothing is looked at")
    )]
    is_optional: bool,
}

pin_project! {
    /// The response future of [`Seal`].
    #[derive(Debug)]
    pub struct SealFuture<F> {
        #[pin]
        inner: Option<F>,
        broken: Option<SignError>,
    }
}

/// What was signed, in the extensions of the request.
#[cfg(debug_assertions)]
#[derive(Clone)]
struct Impression {
    method: Method,
    uri: Uri,
    headers: Vec<(HeaderName, Option<HeaderValue>)>,
    /// `None` where the signer did not ask for it.
    body: Option<Bytes>,
}

// === impl SealLayer ===

impl SealLayer {
    /// Creates the layer.
    #[must_use]
    pub const fn new() -> Self {
        Self { is_optional: false }
    }

    /// Lets requests through that nobody has signed.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }
}

impl<S> Layer<S> for SealLayer {
    type Service = Seal<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Seal {
            inner,
            is_optional: self.is_optional,
        }
    }
}

// === impl Seal ===

impl Seal {
    /// Notes what was signed.
    #[cfg(debug_assertions)]
    pub(crate) fn put(head: &mut request::Parts, body: Option<Bytes>, mut added: Vec<HeaderName>) {
        if head.headers.contains_key(HOST) && !added.contains(&HOST) {
            added.push(HOST);
        }
        let headers = added.into_iter().map(|name| {
            let value = head.headers.get(&name).cloned();
            (name, value)
        });
        let impression = Impression {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: headers.collect(),
            body,
        };
        head.extensions.insert(impression);
    }
}

impl<S> Seal<S> {
    /// Returns the inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, mutably.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service, by value.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B> Service<Request<B>> for Seal<S>
where
    S: Service<Request<SealedBody<B>>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = SealFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        match self.check(&head, &body) {
            Err(error) => SealFuture {
                inner: None,
                broken: Some(error),
            },
            Ok(signed) => {
                let request = Request::from_parts(head, SealedBody::new(body, signed));
                SealFuture {
                    inner: Some(self.inner.call(request)),
                    broken: None,
                }
            }
        }
    }
}

impl<S> Seal<S> {
    /// Compares a request with its seal, and returns the body that was signed.
    #[cfg(debug_assertions)]
    fn check(&self, head: &request::Parts, body: &impl Body) -> Result<Option<Bytes>, SignError> {
        let Some(signed) = head.extensions.get::<Impression>() else {
            return if self.is_optional {
                Ok(None)
            } else {
                Err(SignErrorKind::Unsealed.into())
            };
        };
        match signed.broken(head, body) {
            None => Ok(signed.body.clone()),
            Some(part) => Err(SignErrorKind::Tampered { part: part.into() }.into()),
        }
    }

    #[cfg(not(debug_assertions))]
    #[inline]
    fn check(&self, _: &request::Parts, _: &impl Body) -> Result<Option<Bytes>, SignError> {
        Ok(None)
    }
}

// === impl Impression ===

#[cfg(debug_assertions)]
impl Impression {
    /// The part that is not as it was signed.
    fn broken(&self, head: &request::Parts, body: &impl Body) -> Option<String> {
        if head.method != self.method {
            return Some("method".to_owned());
        }
        if head.uri.scheme() != self.uri.scheme() {
            return Some("scheme".to_owned());
        }
        if head.uri.path_and_query() != self.uri.path_and_query()
            || head.uri.authority() != self.uri.authority()
        {
            return Some("target".to_owned());
        }
        for (name, value) in &self.headers {
            let mut present = head.headers.get_all(name).iter();
            if present.next() != value.as_ref() || present.next().is_some() {
                return Some(format!("header {name}"));
            }
        }
        // Added below, it has to say what the target says.
        let host = head.headers.get(HOST);
        let was_there = self.headers.iter().any(|(name, _)| name == HOST);
        let authority = self.uri.authority().map(http::uri::Authority::as_str);
        if let (Some(host), Some(authority), false) = (host, authority, was_there) {
            if !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()) {
                return Some("header host".to_owned());
            }
        }
        let signed = u64::try_from(self.body.as_ref()?.len()).ok();
        (body.size_hint().exact() != signed).then(|| "body".to_owned())
    }
}

// === impl SealFuture ===

impl<F, T, E> Future for SealFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(error) = this.broken.take() {
            return Poll::Ready(Err(error.into_failure().into()));
        }
        match this.inner.as_pin_mut() {
            Some(inner) => Poll::Ready(ready!(inner.poll(cx)).map_err(Into::into)),
            // Polled after completion, which the contract of futures leaves open.
            None => Poll::Pending,
        }
    }
}
