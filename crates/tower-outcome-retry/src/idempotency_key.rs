//! A key for every unsafe request, by which the server recognises a repeat.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{HeaderName, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_outcome_core::{
    Attempt, BoxError, CallContext, Failure, Proof, Repeatable, RepeatableBecause, Stage,
};
use tower_service::Service;

/// Puts an idempotency key on every unsafe request that has none.
///
/// Put it above Retry: the key is made once per call, and every attempt carries the same. A key that
/// the caller set always wins (an empty one is none), and safe methods get none. A server that does not know the header
/// ignores it and gives no protection, while the classifier believes in it: use this layer only for
/// APIs that document idempotency keys.
///
/// # Outcomes
///
/// They pass through. The key that was made is handed back, so that the caller can send the *same*
/// operation again later: in the extensions of the response as [`IdempotencyKey`], and in the
/// [`Failure`] as [`idempotency_key`](Failure::idempotency_key). The failure of a response *body*
/// carries none: keep the one of its response. Make a new key only after a
/// definite refusal or for a changed request.
///
/// ```
/// use http::HeaderValue;
/// use tower_outcome_retry::IdempotencyKeyLayer;
///
/// // Keys have to be unique over restarts and among processes, as order identifiers mostly are; the
/// // feature `uuid` has `IdempotencyKeyLayer::random()`.
/// fn next_order_id() -> u64 {
///     // ...
/// #   17
/// }
/// let layer = IdempotencyKeyLayer::new(|| HeaderValue::from(next_order_id()));
/// # let _ = layer;
/// ```
#[derive(Clone)]
pub struct IdempotencyKeyLayer {
    header: HeaderName,
    generate: Arc<Generate>,
}

/// Puts an idempotency key on requests. See [`IdempotencyKeyLayer`].
#[derive(Clone)]
pub struct IdempotencyKeyService<S> {
    inner: S,
    header: HeaderName,
    generate: Arc<Generate>,
}

/// The idempotency key under which a request was sent, in the extensions of its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(HeaderValue);

pin_project! {
    /// The response future of [`IdempotencyKeyService`].
    #[derive(Debug)]
    pub struct IdempotencyKeyFuture<F> {
        // `None` if the stack cannot work, and then there is an error.
        #[pin]
        inner: Option<F>,
        error: Option<BoxError>,
        key: Option<HeaderValue>,
    }
}

type Generate = dyn Fn() -> HeaderValue + Send + Sync;

// === impl IdempotencyKeyLayer ===

impl IdempotencyKeyLayer {
    /// Creates the layer with a generator of keys, for the header `idempotency-key`.
    pub fn new(generate: impl Fn() -> HeaderValue + Send + Sync + 'static) -> Self {
        Self {
            header: HeaderName::from_static("idempotency-key"),
            generate: Arc::new(generate),
        }
    }

    /// Creates the layer with random keys: UUIDs of version 4 (RFC 9562, section 5.4).
    #[cfg(feature = "uuid")]
    #[must_use]
    pub fn random() -> Self {
        Self::new(|| {
            let mut buffer = uuid::Uuid::encode_buffer();
            let key = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
            // Hexadecimal digits and hyphens always make a header value.
            HeaderValue::from_str(key).unwrap_or_else(|_| HeaderValue::from_static(""))
        })
    }

    /// Sets the header: by default `idempotency-key`. Tell the classifier as well.
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        self.header = name;
        self
    }
}

impl fmt::Debug for IdempotencyKeyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeyLayer")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for IdempotencyKeyLayer {
    type Service = IdempotencyKeyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotencyKeyService {
            inner,
            header: self.header.clone(),
            generate: Arc::clone(&self.generate),
        }
    }
}

// === impl IdempotencyKeyService ===

impl<S> IdempotencyKeyService<S> {
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

    fn has_key<B>(&self, request: &Request<B>) -> bool {
        let key = request.headers().get(&self.header);
        key.is_some_and(|key| !key.is_empty())
    }
}

impl<S: fmt::Debug> fmt::Debug for IdempotencyKeyService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeyService")
            .field("inner", &self.inner)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl<S, B, RB> Service<Request<B>> for IdempotencyKeyService<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = IdempotencyKeyFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Err(error) = Stage::IdempotencyKey.check(request.extensions()) {
            return IdempotencyKeyFuture {
                inner: None,
                error: Some(error),
                key: None,
            };
        }
        let key =
            (!request.method().is_safe() && !self.has_key(&request)).then(|| (self.generate)());
        if let Some(key) = &key {
            if let Some(context) = CallContext::of(request.extensions()) {
                context.note_idempotency_key(key.clone());
            }
            request
                .headers_mut()
                .insert(self.header.clone(), key.clone());
        }
        IdempotencyKeyFuture {
            inner: Some(self.inner.call(request)),
            error: None,
            key,
        }
    }
}

// === impl IdempotencyKey ===

impl IdempotencyKey {
    /// Returns the key as it was sent.
    #[must_use]
    pub const fn value(&self) -> &HeaderValue {
        &self.0
    }
}

// === impl IdempotencyKeyFuture ===

impl<F, RB, E> Future for IdempotencyKeyFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<RB>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = match (this.inner.as_pin_mut(), this.error.take()) {
            (Some(inner), _) => ready!(inner.poll(cx)).map_err(Into::into),
            (None, Some(error)) => Err(error),
            (None, None) => return Poll::Pending,
        };
        let Some(key) = this.key.take() else {
            return Poll::Ready(result);
        };
        Poll::Ready(match result {
            Ok(mut response) => {
                response.extensions_mut().insert(IdempotencyKey(key));
                Ok(response)
            }
            Err(error) => Err(Failure::wrap(error, |error| {
                let proof = Proof::of(error);
                let keyed = Repeatable::Yes(RepeatableBecause::IdempotencyKey);
                (
                    proof.answer().outcome(keyed, Attempt::FIRST),
                    proof.delivery,
                )
            })
            .with_idempotency_key(key)
            .into()),
        })
    }
}
