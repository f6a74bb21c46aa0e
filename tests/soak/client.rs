//! The stack under test, once for each protocol.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_outcome::{
    Answer, Attempt, Backoff, BoxError, CallReport, Failure, HttpClassifier, Judged, Outcome,
    Reason, ReplayBody, ReplayLayer, RetryBudget, RetryLayer, WitnessBody, WitnessConnector,
    WitnessLayer, replay::ReplayService, retry::Retry, witness::Witness,
};

use crate::{
    body::Body,
    call::{Call, Protocol},
    tally::{Ending, Tally},
};

/// How long one attempt may take. The venue answers within milliseconds where it answers at all.
const ATTEMPT: Duration = Duration::from_millis(150);

/// How long a call may take, response body included. hyper can leave a response future pending for
/// ever, so there has to be some such bound.
const CALL: Duration = Duration::from_secs(5);

type Transport = Client<WitnessConnector<HttpConnector>, WitnessBody<ReplayBody<Body>>>;
type Stack = ReplayService<Retry<Observe<Witness<AttemptTimeout<Transport>>>>>;

/// A client for each protocol, with the stack under test around it.
#[derive(Clone)]
pub(crate) struct Clients {
    http1: Stack,
    http2: Stack,
}

// === impl Clients ===

impl Clients {
    pub(crate) fn new(tally: &Arc<Tally>) -> Self {
        Self {
            http1: stack(Protocol::Http1, tally),
            http2: stack(Protocol::Http2, tally),
        }
    }

    /// Makes one call and reads the response to its end.
    pub(crate) async fn send(&self, call: &Call, base: &str) -> Ending {
        let stack = match call.protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        };
        let answered = async {
            let mut stack = stack.clone();
            let sending = match stack.ready().await {
                Ok(stack) => stack.call(call.request(base)),
                Err(error) => return Ending::of_error(&error),
            };
            let result = sending.await;
            let report = CallReport::in_result(&result).cloned();
            let outcome = CallReport::outcome_of(&result);
            match result {
                Ok(response) => match response.into_body().collect().await {
                    Ok(_) => Ending::of_response(outcome, report.as_ref()),
                    Err(error) => Ending::of_error(&error),
                },
                Err(error) => Ending::of_error(&error),
            }
        };
        // Whoever stops waiting does not know, and says so.
        tokio::time::timeout(CALL, answered)
            .await
            .unwrap_or(Ending::GAVE_UP)
    }
}

fn stack(protocol: Protocol, tally: &Arc<Tally>) -> Stack {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let transport = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_only(protocol == Protocol::Http2)
        .retry_canceled_requests(false)
        .build(WitnessConnector::new(connector));
    let observe = ObserveLayer {
        protocol,
        tally: Arc::clone(tally),
    };
    let retry = RetryLayer::builder()
        .classifier(classifier())
        .backoff(
            Backoff::new()
                .base(Duration::from_millis(1))
                .throttled_base(Duration::from_millis(1))
                .cap(Duration::from_millis(5)),
        )
        // The point is to send as much as is allowed, not to spare the venue.
        .budget(RetryBudget::unlimited())
        .build()
        .expect("a valid configuration");
    ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(retry)
        .layer(observe)
        .layer(WitnessLayer::new())
        .layer_fn(|inner| AttemptTimeout { inner })
        .service(transport)
}

/// The venue says "busy" inside a 200, and may have acted.
fn classifier() -> HttpClassifier {
    HttpClassifier::builder()
        .body_rule(|seen: Judged<'_>| {
            (seen.head.status == StatusCode::OK && seen.body.starts_with(br#"{"error""#)).then_some(
                Answer::Unclear {
                    reason: Reason::ServerError,
                    after: None,
                    transient: true,
                },
            )
        })
        .build()
        .expect("a valid configuration")
}

/// Bounds one attempt, by dropping it.
#[derive(Clone)]
struct AttemptTimeout<S> {
    inner: S,
}

/// Numbers the attempts for the ledger and keeps what each was told.
#[derive(Clone)]
struct ObserveLayer {
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

// === impl AttemptTimeout ===

impl<S, R> Service<R> for AttemptTimeout<S>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<S::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let attempt = tokio::time::timeout(ATTEMPT, self.inner.call(request));
        Box::pin(async move { attempt.await?.map_err(Into::into) })
    }
}

// === impl Observe ===

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
        let operation = request.uri().path().trim_start_matches('/').to_owned();
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

// === impl Ending ===

impl Ending {
    /// The caller stopped waiting after the request was handed down.
    const GAVE_UP: Self = Self {
        outcome: Some(Outcome::Unknown {
            reason: Reason::TimedOut,
        }),
        proves_not_applied: false,
        gave_up: true,
    };

    fn of_response(outcome: Outcome, report: Option<&CallReport>) -> Self {
        Self {
            outcome: Some(outcome),
            proves_not_applied: report.is_some_and(|report| report.delivery().proves_not_applied()),
            gave_up: false,
        }
    }

    fn of_error(error: &BoxError) -> Self {
        let failure = Failure::of(&**error);
        Self {
            outcome: failure.map(Failure::outcome),
            proves_not_applied: failure
                .is_some_and(|failure| failure.delivery().proves_not_applied()),
            gave_up: false,
        }
    }
}
