//! A stack whose layers stand in an order that cannot work is refused before anything is sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use tower::{BoxError, Layer, Service, ServiceExt, layer::util::Stack, service_fn};
use tower_outcome::{
    AuthRefreshLayer, CallReport, ConnectionLimitLayer, Credential, Credentials, Delivery, Failure,
    Finding, IdempotencyKeyLayer, Inquiry, Limit, Outcome, RateBudget, RateLimitLayer, Reason,
    ReconcileLayer, Reconciler, Repeatable, ReplayLayer, RetryLayer, SignLayer, Stage, StageStamp,
    Template, TimeoutLayer, Timeouts, WitnessLayer, WrongOrder, reconcile::Through,
};

type Body = Full<Bytes>;

/// Counts the requests that arrive at the bottom of a stack.
#[derive(Clone, Default)]
struct Bottom(Arc<AtomicUsize>);

impl Bottom {
    fn service<B>(
        self,
    ) -> impl Service<
        Request<B>,
        Response = Response<Body>,
        Error = BoxError,
        Future = impl Send + Future<Output = Result<Response<Body>, BoxError>> + use<B>,
    > + Clone
    + Send
    + use<B>
    where
        B: Send + 'static,
    {
        let count = self.0;
        service_fn(move |_: Request<B>| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(Response::new(Body::default())) }
        })
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn post() -> Request<Body> {
    Request::post("https://venue.example/orders?symbol=A")
        .body(Body::from("{}"))
        .unwrap()
}

fn retry() -> RetryLayer {
    RetryLayer::new()
}

fn limit() -> RateLimitLayer {
    let budget = RateBudget::builder("venue")
        .limit(Limit::sliding("requests", 100, Duration::from_secs(1)))
        .build()
        .unwrap();
    RateLimitLayer::new(budget)
}

fn connections() -> ConnectionLimitLayer {
    ConnectionLimitLayer::builder(5).build().unwrap()
}

fn sign() -> SignLayer<Template> {
    let template = Template::bybit("key", "the secret").unwrap();
    SignLayer::new(template, "https://venue.example").unwrap()
}

fn auth() -> AuthRefreshLayer {
    let source = |_| async { Ok(Credential::new("token")) };
    let credentials = Credentials::builder("venue", source)
        .origin("https://venue.example")
        .build()
        .unwrap();
    AuthRefreshLayer::new(credentials)
}

fn timeout() -> TimeoutLayer {
    TimeoutLayer::new(&Timeouts::new())
}

/// Asks nobody.
#[derive(Clone)]
struct Nobody;

impl<S: Send, B> Reconciler<S, B> for Nobody {
    async fn ask(&self, _: Inquiry, _: Through<S>) -> Result<Finding, BoxError> {
        Ok(Finding::Unclear)
    }
}

fn ask() -> ReconcileLayer<Nobody> {
    ReconcileLayer::new(Nobody)
}

fn key() -> IdempotencyKeyLayer {
    IdempotencyKeyLayer::new(|| HeaderValue::from_static("one"))
}

/// What the types of the bodies refuse already compiles below a layer that makes them replayable.
fn replayed<L>(layer: L) -> Stack<L, ReplayLayer> {
    Stack::new(layer, ReplayLayer::new())
}

/// Sends a few, each of which must be refused with both names, and none may arrive.
macro_rules! refuses {
    ($test:ident: $above:expr => $below:expr, $upper:ident, $lower:ident) => {
        #[tokio::test]
        async fn $test() {
            let bottom = Bottom::default();
            let stack = $above.layer($below.layer(bottom.clone().service()));
            for _ in 0..3 {
                let error: BoxError = stack.clone().oneshot(post()).await.unwrap_err().into();
                assert_names_both(&error, Stage::$upper, Stage::$lower);
            }
            assert_eq!(bottom.count(), 0);
        }
    };
}

/// Sends a few, each of which must arrive.
macro_rules! allows {
    ($test:ident: $above:expr => $below:expr) => {
        #[tokio::test]
        async fn $test() {
            let bottom = Bottom::default();
            let stack = $above.layer($below.layer(bottom.clone().service()));
            for _ in 0..3 {
                stack.clone().oneshot(post()).await.unwrap();
            }
            assert_eq!(bottom.count(), 3);
        }
    };
}

fn assert_names_both(error: &BoxError, above: Stage, below: Stage) {
    let failure = Failure::of(&**error).unwrap();
    let reason = Reason::WrongOrder;
    assert_eq!(failure.outcome(), Outcome::Permanent { reason });
    assert_eq!(failure.delivery(), Delivery::NotSent);
    let order = WrongOrder::of(&**error).unwrap();
    assert_eq!((order.above(), order.below()), (above, below));
    let said = format!("{error:#}");
    let names = format!(": {above} stands above {below}, and ");
    assert!(said.contains(&names), "{said}");
    assert!(said.contains("RetryLayer > ReconcileLayer"), "{said}");
}

refuses!(sign_above_retry_is_refused: sign() => replayed(retry()), Sign, Retry);
refuses!(sign_above_rate_limit_is_refused: sign() => limit(), Sign, RateLimit);
refuses!(sign_above_connection_limit_is_refused: sign() => connections(), Sign, ConnectionLimit);
refuses!(sign_above_idempotency_key_is_refused: sign() => key(), Sign, IdempotencyKey);
refuses!(rate_limit_above_retry_is_refused: limit() => retry(), RateLimit, Retry);
refuses!(retry_around_retry_is_refused: retry() => retry(), Retry, Retry);
refuses!(retry_above_idempotency_key_is_refused: retry() => key(), Retry, IdempotencyKey);
refuses!(timeout_above_retry_is_refused: timeout() => replayed(retry()), Timeout, Retry);
refuses!(witness_above_retry_is_refused: WitnessLayer::new() => replayed(retry()), Witness, Retry);
refuses!(witness_above_sign_is_refused: WitnessLayer::new() => sign(), Witness, Sign);

refuses!(sign_above_auth_refresh_is_refused: sign() => replayed(auth()), Sign, AuthRefresh);
refuses!(rate_limit_above_auth_refresh_is_refused: limit() => auth(), RateLimit, AuthRefresh);
refuses!(timeout_above_auth_refresh_is_refused: timeout() => replayed(auth()), Timeout, AuthRefresh);
refuses!(
    witness_above_auth_refresh_is_refused:
    WitnessLayer::new() => replayed(auth()), Witness, AuthRefresh
);

refuses!(reconcile_above_idempotency_key_is_refused: ask() => key(), Reconcile, IdempotencyKey);
refuses!(reconcile_above_reconcile_is_refused: ask() => ask(), Reconcile, Reconcile);
refuses!(auth_refresh_above_reconcile_is_refused: auth() => ask(), AuthRefresh, Reconcile);
refuses!(auth_refresh_above_idempotency_key_is_refused: auth() => key(), AuthRefresh, IdempotencyKey);
refuses!(rate_limit_above_reconcile_is_refused: limit() => ask(), RateLimit, Reconcile);
refuses!(sign_above_reconcile_is_refused: sign() => ask(), Sign, Reconcile);
refuses!(timeout_above_reconcile_is_refused: timeout() => ask(), Timeout, Reconcile);
refuses!(witness_above_reconcile_is_refused: WitnessLayer::new() => ask(), Witness, Reconcile);

allows!(retry_above_reconcile_works: retry() => ask());
allows!(reconcile_above_auth_refresh_works: ask() => auth());
allows!(reconcile_above_rate_limit_works: ask() => limit());
allows!(reconcile_above_sign_works: ask() => sign());
allows!(reconcile_above_timeout_works: ask() => timeout());
allows!(key_above_reconcile_works: key() => ask());
allows!(retry_above_auth_refresh_works: retry() => auth());
allows!(auth_refresh_above_rate_limit_works: auth() => limit());
allows!(auth_refresh_above_sign_works: auth() => sign());
allows!(key_above_retry_works: key() => retry());
allows!(retry_above_rate_limit_works: retry() => limit());
allows!(rate_limit_above_sign_works: limit() => sign());
allows!(connection_limit_above_sign_works: connections() => sign());
allows!(sign_above_timeout_works: sign() => timeout());
allows!(timeout_above_witness_works: timeout() => WitnessLayer::new());
allows!(limits_within_limits_work: limit() => limit());

/// A rejection proves nothing about what a layer below has sent before it.
#[tokio::test]
async fn what_a_layer_below_calls_unknown_is_not_replayed_for_a_rejection() {
    let bottom = Bottom::default();
    let count = Arc::clone(&bottom.0);
    let inner = service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        let reason = Reason::AuthRejected;
        let report = CallReport::new(
            Outcome::Unknown { reason },
            Delivery::Answered,
            Repeatable::No,
        );
        let mut response = Response::builder()
            .status(401)
            .body(Body::default())
            .unwrap();
        response.extensions_mut().insert(report);
        async { Ok::<_, BoxError>(response) }
    });
    let result = auth().layer(inner).oneshot(post()).await;
    assert!(CallReport::outcome_of(&result).is_unknown());
    assert_eq!(bottom.count(), 1);
}

/// What stands in between, and knows nothing of this family, does not hide who stands above.
#[tokio::test]
async fn a_wrong_order_is_seen_through_layers_of_others() {
    let bottom = Bottom::default();
    let inner = replayed(retry()).layer(limit().layer(bottom.clone().service()));
    let between = inner.map_request(|request: Request<_>| request);
    let stack = WitnessLayer::new().layer(between.map_response(|response| response));
    let error = stack.oneshot(post()).await.unwrap_err();
    assert_names_both(&error, Stage::Witness, Stage::Retry);
    assert_eq!(bottom.count(), 0);
}

/// However long it is in use.
#[tokio::test]
async fn a_wrong_order_is_refused_for_good() {
    let bottom = Bottom::default();
    let stack = sign().layer(replayed(retry()).layer(bottom.clone().service()));
    for _ in 0..3 * StageStamp::ANSWERS {
        stack.clone().oneshot(post()).await.unwrap_err();
    }
    assert_eq!(bottom.count(), 0);
}

/// The marks are left out after a while; a layer that is put into another stack leaves them there.
#[tokio::test]
async fn a_layer_that_has_long_worked_is_refused_in_another_stack() {
    let bottom = Bottom::default();
    let sign = sign();
    let right = sign.layer(bottom.clone().service());
    // Built before the other one is used, too.
    let wrong = sign.layer(replayed(limit()).layer(bottom.clone().service()));
    for _ in 0..2 * StageStamp::ANSWERS {
        right.clone().oneshot(post()).await.unwrap();
    }
    let error = wrong.oneshot(post()).await.unwrap_err();
    assert_names_both(&error, Stage::Sign, Stage::RateLimit);
}

/// What never comes down to the layer that cannot stand there uses nothing up.
#[tokio::test]
async fn calls_that_end_on_their_way_down_hide_no_wrong_order() {
    let bottom = Bottom::default();
    let stack = sign().layer(limit().layer(bottom.clone().service()));
    for _ in 0..2 * StageStamp::ANSWERS {
        let elsewhere = Request::post("https://elsewhere.example/").body(Body::default());
        stack.clone().oneshot(elsewhere.unwrap()).await.unwrap_err();
        let mut unpolled = stack.clone();
        drop(unpolled.ready().await.unwrap().call(post()));
    }
    let error = stack.oneshot(post()).await.unwrap_err();
    assert_names_both(&error, Stage::Sign, Stage::RateLimit);
    assert_eq!(bottom.count(), 0);
}

/// However many are under way before the first comes down.
#[tokio::test(start_paused = true)]
async fn a_crowd_that_waits_on_its_way_down_is_refused_as_one() {
    let bottom = Bottom::default();
    let wrong = replayed(retry()).layer(bottom.clone().service());
    let slow = service_fn(move |request| {
        let wrong = wrong.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            wrong.oneshot(request).await
        }
    });
    let stack = WitnessLayer::new().layer(slow);
    let crowd = (0..4 * StageStamp::ANSWERS).map(|_| stack.clone().oneshot(post()));
    for result in futures_util::future::join_all(crowd).await {
        assert_names_both(&result.unwrap_err(), Stage::Witness, Stage::Retry);
    }
    assert_eq!(bottom.count(), 0);
}

/// A resend passes the lower layers a second time, and its marks are those of the first.
#[tokio::test]
async fn a_resend_is_no_second_layer() {
    let bottom = Bottom::default();
    let count = Arc::clone(&bottom.0);
    let flaky = service_fn(move |_| {
        let busy = count.fetch_add(1, Ordering::Relaxed) < 2;
        let status = if busy { 503 } else { 200 };
        async move { Response::builder().status(status).body(Body::default()) }
    });
    let retry = RetryLayer::builder()
        .backoff(
            tower_outcome::Backoff::new()
                .base(Duration::ZERO)
                .throttled_base(Duration::ZERO),
        )
        .build()
        .unwrap();
    let stack = retry.layer(limit().layer(timeout().layer(WitnessLayer::new().layer(flaky))));
    let get = Request::get("https://venue.example/")
        .body(Body::default())
        .unwrap();
    assert_eq!(stack.oneshot(get).await.unwrap().status(), 200);
    assert_eq!(bottom.count(), 3);
}

/// A service that makes a request of its own out of another, through a whole stack of its own.
#[tokio::test]
async fn marks_can_be_taken_off_between_two_stacks() {
    let bottom = Bottom::default();
    let inner = retry().layer(bottom.clone().service());
    let between = tower::ServiceBuilder::new()
        .map_request(|mut request: Request<Body>| {
            Stage::forget_all(request.extensions_mut());
            request
        })
        .service(inner);
    let stack = retry().layer(between);
    stack.oneshot(post()).await.unwrap();
    assert_eq!(bottom.count(), 1);
}
