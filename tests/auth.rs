//! A session that dies under many calls, over real sockets: one refresh, one replay each, nothing twice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::sync::Semaphore;
use tower::{ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};
use tower_outcome::{
    Answer, Attempt, AuthRefreshLayer, BoxError, BrokenBody, CallReport, Credentials,
    DeadlineLayer, HttpClassifier, Judged, Limit, Outcome, RateBudget, RateLimitLayer, Reason,
    RetryLayer, WitnessBody, WitnessConnector, WitnessLayer,
    auth_refresh::{Observer, Refreshed, Rejected, Replayed},
    peek::PeekBody,
    timeout::DeadlineBody,
};
use tower_outcome_testkit::{self as testkit, Fault, Logins, Point, Venue};

mod grpc;
mod oidc;
mod processes;
mod source;
mod storm;

use self::source::source;

type Order = Request<Full<Bytes>>;
type Stack = BoxCloneSyncService<Order, CallReportOf, BoxError>;
/// Status, and what the call went through.
type CallReportOf = (u16, Option<CallReport>);
/// What hyper returns, looked at by the limiter, the credential's layer, Retry and the deadline.
type BodyOf = DeadlineBody<PeekBody<PeekBody<PeekBody<Incoming>>, BrokenBody>>;
type Hyper = Client<WitnessConnector<HttpConnector>, WitnessBody<Full<Bytes>>>;

/// Everything that one venue's customers share.
struct Customers {
    logins: Logins,
    venue: Venue,
    credentials: Credentials,
    counts: Counts,
    classifier: HttpClassifier,
    gate: Gate,
}

/// Has first attempts wait, with their credential, until all are there; and lets no more sockets be
/// open at once than a machine has.
#[derive(Clone)]
struct Gate {
    waiting: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
    sockets: Arc<Semaphore>,
}

/// What the observer has counted.
#[derive(Clone, Default)]
struct Counts {
    refreshed: Arc<AtomicUsize>,
    replayed: Arc<AtomicUsize>,
    rejected_again: Arc<AtomicUsize>,
}

impl Observer for Counts {
    fn refreshed(&self, _: &Refreshed<'_>) {
        self.refreshed.fetch_add(1, Ordering::SeqCst);
    }

    fn replayed(&self, _: &Replayed<'_>) {
        self.replayed.fetch_add(1, Ordering::SeqCst);
    }

    fn rejected(&self, event: &Rejected<'_>) {
        if event.again {
            self.rejected_again.fetch_add(1, Ordering::SeqCst);
        }
    }
}

// === impl Gate ===

impl Gate {
    fn close(&self) {
        self.waiting.store(0, Ordering::SeqCst);
        self.open.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Opens once so many wait.
    async fn open_for(&self, calls: usize) {
        while self.waiting.load(Ordering::SeqCst) < calls {
            tokio::task::yield_now().await;
        }
        self.open.add_permits(Semaphore::MAX_PERMITS);
    }

    fn before(
        &self,
        client: Hyper,
    ) -> BoxCloneSyncService<Request<WitnessBody<Full<Bytes>>>, http::Response<Incoming>, BoxError>
    {
        let gate = self.clone();
        BoxCloneSyncService::new(service_fn(
            move |request: Request<WitnessBody<Full<Bytes>>>| {
                let (gate, client) = (gate.clone(), client.clone());
                async move {
                    if Attempt::of(request.extensions()).number() == 1 {
                        gate.waiting.fetch_add(1, Ordering::SeqCst);
                        drop(gate.open.acquire().await?);
                    }
                    let _socket = gate.sockets.acquire().await?;
                    client.request(request).await.map_err(BoxError::from)
                }
            },
        ))
    }
}

// === impl Customers ===

impl Customers {
    fn new(rejection: testkit::Answer) -> Self {
        let logins = Logins::at("/token").rejects_with(rejection);
        let venue = Venue::builder()
            .demand(logins.clone())
            .latency(Duration::from_millis(2))
            .start()
            .unwrap();
        let counts = Counts::default();
        let credentials = Credentials::builder("venue", source(venue.url("/token")))
            .origin(venue.url("").trim_end_matches('/'))
            .min_interval(Duration::from_millis(1))
            .observer(counts.clone())
            .build()
            .unwrap();
        Self {
            logins,
            venue,
            credentials,
            counts,
            classifier: classifier(),
            gate: Gate {
                waiting: Arc::default(),
                open: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
                sockets: Arc::new(Semaphore::new(64)),
            },
        }
    }

    /// Retry, if it is to stand above, then the credential, then the limiter, as in the readme.
    fn stack(&self, attempts: u32) -> Stack {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(64)
            .retry_canceled_requests(false)
            .build(WitnessConnector::new(HttpConnector::new()));
        let budget = RateBudget::builder("venue")
            .limit(Limit::sliding(
                "requests",
                1_000_000,
                Duration::from_secs(1),
            ))
            .build()
            .unwrap();
        let retry = RetryLayer::builder()
            .classifier(self.classifier.clone())
            .max_attempts(attempts)
            .build()
            .unwrap();
        let auth = AuthRefreshLayer::builder(self.credentials.clone())
            .classifier(self.classifier.clone())
            .build();
        let stack = ServiceBuilder::new()
            .layer(DeadlineLayer::default())
            .layer(retry)
            .layer(auth)
            .layer(RateLimitLayer::new(budget))
            .layer(WitnessLayer::new())
            .service(self.gate.before(client));
        BoxCloneSyncService::new(
            stack.and_then(|response: http::Response<BodyOf>| async move {
                let report = CallReport::of(response.extensions()).cloned();
                let status = response.status().as_u16();
                let read = response.into_body().collect().await;
                read.map(|_| (status, report))
            }),
        )
    }

    fn order(&self, operation: &str) -> Order {
        Request::post(self.venue.url("/orders"))
            .header("x-operation-id", operation)
            .body(Full::from("buy 100"))
            .unwrap()
    }

    fn replays(&self) -> usize {
        self.counts.replayed.load(Ordering::SeqCst)
    }
}

/// A 401 in the head, or 4011 in a body, is a session that died; 4010 is a log-in that is wrong.
fn classifier() -> HttpClassifier {
    let rule = |seen: Judged<'_>| {
        let has = |code: &[u8]| seen.body.windows(code.len()).any(|window| window == code);
        let reason = if has(br#""ErrorCode":4011"#) {
            Reason::AuthRejected
        } else if has(br#""ErrorCode":4010"#) {
            Reason::Rejected
        } else {
            return None;
        };
        Some(Answer::Rejected { reason })
    };
    HttpClassifier::builder().body_rule(rule).build().unwrap()
}

#[tokio::test]
async fn retry_and_replay_agree_on_what_was_sent() {
    let customers = Customers::new(testkit::Answer::status(401));
    for attempts in [1, 3] {
        let stack = customers.stack(attempts);
        let name = format!("warm-{attempts}");
        let (status, _) = stack.clone().oneshot(customers.order(&name)).await.unwrap();
        assert_eq!(status, 200);
        tokio::time::sleep(Duration::from_millis(5)).await;

        // The session has died: one request is rejected, and one is taken.
        customers.logins.expire_all();
        let name = format!("order-{attempts}");
        let (status, report) = stack.oneshot(customers.order(&name)).await.unwrap();
        let report = report.unwrap();
        assert_eq!((status, report.attempts()), (200, 2));
        assert_eq!(report.outcome(), Outcome::Success);
        assert_eq!(customers.venue.ledger().attempts(&name), 2);
        assert_eq!(customers.venue.ledger().applied(&name), 1);
    }
    assert_eq!(customers.logins.logins(), 1);
    assert_eq!(customers.logins.reuses(), 0);
}

#[tokio::test]
async fn an_order_whose_answer_is_lost_is_unknown_and_refreshes_nothing() {
    let customers = Customers::new(testkit::Answer::status(401));
    let stack = customers.stack(3);
    stack
        .clone()
        .oneshot(customers.order("warm"))
        .await
        .unwrap();
    let fault = Fault::Close { at: Point::Applied };
    let mut order = customers.order("order");
    let value = fault.header_value();
    order.headers_mut().insert(Fault::HEADER, value);
    let error = stack.oneshot(order).await.unwrap_err();
    let failure = tower_outcome::Failure::of(&*error).unwrap();
    assert!(failure.outcome().is_unknown());
    assert_eq!(customers.venue.ledger().applied("order"), 1);
    assert_eq!(customers.logins.refreshes(), 0);
}

#[tokio::test]
async fn error_code_4011_in_a_body_replays_an_order_once_and_4010_logs_nobody_in_again() {
    for (code, document, sent) in [
        (200, r#"{"ErrorCode":4011}"#, 2),
        (401, r#"{"ErrorCode":4011}"#, 2),
        (200, r#"{"ErrorCode":4010}"#, 1),
        (401, r#"{"ErrorCode":4010}"#, 1),
    ] {
        let customers = Customers::new(testkit::Answer::json(code, document));
        let stack = customers.stack(3);
        stack
            .clone()
            .oneshot(customers.order("warm"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        customers.logins.expire_all();
        let _ = stack.oneshot(customers.order("order")).await;
        let ledger = customers.venue.ledger();
        assert_eq!(ledger.attempts("order"), sent, "{code} {document}");
        assert_eq!(ledger.applied("order"), sent - 1, "{code} {document}");
        assert_eq!(customers.logins.refreshes(), sent - 1);
        assert_eq!(customers.logins.logins(), 1);
    }
}
