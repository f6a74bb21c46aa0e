//! Finding, in debug builds, whoever changes what was signed.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

#[cfg(debug_assertions)]
use http::{HeaderName, HeaderValue, Method, Uri};
use http::{Request, request};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_outcome_core::BoxError;
use tower_service::Service;

use crate::{SignError, SignErrorKind};

/// Finds, in debug builds, a layer between [`SignLayer`](crate::SignLayer) and this one that changes
/// what was signed, and refuses to send the request.
///
/// Put it directly above the client. A layer that adds a query parameter, rewrites the path, replaces
/// a header of the signature or compresses the body would have every request refused by the server,
/// with a message about keys; here the error names the part. Compared are the method, the target, the
/// headers that the signer added, and the length of the body where it is known.
///
/// In release builds it hands everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct SealLayer(());

/// Compares requests with what was signed. See [`SealLayer`].
#[derive(Clone, Debug)]
pub struct Seal<S = ()> {
    inner: S,
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
    length: Option<u64>,
}

// === impl SealLayer ===

impl SealLayer {
    /// Creates the layer.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for SealLayer {
    type Service = Seal<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Seal { inner }
    }
}

// === impl Seal ===

impl Seal {
    /// Notes what was signed.
    #[cfg(debug_assertions)]
    pub(crate) fn put(head: &mut request::Parts, body: &impl Body, added: Vec<HeaderName>) {
        let headers = added.into_iter().map(|name| {
            let value = head.headers.get(&name).cloned();
            (name, value)
        });
        let impression = Impression {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: headers.collect(),
            length: body.size_hint().exact(),
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
    S: Service<Request<B>>,
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
        match broken(&head, &body) {
            Some(part) => SealFuture {
                inner: None,
                broken: Some(SignErrorKind::Tampered { part: part.into() }.into()),
            },
            None => SealFuture {
                inner: Some(self.inner.call(Request::from_parts(head, body))),
                broken: None,
            },
        }
    }
}

/// The part that is not as it was signed.
#[cfg(debug_assertions)]
fn broken(head: &request::Parts, body: &impl Body) -> Option<String> {
    let signed = head.extensions.get::<Impression>()?;
    if head.method != signed.method {
        return Some("method".to_owned());
    }
    if head.uri.path_and_query() != signed.uri.path_and_query()
        || head.uri.authority() != signed.uri.authority()
    {
        return Some("target".to_owned());
    }
    for (name, value) in &signed.headers {
        let mut present = head.headers.get_all(name).iter();
        if present.next() != value.as_ref() || present.next().is_some() {
            return Some(format!("header {name}"));
        }
    }
    match (signed.length, body.size_hint().exact()) {
        (Some(signed), Some(length)) if signed == length => None,
        (Some(_), _) => Some("body".to_owned()),
        (None, _) => None,
    }
}

#[cfg(not(debug_assertions))]
#[inline]
fn broken(_: &request::Parts, _: &impl Body) -> Option<String> {
    None
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
