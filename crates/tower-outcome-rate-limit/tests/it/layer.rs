//! The layer, in conversation with a mock server.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::{
    task::{JoinHandle, yield_now},
    time::{Instant, advance},
};
use tower::{BoxError, Layer, Service, ServiceExt};
use tower_outcome_core::{
    CallContext, Deadline, Delivery, Failure, Outcome, Phase, Priority, Reason, Resent,
    peek::PeekBody,
};
use tower_outcome_rate_limit::{
    Budget, Class, Cost, KeyedBudget, Limit, Permit, RateLimit, RateLimitLayer, Refused,
    RefusedKind, Scope, Ticket,
};
use tower_test::mock::{self, Handle, Mock};

use crate::support::{exact, far, ms, secs};

type Body = Full<Bytes>;
type Reply = Result<Response<PeekBody<Body>>, BoxError>;

fn get() -> Request<Body> {
    Request::get("https://venue.test/price")
        .body(Body::default())
        .unwrap()
}

fn answer(status: u16) -> Response<Body> {
    Response::builder()
        .status(status)
        .body(Body::default())
        .unwrap()
}

fn send<C>(
    service: &RateLimit<Mock<Request<Body>, Response<Body>>, C>,
    request: Request<Body>,
) -> JoinHandle<Reply>
where
    C: tower_outcome_core::Classify + Send + Sync + 'static,
{
    tokio::spawn(service.clone().oneshot(request))
}

async fn next(
    server: &mut Handle<Request<Body>, Response<Body>>,
) -> mock::SendResponse<Response<Body>> {
    server.next_request().await.expect("another request").1
}

/// Whether nothing has been sent once everything that can go has gone.
async fn nothing_sent(server: &mut Handle<Request<Body>, Response<Body>>) -> bool {
    for _ in 0..10 {
        yield_now().await;
    }
    let mut waiting = tokio_test::task::spawn(server.next_request());
    waiting.poll().is_pending()
}

fn one_a_second() -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 1, secs(1)))
        .build()
        .unwrap()
}

fn refused(result: Reply) -> (Failure, Refused) {
    let error = *result.err().unwrap().downcast::<Failure>().unwrap();
    let refused = error.source_ref().unwrap().downcast_ref::<Refused>();
    let refused = refused.unwrap().clone();
    (error, refused)
}

#[tokio::test(start_paused = true)]
async fn a_request_counts_from_its_departure_until_a_window_after_its_response() {
    let budget = one_a_second();
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget.clone()).layer(mock);
    server.allow(10);
    let start = Instant::now();

    let first = send(&service, get());
    let reply = next(&mut server).await;
    let second = send(&service, get());
    tokio::time::sleep(ms(1500)).await;
    assert!(nothing_sent(&mut server).await, "the first is under way");

    reply.send_response(answer(200));
    first.await.unwrap().unwrap();
    let reply = next(&mut server).await;
    assert_eq!(start.elapsed(), ms(2500));
    reply.send_response(answer(200));
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn clones_share_the_budget() {
    let (mock, mut server) = mock::pair();
    let layer = RateLimitLayer::new(one_a_second());
    let (one, other) = (layer.layer(mock.clone()), layer.clone().layer(mock));
    server.allow(10);
    let _first = send(&one, get());
    next(&mut server).await.send_response(answer(200));
    let _second = send(&other, get());
    assert!(nothing_sent(&mut server).await);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_the_inner_service_is_held_during_the_wait() {
    let budget = one_a_second();
    let permit = budget.try_acquire(&Ticket::new()).unwrap();
    let (mock, mut server) = mock::pair::<Request<Body>, Response<Body>>();
    // One request at a time is all that the service takes.
    let service = tower::limit::ConcurrencyLimitLayer::new(1).layer(mock);
    let limited = RateLimitLayer::new(budget).layer(service.clone());
    server.allow(10);
    let waiting = tokio::spawn(limited.oneshot(get()));
    yield_now().await;

    let unrelated = tokio::spawn(service.oneshot(get()));
    next(&mut server).await.send_response(answer(200));
    unrelated.await.unwrap().unwrap();
    permit.refund();
    next(&mut server).await.send_response(answer(200));
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_order_goes_before_the_sweep_that_came_first() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 2, secs(1)))
        .class(Class::new("order"))
        .class(Class::new("sweep"))
        .build()
        .unwrap();
    let spent = [(); 2].map(|()| budget.try_acquire(&Ticket::new()).unwrap());
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget).layer(mock);
    server.allow(10);
    let _sweep = send(&service, get());
    yield_now().await;
    let mut order = Request::post("https://venue.test/orders")
        .body(Body::default())
        .unwrap();
    order.extensions_mut().insert(Priority::HIGHEST);
    let _order = send(&service, order);
    yield_now().await;
    spent.into_iter().for_each(Permit::responded);
    let (first, _reply) = server.next_request().await.unwrap();
    assert_eq!(first.uri().path(), "/orders");
    let (second, _reply) = server.next_request().await.unwrap();
    assert_eq!(second.uri().path(), "/price");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_make_its_deadline_is_refused_before_it_waits() {
    let budget = one_a_second();
    budget.try_acquire(&Ticket::new()).unwrap().responded();
    let (mock, _server) = mock::pair();
    let service = RateLimitLayer::new(budget).layer(mock);
    let mut request = get();
    request.extensions_mut().insert(Deadline::after(ms(400)));
    let start = Instant::now();
    let (failure, refused) = refused(send(&service, request).await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(failure.delivery(), Delivery::NotSent);
    let after = failure.outcome().after().unwrap();
    assert_eq!(after.delay(), secs(1));
    assert_eq!(failure.outcome().reason(), Some(Reason::LocalLimit));
    assert_eq!(refused.kind(), &RefusedKind::Deadline);
    assert_eq!(refused.retry_at(), Some(start + secs(1)));
    assert!(
        failure
            .report()
            .unwrap()
            .not_retried()
            .unwrap()
            .is_giving_up()
    );
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_never_fits_is_permanent() {
    let budget = one_a_second();
    let (mock, _server) = mock::pair();
    let scope = Scope::of(budget)
        .tickets(|_: &http::request::Parts| Ticket::new().cost(Cost::in_order([2])));
    let service = RateLimitLayer::builder(scope).build().unwrap().layer(mock);
    let (failure, refused) = refused(send(&service, get()).await.unwrap());
    assert!(matches!(failure.outcome(), Outcome::Permanent { .. }));
    let kind = RefusedKind::TooLarge {
        limit: "requests".into(),
        cost: 2,
        capacity: 1,
    };
    assert_eq!(refused.kind(), &kind);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_sent_is_given_back() {
    let budget = one_a_second();
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget.clone()).layer(mock);

    // The inner service fails to become ready.
    server.send_error("down");
    assert!(send(&service, get()).await.unwrap().is_err());
    assert_eq!(budget.snapshot().limits[0].held, 0);
    assert_eq!(budget.snapshot().limits[0].used, 0);

    // The call is dropped while the inner service becomes ready.
    let (mock, mut server) = mock::pair::<Request<Body>, Response<Body>>();
    server.allow(0);
    let mut service = RateLimitLayer::new(budget.clone()).layer(mock);
    let mut call = tokio_test::task::spawn(service.call(get()));
    assert!(call.poll().is_pending());
    assert_eq!(budget.snapshot().limits[0].held, 1);
    drop(call);
    assert_eq!(budget.snapshot().limits[0].held, 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_proves_nothing_was_sent_gives_back_what_any_other_counts() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .build()
        .unwrap();
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget.clone()).layer(mock);
    server.allow(10);

    let unsent = send(&service, get());
    let failure = Failure::not_sent(Reason::Transport, "no connection");
    next(&mut server).await.send_error(failure);
    assert!(unsent.await.unwrap().is_err());
    assert_eq!(budget.snapshot().limits[0].held, 0);
    assert_eq!(budget.snapshot().limits[0].used, 0);

    let reset = send(&service, get());
    next(&mut server).await.send_error("connection reset");
    assert!(reset.await.unwrap().is_err());
    assert_eq!(budget.snapshot().limits[0].held, 1, "it may still arrive");
    tokio::time::sleep(secs(1)).await;
    assert_eq!(budget.snapshot().limits[0].held, 0);
    assert_eq!(budget.snapshot().limits[0].used, 1);
    tokio::time::sleep(secs(1)).await;
    assert_eq!(budget.snapshot().limits[0].used, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_after_it_was_sent_counts() {
    let budget = one_a_second();
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget.clone()).layer(mock);
    server.allow(1);
    let call = send(&service, get());
    let _reply = next(&mut server).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(budget.snapshot().limits[0].held, 1);
    tokio::time::sleep(ms(1999)).await;
    assert!(budget.try_acquire(&Ticket::new()).is_err());
    tokio::time::sleep(ms(1)).await;
    budget.try_acquire(&Ticket::new()).unwrap().refund();
}

#[tokio::test(start_paused = true)]
async fn a_narrow_budget_gets_back_what_a_wide_one_refused() {
    let narrow = KeyedBudget::<String>::try_new(exact("account").limit(Limit::sliding(
        "orders",
        5,
        secs(1),
    )))
    .unwrap();
    let wide = one_a_second();
    let held = wide.try_acquire(&Ticket::new()).unwrap();
    let scope = Scope::keyed(narrow.clone(), |head: &http::request::Parts| {
        head.uri.path().to_owned()
    });
    let layer = RateLimitLayer::builder(scope)
        .within(wide.clone())
        .build()
        .unwrap();
    let (mock, mut server) = mock::pair();
    let service = layer.layer(mock);
    server.allow(10);

    let account = narrow.get("/price");
    let waiting = send(&service, get());
    yield_now().await;
    assert_eq!(
        account.snapshot().limits[0].held,
        1,
        "held while it waits for the wide one"
    );
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(account.snapshot().limits[0].held, 0);

    held.responded();
    let mut late = get();
    late.extensions_mut().insert(Deadline::after(ms(10)));
    let (_, why) = refused(send(&service, late).await.unwrap());
    assert_eq!(why.budget(), "venue");
    assert_eq!(account.snapshot().limits[0].held, 0);

    let sent = send(&service, get());
    next(&mut server).await.send_response(answer(200));
    sent.await.unwrap().unwrap();
    assert_eq!(account.snapshot().limits[0].used, 1);
    assert_eq!(wide.snapshot().limits[0].used, 1);
}

#[tokio::test(start_paused = true)]
async fn the_response_comes_through_as_it_is() {
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(one_a_second()).layer(mock);
    server.allow(1);
    let call = send(&service, get());
    let reply = next(&mut server).await;
    let mut response = answer(503);
    *response.body_mut() = Body::from("closed for lunch");
    response
        .headers_mut()
        .insert("x-venue", "1".parse().unwrap());
    reply.send_response(response);
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["x-venue"], "1");
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "closed for lunch");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_in_the_queue_was_not_sent() {
    let budget = one_a_second();
    let permit = budget.try_acquire(&Ticket::new()).unwrap();
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget).layer(mock);
    server.allow(2);
    let context = CallContext::new();
    let mut request = get();
    context.put(request.extensions_mut());
    let waiting = send(&service, request);
    yield_now().await;
    assert_eq!(context.phase(), Phase::Queued);
    let given_up = context.clone().give_up();
    assert_eq!(given_up.delivery, Delivery::NotSent);
    // Whoever goes on all the same does not get it sent.
    permit.refund();
    assert!(nothing_sent(&mut server).await);
    let error = waiting.await.unwrap().err().unwrap();
    assert_eq!(Failure::of(&*error).unwrap().delivery(), Delivery::NotSent);

    let context = CallContext::new();
    let mut request = get();
    context.put(request.extensions_mut());
    let _sent = send(&service, request);
    let _reply = next(&mut server).await;
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
}

#[tokio::test(start_paused = true)]
async fn what_a_layer_below_sends_again_is_counted_and_not_waited_for() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 4, secs(1)))
        .limit(Limit::token_bucket("tokens", 4, secs(1)))
        .limit(Limit::spacing("distance", ms(10)))
        .build()
        .unwrap();
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget.clone()).layer(mock);
    server.allow(10);
    let used = || {
        let snapshot = budget.snapshot();
        snapshot
            .limits
            .iter()
            .map(|limit| limit.used)
            .collect::<Vec<_>>()
    };

    let call = send(&service, get());
    let mut response = answer(200);
    Resent::note(response.extensions_mut());
    next(&mut server).await.send_response(response);
    call.await.unwrap().unwrap();
    assert_eq!(used(), [2, 2, 0]);

    // More than there is room for; the next waits for all of it.
    advance(ms(10)).await;
    let call = send(&service, get());
    let mut response = answer(200);
    (0..1000).for_each(|_| Resent::note(response.extensions_mut()));
    next(&mut server).await.send_response(response);
    call.await.unwrap().unwrap();
    assert_eq!(used()[0], 8);
    let call = send(&service, get());
    assert!(nothing_sent(&mut server).await);
    advance(secs(10)).await;
    next(&mut server).await.send_response(answer(200));
    call.await.unwrap().unwrap();
    assert_eq!(used()[0], 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_layer_below_sends_again_in_vain_is_counted_where_the_call_counts_it() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 4, secs(1)))
        .build()
        .unwrap();
    let (mock, mut server) = mock::pair();
    let service = RateLimitLayer::new(budget.clone()).layer(mock);
    server.allow(10);
    let (context, mut request) = (CallContext::new(), get());
    context.put(request.extensions_mut());
    context.begin_attempt();
    let call = send(&service, request);
    let reply = next(&mut server).await;
    context.end_attempt(Outcome::Success, Delivery::Refused);
    context.begin_attempt();
    reply.send_error("reset");
    assert!(call.await.unwrap().is_err());
    // The second may still arrive, the first has.
    assert_eq!(budget.snapshot().limits[0].used, 1);
    advance(far()).await;
    assert_eq!(budget.snapshot().limits[0].held, 0);
}

#[test]
fn a_refusal_is_found_however_many_errors_are_around_it() {
    let limit = Limit::sliding("requests", 1, secs(1));
    let budget = exact("venue").limit(limit).build().unwrap();
    let _under_way = budget.try_acquire(&Ticket::new()).unwrap();
    let refused = budget.try_acquire(&Ticket::new()).unwrap_err();
    let failure = Failure::not_sent(Reason::LocalLimit, refused.clone());
    let around = Failure::not_sent(Reason::LocalLimit, failure);
    assert_eq!(Refused::of(&around), Some(&refused));
    assert_eq!(Refused::of(&std::io::Error::other("full")), None);
}
