//! The stack under test, once for each protocol: everything that is configured, and nothing else.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tonic::{Status, transport::Endpoint};
use tower::{Layer, ServiceBuilder, util::BoxCloneSyncService};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{
    Answer, Backoff, ByQuery, Classify, ConnectTimeoutLayer, ConnectionLimitLayer, Credentials,
    Finding, GrpcClassifier, GrpcStatusLayer, HttpClassifier, Inquiry, Judged, Limit, Outbound,
    OutboundClient, RateBudget, RateLimitLayer, Reason, ReconcileLayer, ReplayBody, ReplayLayer,
    RetryBudget, RetryLayer, SignLayer, Timeouts, WitnessConnector,
    reconcile::{Counts, ReconcileLayerBuilder, Schedule},
    retry::RetryLayerBuilder,
    sign::SignLayerBuilder,
    timeout::{ConnectTimeout, TimeoutsBuilder},
};
use tower_outcome_testkit::Ledger;

use crate::{
    body::{self, Body},
    call::{GET, PLACE, Payload, Protocol},
    message::framed,
    observe::ObserveLayer,
    session, signature,
    tally::Tally,
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
const IN_FLIGHT: usize = 64;

/// So many requests in so much time, which some have to wait for.
const REQUESTS: u32 = 400;
const IN_EACH: Duration = Duration::from_millis(100);

/// How long a call may take that has no deadline of its own, response body included.
pub(crate) const CALL: Duration = Duration::from_secs(10);

/// How long after an attempt the venue may still begin with it: what is stuck in a socket is taken or
/// lost by then.
const AT_REST: Duration = Duration::from_millis(500);

/// An answer that is longer than this is judged by its head.
const ANSWER: usize = 64 * 1024;

/// The stack around hyper-util's client.
pub(crate) type Http = OutboundClient<Body>;

/// The stack around a channel of tonic's.
pub(crate) type Grpc =
    BoxCloneSyncService<Request<tonic::body::Body>, Response<tonic::body::Body>, Status>;

/// What the stacks around one venue have in common.
pub(crate) struct Shared {
    /// The address of the venue.
    base: String,
    credentials: Credentials,
    budget: RateBudget,
    pub(crate) asked: Counts,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(base: &str) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        let budget = RateBudget::builder("venue")
            .limit(Limit::sliding("requests", REQUESTS, IN_EACH))
            .build()
            .expect("a limit");
        Self {
            credentials: session::credentials(&base),
            base,
            budget,
            asked: Counts::new(),
        }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) fn http(&self, protocol: Protocol, tally: &Arc<Tally>) -> Http {
        let classifier = http_classifier();
        let outbound = Outbound::builder()
            .classifier(classifier.clone())
            .replay(ReplayLayer::new())
            .timeouts(timeouts(protocol))
            .retry(retry())
            .each_attempt(ObserveLayer::new(protocol, tally))
            .reconcile(self.reconcile(classifier, read, |uri| {
                Request::get(uri).body(ReplayBody::new(body::of(&Payload::None)))
            }))
            .auth_refresh(self.credentials.clone())
            .rate_limit(self.rate_limit())
            .connection_limit(in_flight())
            .sign(self.sign())
            .build()
            .expect("a stack that works");
        let transport = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .http2_only(protocol == Protocol::Http2)
            .retry_canceled_requests(false)
            .build(WitnessConnector::new(connector(outbound.connect_bound())));
        outbound.boxed(transport)
    }

    /// Calls go to `address`, which may be one that answers nobody.
    pub(crate) fn grpc(&self, address: &str, tally: &Arc<Tally>) -> Grpc {
        let classifier = grpc_classifier();
        let outbound = Outbound::builder()
            .classifier(classifier.clone())
            .replay(ReplayLayer::new())
            .timeouts(timeouts(Protocol::Grpc))
            .retry(retry())
            .each_attempt(ObserveLayer::new(Protocol::Grpc, tally))
            // The venue's records are no gRPC.
            .reconcile(self.reconcile(HttpClassifier::new(), read_for_grpc, |uri| {
                Request::get(uri).body(ReplayBody::new(tonic::body::Body::empty()))
            }))
            .auth_refresh(self.credentials.clone())
            .rate_limit(self.rate_limit())
            .connection_limit(in_flight())
            .sign(self.sign())
            .build()
            .expect("a stack that works");
        let endpoint = Endpoint::from_shared(address.to_owned()).expect("a loopback address");
        let connector = connector(outbound.connect_bound());
        let channel = endpoint.connect_with_connector_lazy(connector);
        let channel = MapRequestBodyLayer::new(tonic::body::Body::new).layer(channel);
        let stack = ServiceBuilder::new()
            .map_response(|response: Response<_>| response.map(tonic::body::Body::new))
            .layer(GrpcStatusLayer::new().classifier(classifier))
            .service(outbound.boxed(channel));
        BoxCloneSyncService::new(stack)
    }

    /// Asks the venue's index, until it is certain.
    fn reconcile<B, C>(
        &self,
        classifier: C,
        read: fn(&Inquiry, Response<Bytes>) -> Finding,
        ask: impl Fn(String) -> Result<Request<B>, http::Error> + Send + Sync + 'static,
    ) -> Reconcile<impl Fn(&Inquiry) -> Result<Request<B>, http::Error> + Send + Sync + 'static, C>
    where
        C: Classify,
    {
        let base = self.base.clone();
        let by_query = ByQuery::new(
            move |inquiry: &Inquiry| {
                let id = inquiry.id().to_path_segment();
                ask(format!("{base}{INDEX}{id}"))
            },
            read,
        )
        .classifier(classifier);
        ReconcileLayer::builder(by_query)
            .id_header(HeaderName::from_static(Ledger::OPERATION_HEADER))
            .schedule(
                Schedule::new()
                    .first(Duration::from_millis(5))
                    .cap(Duration::from_millis(100))
                    .each(Duration::from_millis(300))
                    .deadline(CALL),
            )
            .min_age(AT_REST)
            .processing_limit(AT_REST)
            .observer(self.asked.clone())
    }

    fn rate_limit(&self) -> tower_outcome::rate_limit::RateLimitLayerBuilder {
        // The venue refuses half of all requests at random, and means nobody else by it.
        RateLimitLayer::builder(self.budget.clone()).closes_gate(false)
    }

    fn sign(&self) -> SignLayerBuilder<tower_outcome::Template> {
        SignLayer::builder(signature::template()).any_origin()
    }
}

type Reconcile<M, C> =
    ReconcileLayerBuilder<ByQuery<M, fn(&Inquiry, Response<Bytes>) -> Finding, C>>;

/// Where the venue is asked what became of operations.
pub(crate) const INDEX: &str = "/operations/";

fn read(_: &Inquiry, answer: Response<Bytes>) -> Finding {
    match answer.status() {
        StatusCode::OK if answer.body().starts_with(br#"{"id""#) => Finding::Applied(answer),
        StatusCode::NOT_FOUND => Finding::NotFound,
        _ => Finding::Unclear,
    }
}

/// The same, as a message for the decoder of the caller.
fn read_for_grpc(inquiry: &Inquiry, answer: Response<Bytes>) -> Finding {
    match read(inquiry, answer) {
        Finding::Applied(_) => {
            let mut answer = Response::new(Bytes::from(framed(b"applied")));
            let grpc = HeaderValue::from_static("application/grpc");
            answer.headers_mut().insert(header::CONTENT_TYPE, grpc);
            Finding::Applied(answer)
        }
        finding => finding,
    }
}

fn timeouts(protocol: Protocol) -> TimeoutsBuilder {
    Timeouts::builder()
        .call(CALL)
        .attempt(ATTEMPT)
        .connect(CONNECT)
        .head(PAUSE)
        .write_idle(PAUSE)
        .read_idle(READ_IDLE)
        .grpc_timeout(protocol == Protocol::Grpc)
}

fn connector(bound: Option<Duration>) -> ConnectTimeout<HttpConnector> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    ConnectTimeoutLayer::within(bound).layer(connector)
}

fn in_flight() -> ConnectionLimitLayer<Option<http::uri::Authority>> {
    let timeouts = Timeouts::builder().acquire(ACQUIRE).build();
    ConnectionLimitLayer::builder(IN_FLIGHT)
        .timeouts(&timeouts.expect("a bound"))
        .build()
        .expect("a limit that is not zero")
}

fn retry() -> RetryLayerBuilder<HttpClassifier> {
    RetryLayer::builder()
        .backoff(
            Backoff::new()
                .base(Duration::from_millis(1))
                .throttled_base(Duration::from_millis(1))
                .cap(Duration::from_millis(5)),
        )
        // The point is to send as much as is allowed, not to spare the venue.
        .budget(RetryBudget::unlimited())
}

/// The venue says "busy" inside a 200, and may have acted.
fn http_classifier() -> HttpClassifier {
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
        .body_limit(ANSWER)
        .build()
        .expect("a valid configuration")
}

fn grpc_classifier() -> GrpcClassifier {
    GrpcClassifier::builder()
        .repeatable([GET])
        .unary([PLACE])
        .whole(ANSWER)
        .build()
        .expect("two paths")
}
