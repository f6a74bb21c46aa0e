//! One more look at a credential, below what waits.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Extensions, HeaderMap, Request, header};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_outcome_core::BoxError;
use tower_service::Service;

use crate::{Credentials, Snapshot, UnavailableKind, course, obtain::Refusal};

/// Looks at the credential of a request once more, right before the request is sent: for below a limiter
/// whose waits may be longer than the mandatory [window](crate::Windows).
///
/// One that has expired since is replaced by the present one; if there is none that is good, nothing is
/// sent: the error is as that of [`AuthRefresh`](crate::AuthRefresh) (`auth_unavailable`, `NotSent`), and
/// a refresh is under way when Retry comes again.
///
/// It knows credentials that are
/// [handed down](crate::AuthRefreshLayerBuilder::hands_down), and lets all other requests through. What
/// signs belongs below it. A cookie is not replaced but refused.
///
/// ```
/// use tower::ServiceBuilder;
/// use tower_outcome_auth_refresh::{AuthRefreshLayer, Credentials, ExpiryGuardLayer};
///
/// # fn stack<L>(credentials: Credentials, limiter: L) {
/// let stack = ServiceBuilder::new()
///     .layer(AuthRefreshLayer::builder(credentials.clone()).hands_down(true).build())
///     .layer(limiter)
///     .layer(ExpiryGuardLayer::new(credentials));
/// # drop(stack);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ExpiryGuardLayer {
    credentials: Credentials,
}

/// Looks at the credential of a request once more, right before the request is sent.
///
/// See [`ExpiryGuardLayer`].
#[derive(Clone, Debug)]
pub struct ExpiryGuard<S> {
    inner: S,
    credentials: Credentials,
}

pin_project! {
    /// The response future of [`ExpiryGuard`].
    pub struct ExpiryGuardFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Sent { #[pin] future: F },
        Refused { error: Option<BoxError> },
    }
}

// === impl ExpiryGuardLayer ===

impl ExpiryGuardLayer {
    /// Creates the layer for the credentials of the layer above.
    #[must_use]
    pub const fn new(credentials: Credentials) -> Self {
        Self { credentials }
    }
}

impl<S> Layer<S> for ExpiryGuardLayer {
    type Service = ExpiryGuard<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ExpiryGuard {
            inner,
            credentials: self.credentials.clone(),
        }
    }
}

// === impl ExpiryGuard ===

impl<S> ExpiryGuard<S> {
    /// Returns the inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Replaces what has expired, or says why nothing is sent.
    fn check(&self, headers: &mut HeaderMap, extensions: &mut Extensions) -> Result<(), BoxError> {
        let Some(Snapshot(carried)) = extensions.get::<Snapshot>() else {
            return Ok(());
        };
        let shared = &self.credentials.0;
        if !shared.is_over(carried) {
            return Ok(());
        }
        let present = shared.servable().filter(|present| {
            // A cookie is one of several in a field, from which it is not taken out.
            let mut names = carried.headers.iter().chain(&present.headers);
            names.all(|(name, _)| *name != header::COOKIE)
        });
        let Some(present) = present else {
            let refusal = Refusal {
                why: shared.unavailable(UnavailableKind::ExpiredBelow),
                after: None,
            };
            return Err(course::not_sent(refusal));
        };
        for (name, _) in &carried.headers {
            headers.remove(name);
        }
        present.put_on(headers);
        extensions.insert(Snapshot(Arc::clone(&present)));
        Ok(())
    }
}

impl<S, B> Service<Request<B>> for ExpiryGuard<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ExpiryGuardFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let state = match self.check(&mut head.headers, &mut head.extensions) {
            Ok(()) => State::Sent {
                future: self.inner.call(Request::from_parts(head, body)),
            },
            Err(error) => State::Refused { error: Some(error) },
        };
        ExpiryGuardFuture { state }
    }
}

// === impl ExpiryGuardFuture ===

impl<F, T, E> Future for ExpiryGuardFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Sent { future } => future.poll(cx).map_err(Into::into),
            StateProj::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                // Polled after completion, which the contract of futures leaves open.
                None => Poll::Pending,
            },
        }
    }
}

impl<F> fmt::Debug for ExpiryGuardFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiryGuardFuture").finish_non_exhaustive()
    }
}
