//! The bound of requests in flight.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Response};
use http_body::{Body, Frame};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceExt};
use tower_outcome_core::{
    BoxError, CallContext, Deadline, Delivery, Phase, Random, Reason, SplitMix64,
};
use tower_outcome_testkit::Probe;
use tower_outcome_timeout::{
    Bound, ConnectionLimit, ConnectionLimitBody, ConnectionLimitLayer, Timeouts,
};
use tower_test::mock::{self, Handle, Mock};

use crate::support::*;

type Key = Option<http::uri::Authority>;
type Limited = ConnectionLimit<Mock<Req, Res>, Key>;

fn limited(limit: usize) -> (ConnectionLimitLayer, Limited, Handle<Req, Res>) {
    let layer = ConnectionLimitLayer::builder(limit).build().unwrap();
    let (mock, handle) = mock::pair();
    let service = layer.layer(mock);
    (layer, service, handle)
}

fn in_flight(layer: &ConnectionLimitLayer) -> usize {
    layer.in_flight(&Some("venue.test".parse().unwrap()))
}

// ## Who gets a slot, and when

#[tokio::test(start_paused = true)]
async fn so_many_are_in_flight_and_the_others_wait_their_turn() {
    let (layer, service, mut server) = limited(2);
    let mut calls = Vec::new();
    for path in ["/1", "/2", "/3", "/4"] {
        let mut get = get();
        *get.uri_mut() = format!("http://venue.test{path}").parse().unwrap();
        calls.push(start(&service, get).await);
    }
    assert_eq!(in_flight(&layer), 2);
    for path in ["/1", "/2", "/3", "/4"] {
        let (sent, send) = received(&mut server).await;
        assert_eq!(sent.uri().path(), path);
        assert!(in_flight(&layer) <= 2);
        send.send_response(ok(Steps::empty()));
        settle().await;
    }
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(in_flight(&layer), 0);
}

#[tokio::test(start_paused = true)]
async fn each_key_has_slots_of_its_own_and_clones_share_them() {
    let (layer, service, mut server) = limited(1);
    let at = |host: &str| {
        let mut get = get();
        *get.uri_mut() = format!("http://{host}/").parse().unwrap();
        get
    };
    let _one = start(&service, at("one.test")).await;
    let other = layer.clone().layer(service.get_ref().clone());
    let _two = start(&other, at("one.test")).await;
    let _three = start(&other, at("TWO.test")).await;
    let (sent, _one) = received(&mut server).await;
    assert_eq!(sent.uri().host(), Some("one.test"));
    let (sent, _three) = received(&mut server).await;
    assert_eq!(sent.uri().host(), Some("TWO.test"));
    assert_eq!(layer.in_flight(&Some("ONE.test".parse().unwrap())), 1);
    assert_eq!(layer.in_flight(&None), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_may_be_anything_of_the_request() {
    let (mock, mut server) = mock::pair::<Req, Res>();
    let layer = ConnectionLimitLayer::builder(1)
        .key(|head| head.method.clone())
        .build()
        .unwrap();
    let service = layer.layer(mock);
    let _first = start(&service, get()).await;
    let _second = start(&service, get()).await;
    let _third = start(&service, post()).await;
    let (one, _one) = received(&mut server).await;
    let (two, _two) = received(&mut server).await;
    assert_eq!((one.method(), two.method()), (&Method::GET, &Method::POST));
    assert_eq!(layer.in_flight(&Method::GET), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_idle_are_forgotten_and_others_are_not() {
    let (mock, mut server) = mock::pair::<Req, Res>();
    let layer = ConnectionLimitLayer::builder(1)
        .key(|head| head.uri.path().to_owned())
        .build()
        .unwrap();
    let service = layer.layer(mock);
    let at = |path: String| {
        let mut get = get();
        *get.uri_mut() = format!("http://venue.test{path}").parse().unwrap();
        get
    };
    let kept = start(&service, at("/kept".to_owned())).await;
    let (_sent, kept_send) = received(&mut server).await;
    for number in 0..1_000 {
        let call = start(&service, at(format!("/{number}"))).await;
        let (_sent, send) = received(&mut server).await;
        send.send_response(ok(Steps::empty()));
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(layer.in_flight(&"/kept".to_owned()), 1);
    kept_send.send_response(ok(Steps::empty()));
    assert!(kept.await.unwrap().is_ok());
    assert_eq!(layer.in_flight(&"/kept".to_owned()), 0);
}

// ## Who gets none

#[tokio::test(start_paused = true)]
async fn who_gets_no_slot_in_time_was_not_sent() {
    let start_at = Instant::now();
    let (_layer, service, mut server) = limited(1);
    let _first = start(&service, post()).await;
    let _kept = received(&mut server).await;
    let second = start(&service, post()).await;
    let expected = Struck {
        bound: Bound::Acquire,
        phase: Phase::Queued,
        delivery: Delivery::NotSent,
        outcome: retryable(Reason::LocalLimit),
        after: secs(5),
    };
    assert_eq!(struck(start_at, second).await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_cut_to_what_is_left_of_the_call() {
    let start_at = Instant::now();
    let (_layer, service, mut server) = limited(1);
    let _first = start(&service, post()).await;
    let _kept = received(&mut server).await;
    let mut second = post();
    second.extensions_mut().insert(Deadline::after(secs(2)));
    let struck = struck(start_at, start(&service, second).await).await;
    assert_eq!((struck.bound, struck.after), (Bound::Deadline, secs(2)));
    assert_eq!(struck.delivery, Delivery::NotSent);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_free_wins_over_the_bound() {
    let (_layer, service, mut server) = limited(1);
    let first = start(&service, post()).await;
    let (_sent, send) = received(&mut server).await;
    let mut second = task::spawn(service.clone().oneshot(post()));
    assert_pending!(second.poll());
    send.send_response(ok(Steps::empty()));
    assert!(first.await.unwrap().is_ok());
    advance(secs(60)).await;
    assert_pending!(second.poll());
    let (_sent, send) = received(&mut server).await;
    send.send_response(ok(Steps::empty()));
    assert!(assert_ready!(second.poll()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_inner_service_is_made_ready_within_the_bound_and_after_the_slot() {
    let start_at = Instant::now();
    let (layer, service, mut server) = limited(1);
    server.allow(0);
    let call = start(&service, post()).await;
    assert_eq!(in_flight(&layer), 1);
    let struck = struck(start_at, call).await;
    assert_eq!((struck.bound, struck.after), (Bound::Acquire, secs(5)));
    assert_eq!(in_flight(&layer), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_the_wait_is_long() {
    let none = Timeouts::builder().acquire(None).build().unwrap();
    let layer = ConnectionLimitLayer::builder(1).timeouts(&none);
    let (mock, mut server) = mock::pair::<Req, Res>();
    let service = layer.build().unwrap().layer(mock);
    let _first = start(&service, post()).await;
    let _kept = received(&mut server).await;
    let second = start(&service, post()).await;
    advance(secs(86_400)).await;
    settle().await;
    assert!(!second.is_finished());
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_known_above_not_to_have_been_sent() {
    let (_layer, service, mut server) = limited(1);
    let _first = start(&service, post()).await;
    let _kept = received(&mut server).await;
    let context = CallContext::new();
    let mut second = post();
    context.put(second.extensions_mut());
    let mut second = task::spawn(service.clone().oneshot(second));
    assert_pending!(second.poll());
    let given_up = context.give_up_attempt();
    assert_eq!(given_up.phase, Phase::Queued);
    assert_eq!(given_up.delivery, Delivery::NotSent);
}

#[tokio::test(start_paused = true)]
async fn who_was_handed_down_is_not_known_not_to_have_been_sent() {
    let (_layer, service, mut server) = limited(1);
    let context = CallContext::new();
    let mut post = post();
    context.put(post.extensions_mut());
    let _call = start(&service, post).await;
    let _kept = received(&mut server).await;
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
}

// ## When a slot is free again

/// Puts one call through and returns its response.
async fn answered(
    service: &Limited,
    server: &mut Handle<Req, Res>,
    body: Steps,
) -> Response<ConnectionLimitBody<Steps>> {
    let call = start(service, get()).await;
    let (_sent, send) = received(server).await;
    send.send_response(ok(body));
    call.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_at_the_end_of_the_body_even_if_somebody_keeps_it() {
    use http_body_util::BodyExt;
    let (layer, service, mut server) = limited(1);
    let (to, body) = Steps::piped();
    let mut response = answered(&service, &mut server, body).await;
    to.send(Step::Data("a")).unwrap();
    to.send(Step::Trailers).unwrap();
    drop(to);
    let body = response.body_mut();
    for _ in 0..2 {
        assert!(body.frame().await.unwrap().is_ok());
        assert_eq!(in_flight(&layer), 1);
    }
    assert!(body.frame().await.is_none());
    assert_eq!(in_flight(&layer), 0);

    // Where the body knows that a frame is its last, nobody has to ask for another.
    let mut response = answered(&service, &mut server, Steps::new(&["a"])).await;
    assert_eq!(in_flight(&layer), 1);
    assert!(response.body_mut().frame().await.unwrap().is_ok());
    assert_eq!(in_flight(&layer), 0);

    let _kept = answered(&service, &mut server, Steps::empty()).await;
    assert_eq!(in_flight(&layer), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_when_the_body_is_dropped_or_fails() {
    use http_body_util::BodyExt;
    let (layer, service, mut server) = limited(1);
    let response = answered(&service, &mut server, Steps::new(&["a", "b"])).await;
    assert_eq!(in_flight(&layer), 1);
    drop(response);
    assert_eq!(in_flight(&layer), 0);

    let (to, body) = Steps::piped();
    let mut response = answered(&service, &mut server, body).await;
    to.send(Step::Fail).unwrap();
    assert!(response.body_mut().frame().await.unwrap().is_err());
    assert_eq!(in_flight(&layer), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_when_the_call_fails_or_is_dropped() {
    let (layer, service, mut server) = limited(1);
    let call = start(&service, get()).await;
    let (_sent, send) = received(&mut server).await;
    send.send_error("broken");
    assert!(call.await.unwrap().is_err());
    assert_eq!(in_flight(&layer), 0);

    let call = start(&service, get()).await;
    let waiting = start(&service, get()).await;
    waiting.abort();
    settle().await;
    assert_eq!(in_flight(&layer), 1);
    call.abort();
    settle().await;
    assert_eq!(in_flight(&layer), 0);

    // Nobody is ready below any more.
    server.send_error("closed");
    assert!(start(&service, get()).await.await.unwrap().is_err());
    assert_eq!(in_flight(&layer), 0);
}

// ## Whatever happens

/// Answers after some polls, or fails, or never; chance decides.
#[derive(Clone)]
struct Fickle(Arc<SplitMix64>);

/// Yields some frames, or fails, or hangs; chance decides.
struct FickleBody(Arc<SplitMix64>);

impl Service<Req> for Fickle {
    type Response = Response<FickleBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.0.next_u64() % 8 {
            0 => Poll::Ready(Err("closed".into())),
            1 | 2 => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: Req) -> Self::Future {
        let random = Arc::clone(&self.0);
        Box::pin(async move {
            loop {
                match random.next_u64() % 8 {
                    0 => return Err("broken".into()),
                    1..=3 => return Ok(Response::new(FickleBody(random))),
                    _ => tokio::task::yield_now().await,
                }
            }
        })
    }
}

impl Body for FickleBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.0.next_u64() % 8 {
            0 => Poll::Ready(None),
            1 => Poll::Ready(Some(Err("broken".into()))),
            2..=4 => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"a"))))),
            _ => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

type Call<F> = Pin<Box<F>>;

/// Something that may hold a slot.
enum Live<F> {
    Call(Call<F>),
    Body(ConnectionLimitBody<FickleBody>),
}

#[tokio::test(start_paused = true)]
async fn no_slot_leaks_over_a_hundred_thousand_random_cancellations() {
    const LIMIT: usize = 3;
    let random = Arc::new(SplitMix64::seeded(1));
    let layer = ConnectionLimitLayer::builder(LIMIT).build().unwrap();
    let (probe, handle) = Probe::new(Fickle(Arc::clone(&random)));
    let service = layer.layer(probe);
    let mut live = Vec::new();
    let mut cancelled = 0;
    let mut cx = Context::from_waker(std::task::Waker::noop());
    while cancelled < 100_000 {
        let draw = random.next_u64();
        let at = (draw >> 8) as usize;
        match draw % 8 {
            0..=2 if live.len() < 12 => {
                live.push(Live::Call(Box::pin(service.clone().oneshot(get()))));
            }
            3 | 4 if !live.is_empty() => {
                live.swap_remove(at % live.len());
                cancelled += 1;
            }
            5 => advance(secs(draw >> 8 & 3)).await,
            _ if !live.is_empty() => {
                let at = at % live.len();
                let next = match live.swap_remove(at) {
                    Live::Call(mut call) => match call.as_mut().poll(&mut cx) {
                        Poll::Pending => Some(Live::Call(call)),
                        Poll::Ready(Ok(response)) => Some(Live::Body(response.into_body())),
                        Poll::Ready(Err(_)) => None,
                    },
                    Live::Body(mut body) => match Pin::new(&mut body).poll_frame(&mut cx) {
                        Poll::Pending | Poll::Ready(Some(Ok(_))) => Some(Live::Body(body)),
                        // It is kept, and holds nothing.
                        Poll::Ready(_) => None,
                    },
                };
                live.extend(next);
            }
            _ => {}
        }
        assert!(in_flight(&layer) <= LIMIT);
        assert!(in_flight(&layer) <= live.len());
    }
    drop(live);
    assert_eq!(in_flight(&layer), 0);
    assert_eq!(handle.in_flight(), 0);
    assert!(handle.peak() <= LIMIT);
}
