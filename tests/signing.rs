//! Signatures over real sockets, in stacks whose waits are longer than a signature is valid.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::task::JoinSet;
use tower::{BoxError, Layer, Service, ServiceExt};
use tower_outcome::{
    Backoff, CallReport, Clock, Limit, RateBudget, RateLimitLayer, ReplayLayer, RetryBudget,
    RetryLayer, SealLayer, SignLayer, Stage, SystemClock, Template, Verifier, WitnessConnector,
    WitnessLayer, WrongOrder,
};
use tower_outcome_testkit::{Fault, Ledger, Plan, Signature, Signed, Venue};

mod nonces;
mod templates;
mod validity;

/// How old a signature may be; the waits below are several times as long.
const WINDOW: Duration = Duration::from_millis(500);
const CALLS: usize = 60;

fn template() -> Template {
    let template = Template::bybit("key", "the secret").unwrap();
    template.with_window(WINDOW).unwrap()
}

/// A venue that checks signatures, and has a bad day.
fn venue() -> Venue {
    let verifier = Verifier::new(template()).unwrap();
    let demand = Signature::new(move |received: &Request<Bytes>| {
        let verified = verifier.verify(received, SystemClock::new().now());
        verified.ok().map(|_| Signed::new())
    });
    Venue::builder()
        .demand(demand)
        .plan(Plan::new(11).rate(0.2).fault(1, Fault::status(503, false)))
        .start()
        .unwrap()
}

fn retry() -> RetryLayer {
    RetryLayer::builder()
        .max_attempts(6)
        .backoff(Backoff::new().base(Duration::from_millis(300)))
        .budget(RetryBudget::unlimited())
        .build()
        .unwrap()
}

fn limit() -> RateLimitLayer {
    let limit = Limit::sliding("requests", 15, Duration::from_millis(400));
    let budget = RateBudget::builder("venue").limit(limit).build().unwrap();
    RateLimitLayer::new(budget)
}

fn sign(venue: &Venue) -> SignLayer<Template> {
    SignLayer::builder(template())
        .origin(venue.url(""))
        .margin(Duration::from_millis(50))
        .build()
        .unwrap()
}

fn http<B>() -> Client<WitnessConnector<HttpConnector>, B>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .retry_canceled_requests(false)
        .build(WitnessConnector::new(HttpConnector::new()))
}

/// Makes calls all at once, and returns how many attempts they took.
async fn storm<S, B>(venue: &Venue, stack: S) -> u32
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Debug + Send,
{
    let order = || Request::post(venue.url("/v5/order/create?category=linear"));
    calls(stack, |call| {
        order()
            .header(Ledger::OPERATION_HEADER, call.to_string())
            .header("idempotency-key", call.to_string())
            .body(Full::new(Bytes::from("buy 1")))
            .unwrap()
    })
    .await
}

async fn calls<S, B>(stack: S, request: impl Fn(usize) -> Request<Full<Bytes>>) -> u32
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Debug + Send,
{
    let mut calls = JoinSet::new();
    for call in 0..CALLS {
        let request = request(call);
        let stack = stack.clone();
        calls.spawn(async move {
            let result = stack.oneshot(request).await;
            let attempts = CallReport::in_result(&result).map_or(1, CallReport::attempts);
            result.unwrap().into_body().collect().await.unwrap();
            attempts
        });
    }
    calls.join_all().await.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_signature_is_stale_below_everything_that_waits() {
    let venue = venue();
    let client = SealLayer::new().layer(http());
    let signed = sign(&venue).layer(WitnessLayer::new().layer(client));
    let attempts = storm(&venue, retry().layer(limit().layer(signed))).await;
    let ledger = venue.ledger();
    assert_eq!(ledger.answered(401), 0);
    assert_eq!(ledger.applied_total(), CALLS);
    assert!(attempts as usize > CALLS, "some were sent again");
}

/// The same stack in two wrong orders: refused, and for a reason, as it shows once the marks that give
/// the order away are taken off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_above_the_limiter_is_refused_for_it_would_age_in_the_queue() {
    let venue = venue();
    let limited = limit().layer(WitnessLayer::new().layer(http()));
    let wrong = retry().layer(sign(&venue).layer(limited.clone()));
    refused(&venue, wrong, (Stage::Sign, Stage::RateLimit)).await;

    let limited = limited.map_request(unmarked);
    storm(&venue, retry().layer(sign(&venue).layer(limited))).await;
    assert!(venue.ledger().answered(401) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_above_the_retries_is_refused_for_it_would_be_sent_again_as_it_was() {
    let venue = venue();
    let limited = limit().layer(WitnessLayer::new().layer(http()));
    // A signed body cannot be cloned, so somebody who stacks like this has to keep it.
    let retried = ReplayLayer::new().layer(retry().layer(limited));
    let wrong = sign(&venue).layer(retried.clone());
    refused(&venue, wrong, (Stage::Sign, Stage::Retry)).await;

    let retried = retried.map_request(unmarked);
    storm(&venue, sign(&venue).layer(retried)).await;
    assert!(venue.ledger().answered(401) > 0);
}

/// Nothing of a wrong stack reaches the venue.
async fn refused<S, B>(venue: &Venue, stack: S, (above, below): (Stage, Stage))
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    B: std::fmt::Debug,
{
    let request = Request::post(venue.url("/v5/order/create"))
        .body(Full::default())
        .unwrap();
    let error = stack.oneshot(request).await.map(drop).unwrap_err();
    let order = WrongOrder::of(&*error).unwrap();
    assert_eq!((order.above(), order.below()), (above, below));
    assert_eq!(venue.ledger().len(), 0);
}

fn unmarked<B>(mut request: Request<B>) -> Request<B> {
    Stage::forget_all(request.extensions_mut());
    request
}
