//! What each attempt is told.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Request;
use tower::{Layer, Service};
use tower_outcome::{Attempt, BoxError, Failure};
use tower_outcome_testkit::Ledger;

use crate::{call::Protocol, tally::Tally};

/// Numbers the attempts for the ledger and keeps what each was told.
#[derive(Clone)]
pub(crate) struct ObserveLayer {
    protocol: Protocol,
    tally: Arc<Tally>,
}

/// See [`ObserveLayer`].
#[derive(Clone)]
pub(crate) struct Observe<S> {
    inner: S,
    protocol: Protocol,
    tally: Arc<Tally>,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

// === impl ObserveLayer ===

impl ObserveLayer {
    pub(crate) fn new(protocol: Protocol, tally: &Arc<Tally>) -> Self {
        Self {
            protocol,
            tally: Arc::clone(tally),
        }
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe {
            inner,
            protocol: self.protocol,
            tally: Arc::clone(&self.tally),
        }
    }
}

// === impl Observe ===

impl<S, B> Service<Request<B>> for Observe<S>
where
    S: Service<Request<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<S::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let attempt = Attempt::of(request.extensions()).number();
        let uri = format!("{}?attempt={attempt}", request.uri());
        let operation = request.headers().get(Ledger::OPERATION_HEADER);
        let operation = operation.and_then(|operation| operation.to_str().ok());
        let operation = operation.unwrap_or_default().to_owned();
        *request.uri_mut() = uri.parse().expect("a URI with a query is one still");
        let (protocol, tally) = (self.protocol, Arc::clone(&self.tally));
        let sending = self.inner.call(request);
        Box::pin(async move {
            let result = sending.await;
            if let Err(error) = &result {
                if let Some(failure) = Failure::of(&**error) {
                    tally.observe(protocol, operation, attempt, failure);
                }
            }
            result
        })
    }
}
