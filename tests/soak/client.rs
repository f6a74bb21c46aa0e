//! The stack under test, once for each protocol.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, StatusCode, uri::Authority};
use http_body_util::BodyExt;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_outcome::{
    Answer, Attempt, Backoff, BoxError, CallReport, ConnectTimeoutLayer, ConnectionLimitLayer,
    DeadlineLayer, Failure, HttpClassifier, Judged, Outcome, Reason, ReplayBody, ReplayLayer,
    RetryBudget, RetryLayer, TimeoutLayer, Timeouts, WitnessBody, WitnessConnector, WitnessLayer,
    replay::ReplayService,
    retry::Retry,
    timeout::{ConnectTimeout, ConnectionLimit, DeadlineService, SentBody, Timeout},
    witness::Witness,
};

use crate::{
    black_hole::BlackHole,
    body::Body,
    call::{Call, Protocol},
    tally::{Ending, Tally},
};

/// How long one attempt may take. The venue answers within milliseconds where it answers at all.
const ATTEMPT: Duration = Duration::from_millis(150);

/// How long a request that was taken may go unanswered, and one that is being sent may make no progress.
const PAUSE: Duration = Duration::from_millis(100);

/// How long connecting may take. Some addresses are black holes.
const CONNECT: Duration = Duration::from_millis(60);

/// How long a response body may pause. Some never go on.
const READ_IDLE: Duration = Duration::from_millis(200);

/// How long a call may wait for a slot, while others stall.
const ACQUIRE: Duration = Duration::from_millis(50);

/// Fewer requests in flight than there are calls under way, so that some have to wait.
const IN_FLIGHT: usize = 24;

/// How long a call may take that has no deadline of its own, response body included.
pub(crate) const CALL: Duration = Duration::from_secs(5);

/// What a call may be late before its caller stops waiting: then the deadline does not work.
const PATIENCE: Duration = Duration::from_secs(5);

type Transport = Client<
    WitnessConnector<ConnectTimeout<HttpConnector>>,
    WitnessBody<SentBody<ReplayBody<Body>>>,
>;
type OneAttempt = ConnectionLimit<Timeout<Witness<Transport>>, Option<Authority>>;
type Stack = ReplayService<DeadlineService<Retry<Observe<OneAttempt>>>>;

/// A client for each protocol, with the stack under test around it.
#[derive(Clone)]
pub(crate) struct Clients {
    http1: Stack,
    http2: Stack,
    black_hole: Arc<BlackHole>,
    tally: Arc<Tally>,
}

// === impl Clients ===

impl Clients {
    pub(crate) fn new(tally: &Arc<Tally>) -> Self {
        Self {
            http1: stack(Protocol::Http1, tally),
            http2: stack(Protocol::Http2, tally),
            black_hole: Arc::new(BlackHole::open()),
            tally: Arc::clone(tally),
        }
    }

    fn failed(&self, error: &BoxError) -> Ending {
        self.tally.observe_end(error);
        Ending::of_error(error)
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
                Ok(stack) => stack.call(call.request(base, &self.black_hole)),
                Err(error) => return Ending::of_error(&error),
            };
            let result = sending.await;
            let report = CallReport::in_result(&result).cloned();
            let outcome = CallReport::outcome_of(&result);
            match result {
                Ok(response) => match response.into_body().collect().await {
                    Ok(_) => Ending::of_response(outcome, report.as_ref()),
                    Err(error) => self.failed(&error),
                },
                Err(error) => self.failed(&error),
            }
        };
        let limit = call.deadline.unwrap_or(CALL);
        let started = Instant::now();
        // Whoever stops waiting does not know, and says so.
        let ending = tokio::time::timeout(limit + PATIENCE, answered).await;
        Ending {
            late: started.elapsed().saturating_sub(limit),
            ..ending.unwrap_or(Ending::GAVE_UP)
        }
    }
}

fn stack(protocol: Protocol, tally: &Arc<Tally>) -> Stack {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let timeouts = Timeouts::builder()
        .call(CALL)
        .attempt(ATTEMPT)
        .connect(CONNECT)
        .head(PAUSE)
        .write_idle(PAUSE)
        .read_idle(READ_IDLE)
        .acquire(ACQUIRE)
        .build()
        .expect("bounds that fit each other");
    let connector = ConnectTimeoutLayer::new(&timeouts).layer(connector);
    let limit = ConnectionLimitLayer::builder(IN_FLIGHT)
        .timeouts(&timeouts)
        .build()
        .expect("a limit that is not zero");
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
        .layer(DeadlineLayer::new(&timeouts))
        .layer(retry)
        .layer(observe)
        .layer(limit)
        .layer(TimeoutLayer::new(&timeouts))
        .layer(WitnessLayer::new())
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
        late: Duration::ZERO,
    };

    fn of_response(outcome: Outcome, report: Option<&CallReport>) -> Self {
        Self {
            outcome: Some(outcome),
            proves_not_applied: report.is_some_and(|report| report.delivery().proves_not_applied()),
            gave_up: false,
            late: Duration::ZERO,
        }
    }

    fn of_error(error: &BoxError) -> Self {
        let failure = Failure::of(&**error);
        Self {
            outcome: failure.map(Failure::outcome),
            proves_not_applied: failure
                .is_some_and(|failure| failure.delivery().proves_not_applied()),
            gave_up: false,
            late: Duration::ZERO,
        }
    }
}
