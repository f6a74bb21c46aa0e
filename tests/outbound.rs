//! The typed builder: the right order whatever the order of the calls, nothing that was not asked for,
//! and all mistakes at once.

use std::{
    any::type_name_of_val,
    io,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_outcome::{
    Answer, AuthRefreshLayer, BoxError, CallReport, ConnectionLimitLayer, Credential, Credentials,
    DeadlineLayer, FetchError, HttpClassifier, IdempotencyKeyLayer, Judged, Limit, Outbound,
    OutboundClient, OutboundError, Outcome, RateBudget, RateLimitLayer, Reason, ReconcileLayer,
    ReplayLayer, RetryLayer, SealLayer, SignLayer, Template, TimeoutLayer, Timeouts, WitnessBody,
    WitnessLayer,
    auth_refresh::{CredentialsBuilder, ExpiryGuardLayer, Windows},
    rate_limit::BudgetBuilder,
    reconcile::{Finding, Inquiry},
};
use tower_outcome_testkit::{Fault, Point, Venue};

type Body = Full<Bytes>;

const SECOND: Duration = Duration::from_secs(1);

fn budget() -> BudgetBuilder {
    RateBudget::builder("venue").limit(Limit::sliding("requests", 100, SECOND))
}

fn credentials() -> CredentialsBuilder {
    let fetched = AtomicUsize::new(0);
    let source = move |_: Option<Credential>| {
        let count = fetched.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok::<_, FetchError>(Credential::new(format!("token-{count}"))) }
    };
    Credentials::builder("venue", source).any_origin()
}

fn key() -> IdempotencyKeyLayer {
    IdempotencyKeyLayer::new(|| HeaderValue::from_static("key-1"))
}

fn template() -> Template {
    Template::bybit("key", "the secret").unwrap()
}

fn post(url: impl AsRef<str>) -> Request<Body> {
    Request::post(url.as_ref())
        .header("x-operation-id", "order-1")
        .body(Body::from("{}"))
        .unwrap()
}

/// Answers no question.
async fn nobody(_: Inquiry) -> Result<Finding, BoxError> {
    Ok(Finding::Pending)
}

/// The names of the services in a type, the outermost first.
fn services(name: &str) -> Vec<&str> {
    let known = [
        "ReplayService",
        "DeadlineService",
        "IdempotencyKeyService",
        "Retry",
        "Reconcile",
        "AuthRefresh",
        "RateLimit",
        "ConnectionLimit",
        "ExpiryGuard",
        "SignService",
        "Timeout",
        "Witness",
        "Seal",
    ];
    name.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|part| known.contains(part))
        .collect()
}

#[test]
fn whatever_the_order_of_the_calls_the_order_of_the_layers_is_the_right_one() {
    let credentials = credentials().build().unwrap();
    let outbound = Outbound::builder()
        .seal(SealLayer::new())
        .sign(SignLayer::builder(template()).any_origin())
        .expiry_guard(ExpiryGuardLayer::new(credentials.clone()))
        .timeouts(Timeouts::new())
        .connection_limit(ConnectionLimitLayer::builder(5))
        .rate_limit(budget())
        .idempotency_key(key())
        .auth_refresh(AuthRefreshLayer::builder(credentials).hands_down(true))
        .reconcile(ReconcileLayer::builder(nobody))
        .retry(RetryLayer::builder())
        .replay(ReplayLayer::new())
        .build()
        .unwrap();
    let service = outbound.service(());

    assert_eq!(
        services(type_name_of_val(&service)),
        [
            "ReplayService",
            "DeadlineService",
            "IdempotencyKeyService",
            "Retry",
            "Reconcile",
            "AuthRefresh",
            "RateLimit",
            "ConnectionLimit",
            "ExpiryGuard",
            "SignService",
            "Timeout",
            "Witness",
            "Seal",
        ],
    );
}

#[test]
fn layers_of_ones_own_stand_below_retry_and_above_sign() {
    /// A layer that leaves its mark in the type.
    struct Mark;
    struct MarkService<S>(S);
    impl<S> Layer<S> for Mark {
        type Service = MarkService<S>;
        fn layer(&self, inner: S) -> MarkService<S> {
            MarkService(inner)
        }
    }

    let outbound = Outbound::builder()
        .each_request(Mark)
        .sign(SignLayer::builder(template()).any_origin())
        .rate_limit(budget())
        .each_attempt(Mark)
        .retry(RetryLayer::builder())
        .build()
        .unwrap();
    let name = type_name_of_val(&outbound.service(())).to_owned();

    let places: Vec<_> = name
        .match_indices("MarkService")
        .map(|(at, _)| at)
        .collect();
    let [attempt, request] = places[..] else {
        panic!("two marks in {name}")
    };
    assert!(name.find("Retry<").unwrap() < attempt && attempt < name.find("RateLimit<").unwrap());
    assert!(name.find("RateLimit<").unwrap() < request);
    assert!(request < name.find("SignService<").unwrap());
}

#[test]
fn a_stack_without_steps_is_the_client_itself() {
    #[derive(Debug, PartialEq)]
    struct Client;

    let outbound = Outbound::builder().without_witness().build().unwrap();
    let service: Client = outbound.service(Client);

    assert_eq!(service, Client);
}

#[test]
fn a_step_that_is_left_out_is_not_in_the_type() {
    let outbound = Outbound::builder()
        .retry(RetryLayer::builder())
        .build()
        .unwrap();
    let service = outbound.service(());
    assert_eq!(services(type_name_of_val(&service)), ["Retry", "Witness"]);
}

#[tokio::test]
async fn the_stack_is_a_layer_for_a_service_builder() {
    let outbound = Outbound::builder()
        .retry(RetryLayer::builder())
        .without_witness()
        .build()
        .unwrap();
    let client =
        service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new(Body::default())) });
    let service = ServiceBuilder::new()
        .map_request(|body: &'static str| post("http://venue/").map(|_| Body::from(body)))
        .layer(outbound)
        .service(client);

    let response = service.oneshot("{}").await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[test]
fn every_mistake_is_reported_and_not_only_the_first() {
    let error = Outbound::builder()
        .timeouts(Timeouts::builder().call(SECOND).attempt(2 * SECOND))
        .retry(RetryLayer::builder().max_attempts(0))
        .auth_refresh(credentials().timeout(Duration::ZERO))
        .rate_limit(RateBudget::builder("venue"))
        .connection_limit(ConnectionLimitLayer::builder(0))
        .sign(SignLayer::builder(template()))
        .build()
        .unwrap_err();

    let steps: Vec<_> = error.iter().map(|(step, _)| step).collect();
    assert_eq!(
        steps,
        [
            "timeouts",
            "retry",
            "auth_refresh",
            "rate_limit",
            "connection_limit",
            "sign"
        ],
    );
    let fields: Vec<_> = error.iter().map(|(_, error)| error.field()).collect();
    assert_eq!(fields[..2], ["attempt", "max_attempts"]);
    let text = error.to_string();
    assert!(
        text.contains("retry: max_attempts is 0, expected at least 1"),
        "{text}"
    );
    assert_eq!(text.matches("; ").count(), 5, "{text}");
}

#[test]
fn what_went_wrong_on_the_way_is_reported_with_all_else() {
    let limits = |unit: Duration| {
        RateBudget::builder("venue")
            .limit(Limit::sliding("a", 1, unit))
            .build()
    };
    let error = Outbound::builder()
        .rate_limit(limits(Duration::ZERO).map(RateLimitLayer::new))
        .retry(RetryLayer::builder().max_attempts(0))
        .build()
        .unwrap_err();

    let steps: Vec<_> = error.iter().map(|(step, _)| step).collect();
    assert_eq!(steps, ["retry", "rate_limit"]);
}

fn only(error: &OutboundError) -> (&'static str, &'static str) {
    let mut wrong = error.iter();
    let (step, error) = wrong.next().unwrap();
    assert!(wrong.next().is_none());
    (step, error.field())
}

#[test]
fn an_attempt_may_not_outlast_the_call_even_if_the_layers_were_made_apart() {
    let timeouts = |bound| {
        Timeouts::builder()
            .call(bound)
            .attempt(bound)
            .build()
            .unwrap()
    };
    let layers = (
        DeadlineLayer::new(&timeouts(SECOND)),
        TimeoutLayer::new(&timeouts(2 * SECOND)),
    );
    let error = Outbound::builder().timeouts(layers).build().unwrap_err();
    assert_eq!(only(&error), ("timeouts", "attempt"));
}

#[test]
fn a_credential_must_not_expire_in_the_queue() {
    let windows = Windows::fixed(20 * SECOND, 10 * SECOND);
    let credentials = credentials().windows(windows).build().unwrap();
    let builder = Outbound::builder().auth_refresh(credentials.clone());

    // The longest wait of a budget is 30 s by default.
    let error = builder.clone().rate_limit(budget()).build().unwrap_err();
    assert_eq!(only(&error), ("auth_refresh", "windows.mandatory"));
    let slots = ConnectionLimitLayer::builder(5)
        .timeouts(&Timeouts::builder().acquire(None).build().unwrap());
    let error = builder.clone().connection_limit(slots).build().unwrap_err();
    assert_eq!(only(&error), ("auth_refresh", "windows.mandatory"));

    let short = budget().max_wait(10 * SECOND);
    assert!(builder.clone().rate_limit(short).build().is_ok());
    let guard = ExpiryGuardLayer::new(credentials.clone());
    let guarded = builder.rate_limit(budget()).expiry_guard(guard.clone());
    let error = guarded.build().unwrap_err();
    assert_eq!(only(&error), ("auth_refresh", "hands_down"));
    let handed_down = AuthRefreshLayer::builder(credentials).hands_down(true);
    let builder = Outbound::builder().auth_refresh(handed_down);
    let guarded = builder.rate_limit(budget()).expiry_guard(guard);
    assert!(guarded.build().is_ok());
}

#[test]
fn a_classifier_of_one_layer_is_refused_and_a_finished_layer_keeps_its_own() {
    let own = HttpClassifier::builder().build().unwrap();
    let builder = RetryLayer::builder().classifier(own.clone());
    let error = Outbound::builder().retry(builder).build().unwrap_err();
    assert_eq!(only(&error), ("retry", "classifier"));
    let layer = ReconcileLayer::builder(nobody).classifier(own.clone());
    let error = Outbound::builder().reconcile(layer).build().unwrap_err();
    assert_eq!(only(&error), ("reconcile", "classifier"));
    let layer = AuthRefreshLayer::builder(credentials().build().unwrap()).classifier(own.clone());
    let error = Outbound::builder().auth_refresh(layer).build().unwrap_err();
    assert_eq!(only(&error), ("auth_refresh", "classifier"));
    let layer = RateLimitLayer::builder(budget().build().unwrap()).classifier(own.clone());
    let error = Outbound::builder().rate_limit(layer).build().unwrap_err();
    assert_eq!(only(&error), ("rate_limit", "classifier"));
    let layer = SignLayer::builder(template())
        .any_origin()
        .classifier(own.clone());
    let error = Outbound::builder().sign(layer).build().unwrap_err();
    assert_eq!(only(&error), ("sign", "classifier"));

    let layer = RetryLayer::builder().classifier(own).build().unwrap();
    assert!(Outbound::builder().retry(layer).build().is_ok());
}

#[tokio::test(start_paused = true)]
async fn all_steps_share_the_classifier_of_the_stack() {
    // The venue says with a 200 that the session has died.
    let classifier = HttpClassifier::builder()
        .body_rule(|seen: Judged<'_>| {
            seen.body.starts_with(b"4011").then_some(Answer::Rejected {
                reason: Reason::AuthRejected,
            })
        })
        .build()
        .unwrap();
    let outbound = Outbound::builder()
        .auth_refresh(credentials())
        .retry(RetryLayer::builder())
        .classifier(classifier)
        .without_witness()
        .build()
        .unwrap();
    let client = service_fn(|request: Request<Body>| async move {
        let fresh = request.headers()[header::AUTHORIZATION] == "Bearer token-2";
        let body = if fresh { "placed" } else { "4011" };
        Ok::<_, BoxError>(Response::new(Body::from(body)))
    });

    let client = outbound.boxed(client);
    let response = client.send(post("http://venue/orders")).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "placed");
}

#[tokio::test]
async fn the_client_without_a_long_type_is_kept_in_a_struct_and_used_by_many_tasks() {
    #[derive(Clone)]
    struct Desk {
        venue: OutboundClient<Body>,
    }

    let venue = Venue::start().unwrap();
    let outbound = Outbound::builder()
        .timeouts(Timeouts::new())
        .retry(RetryLayer::builder())
        .rate_limit(budget())
        .sign(SignLayer::builder(template()).any_origin())
        .build()
        .unwrap();
    let desk = Desk {
        venue: outbound.boxed(outbound.hyper_client(HttpConnector::new())),
    };

    let calls = (0..20).map(|order| {
        let (desk, url) = (desk.clone(), venue.url("/orders"));
        tokio::spawn(async move {
            let request = Request::post(url)
                .header("x-operation-id", format!("order-{order}"))
                .body(Body::from("{}"))?;
            let response = desk.venue.send(request).await?;
            Ok::<_, BoxError>(response.into_body().collect().await?.to_bytes())
        })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(!call.await.unwrap().unwrap().is_empty());
    }
    for order in 0..20 {
        assert_eq!(venue.ledger().applied(&format!("order-{order}")), 1);
    }
}

#[tokio::test]
async fn an_order_whose_answer_is_lost_is_unknown_through_all_steps_and_applied_once() {
    let venue = Venue::start().unwrap();
    let outbound = Outbound::builder()
        .replay(ReplayLayer::new())
        .timeouts(Timeouts::new())
        .retry(RetryLayer::builder())
        .auth_refresh(credentials())
        .rate_limit(budget())
        .connection_limit(ConnectionLimitLayer::builder(5))
        .sign(SignLayer::builder(template()).any_origin())
        .build()
        .unwrap();
    let client = outbound.boxed(outbound.hyper_client(HttpConnector::new()));
    let fault = Fault::Close { at: Point::Applied };
    let mut order = post(venue.url("/orders"));
    order
        .headers_mut()
        .insert(Fault::HEADER, fault.header_value());

    let result = client.send(order).await;
    assert!(matches!(
        CallReport::outcome_of(&result),
        Outcome::Unknown { .. }
    ));
    assert_eq!(venue.ledger().applied("order-1"), 1);
}

/// Sends an order to a server that has no time for it, and returns how often it arrived there.
async fn sent(key: Option<IdempotencyKeyLayer>, retry: Option<RetryLayer>) -> usize {
    let venue = Venue::start().unwrap();
    let outbound = Outbound::builder()
        .idempotency_key(key)
        .retry(retry)
        .build()
        .unwrap();
    let client = outbound.boxed(outbound.hyper_client(HttpConnector::new()));
    let fault = Fault::EarlyAnswer {
        code: 503,
        drain: true,
    };
    let mut order = post(venue.url("/orders"));
    order
        .headers_mut()
        .insert(Fault::HEADER, fault.header_value());

    let response = client.send(order).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    venue.ledger().attempts("order-1")
}

#[tokio::test]
async fn a_step_that_a_file_leaves_out_passes_requests_through() {
    let retry = || Some(RetryLayer::new());
    assert_eq!(sent(Some(key()), retry()).await, 3);
    assert_eq!(sent(None, retry()).await, 1);
    assert_eq!(sent(Some(key()), None).await, 1);
}

#[test]
fn the_connector_is_bounded_also_where_the_deadline_has_a_layer_of_its_own() {
    let timeouts = Timeouts::builder().connect(2 * SECOND).build().unwrap();
    let deadline = DeadlineLayer::builder(&timeouts).build();
    let outbound = Outbound::builder()
        .timeouts((timeouts, deadline))
        .build()
        .unwrap();
    assert_eq!(outbound.connect_bound(), Some(2 * SECOND));
}

#[test]
fn the_connector_is_bounded_as_the_timeouts_say() {
    let timeouts = Timeouts::builder().connect(2 * SECOND);
    let outbound = Outbound::builder().timeouts(timeouts).build().unwrap();
    assert_eq!(outbound.connect_bound(), Some(2 * SECOND));

    let outbound = Outbound::builder().build().unwrap();
    assert_eq!(outbound.connect_bound(), None);
}

#[test]
fn reconcile_must_have_the_time_to_find_something_absent() {
    let reconcile = || ReconcileLayer::builder(nobody).min_age(5 * SECOND);
    let timeouts = Timeouts::builder().call(5 * SECOND);
    let builder = Outbound::builder().reconcile(reconcile());
    let error = builder.timeouts(timeouts).build().unwrap_err();
    assert_eq!(only(&error), ("reconcile", "min_age"));

    let timeouts = Timeouts::builder().call(6 * SECOND);
    let builder = Outbound::builder().reconcile(reconcile());
    assert!(builder.timeouts(timeouts).build().is_ok());
}

#[tokio::test]
async fn the_witness_can_be_told_that_a_server_acts_on_parts() {
    // Whoever breaks off has not taken the body.
    let broken = || {
        service_fn(|_: Request<WitnessBody<Body>>| async {
            Err::<Response<Body>, BoxError>(io::Error::from(io::ErrorKind::ConnectionReset).into())
        })
    };
    let retry = || RetryLayer::builder().max_attempts(1);
    let outbound = Outbound::builder().retry(retry()).build().unwrap();
    let result = outbound.boxed(broken()).send(post("http://venue/")).await;
    assert!(CallReport::outcome_of(&result).is_retryable());

    let witness = WitnessLayer::new().acts_on_parts();
    let outbound = Outbound::builder()
        .retry(retry())
        .witness(witness)
        .build()
        .unwrap();
    let result = outbound.boxed(broken()).send(post("http://venue/")).await;
    assert!(CallReport::outcome_of(&result).is_unknown());
}
