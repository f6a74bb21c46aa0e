//! Nonces: they rise, in strict mode they arrive so, and refusals are not met with a loop.

use std::{
    collections::HashSet,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio_test::{assert_pending, task};
use tower::{Layer, ServiceExt};
use tower_outcome_core::{BoxError, CallContext, Clock, ManualClock, Phase};
use tower_outcome_sign::{
    AsyncSign, ClockOffset, Draft, Fresh, Nonces, Resigned, SignError, SignErrorKind, SignLayer,
    SignReport, Signed, SignedBody, SigningTime, Strict, Unit, Validity,
};
use tower_outcome_testkit::{RisingNonce, Venue};

use crate::{
    clock::classifier,
    layer::{NONCE, STAMP, Stamp, order},
    support::{at_ms, ms},
};

mod refused;

const NOW: u64 = 1_700_000_000_000;

fn time(millis: u64) -> SigningTime {
    SigningTime::from_unit(millis, Unit::Millis).unwrap()
}

fn layer(nonces: &Nonces) -> SignLayer<Stamp> {
    SignLayer::builder(STAMP)
        .origin("https://venue.test")
        .clock(Arc::new(ManualClock::new(at_ms(NOW))))
        .nonces(nonces.clone())
        .classifier(classifier())
        .build()
        .unwrap()
}

fn strict(strict: Strict) -> Nonces {
    let nonces = Nonces::builder(Unit::Millis).strict(strict);
    nonces.build(time(NOW)).unwrap()
}

#[test]
fn two_in_one_millisecond_differ() {
    let nonces = Nonces::new(Unit::Millis);
    let issued = [NOW, NOW, NOW, NOW - 5, NOW + 2, NOW + 10].map(|now| {
        let nonce = nonces.issue(time(now)).unwrap();
        nonce.get() - NOW
    });
    assert_eq!(issued, [0, 1, 2, 3, 4, 10]);
    assert_eq!(nonces.high_water(), NOW + 10);
}

#[test]
fn threads_never_share_one() {
    let nonces = Nonces::new(Unit::Millis);
    let issued = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let issue = |_| nonces.clone().issue(time(NOW)).unwrap();
                    let issued: Vec<_> = (0..1000).map(issue).collect();
                    assert!(issued.is_sorted());
                    issued
                })
            })
            .collect();
        let issued = threads.into_iter().map(|thread| thread.join().unwrap());
        issued.flatten().collect::<HashSet<_>>()
    });
    assert_eq!(issued.len(), 8000);
    assert_eq!(nonces.high_water(), NOW + 7999);
}

#[test]
fn a_restart_goes_on_above_the_high_water_mark() {
    // Even with a clock that was put back since.
    let before = Nonces::new(Unit::Millis);
    before.issue(time(NOW + 60_000)).unwrap();
    let builder = Nonces::builder(Unit::Millis).starting_after(before.high_water());
    let after = builder.build(time(NOW)).unwrap();
    assert_eq!(after.issue(time(NOW)).unwrap().get(), NOW + 60_001);
}

#[test]
fn a_unit_can_become_smaller_and_never_larger() {
    let micros = Nonces::builder(Unit::Micros).starting_after(NOW);
    let nonce = micros.build(time(NOW)).unwrap().issue(time(NOW)).unwrap();
    assert_eq!(nonce.get(), NOW * 1000);
    let millis = Nonces::builder(Unit::Millis).starting_after(nonce.get());
    let error = millis.build(time(NOW)).unwrap_err();
    assert_eq!(error.field(), "starting_after");
    let error = Nonces::builder(Unit::Millis).stop_after(0).build(time(NOW));
    assert_eq!(error.unwrap_err().field(), "stop_after");
}

#[test]
fn the_last_number_is_not_followed_by_the_first() {
    // Nanoseconds run out of 64 bits in the year 2554.
    let nonces = Nonces::new(Unit::Nanos);
    let late = SigningTime::from_unit(20_000_000_000, Unit::Seconds).unwrap();
    assert_eq!(nonces.issue(late).unwrap().get(), u64::MAX);
    assert_eq!(
        *nonces.issue(late).unwrap_err().kind(),
        SignErrorKind::NonceStopped
    );
}

/// A server that has seen a nonce from somebody else.
#[derive(Clone)]
struct Server {
    high: Arc<AtomicU64>,
    calls: Arc<AtomicUsize>,
}

impl Server {
    fn new(high: u64) -> Self {
        Self {
            high: Arc::new(AtomicU64::new(high)),
            calls: Arc::default(),
        }
    }
}

impl tower::Service<Request<SignedBody<Full<Bytes>>>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<SignedBody<Full<Bytes>>>) -> Self::Future {
        let nonce: u64 = request.headers()[NONCE].to_str().unwrap().parse().unwrap();
        self.calls.fetch_add(1, Ordering::SeqCst);
        let accepted = nonce > self.high.fetch_max(nonce, Ordering::SeqCst);
        Box::pin(async move {
            tokio::task::yield_now().await;
            let builder = Response::builder().status(if accepted { 200 } else { 400 });
            let builder = if accepted {
                builder
            } else {
                builder.header("x-error", "nonce")
            };
            Ok(builder.body(Full::default()).unwrap())
        })
    }
}

#[tokio::test]
async fn an_invalid_nonce_is_followed_by_one_more() {
    // Another program is one ahead.
    let (nonces, server) = (Nonces::new(Unit::Millis), Server::new(NOW));
    let service = layer(&nonces).layer(server.clone());
    let response = service.oneshot(order()).await.unwrap();
    assert_eq!(response.status(), 200);
    let report = SignReport::of(response.extensions()).unwrap();
    assert_eq!(report.resigned(), Some(Resigned::InvalidNonce));
    assert_eq!(report.refused(), None);
    assert_eq!(server.calls.load(Ordering::SeqCst), 2);
    assert!(!nonces.is_stopped());
}

#[tokio::test]
async fn a_key_that_was_used_with_a_larger_unit_is_stopped_and_named() {
    let (nonces, server) = (Nonces::new(Unit::Millis), Server::new(NOW * 1000));
    let service = layer(&nonces).layer(server.clone());
    let response = service.clone().oneshot(order()).await.unwrap();
    assert_eq!(response.status(), 400);
    let report = SignReport::of(response.extensions()).unwrap();
    assert_eq!(report.refused(), Some(Resigned::InvalidNonce));
    assert!(report.to_string().contains("larger unit"), "{report}");
    assert_eq!(server.calls.load(Ordering::SeqCst), 2);
    // The third in a row is the last that the venue gets to see.
    let response = service.clone().oneshot(order()).await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(server.calls.load(Ordering::SeqCst), 3);
    assert!(nonces.is_stopped());
    let error = service.clone().oneshot(order()).await.unwrap_err();
    assert_eq!(
        *SignError::of(&*error).unwrap().kind(),
        SignErrorKind::NonceStopped
    );
    assert!(
        SignError::of(&*error)
            .unwrap()
            .to_string()
            .contains("larger unit")
    );
    assert_eq!(server.calls.load(Ordering::SeqCst), 3);
    // Until somebody has seen to it.
    server.high.store(0, Ordering::SeqCst);
    nonces.resume();
    let response = service.oneshot(order()).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_success_in_between_forgets_refusals() {
    let (nonces, server) = (Nonces::new(Unit::Millis), Server::new(NOW));
    let service = layer(&nonces).layer(server.clone());
    for _ in 0..10 {
        server.high.store(nonces.high_water() + 1, Ordering::SeqCst);
        let response = service.clone().oneshot(order()).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    assert!(!nonces.is_stopped());
}

type Pair = tower_test::mock::Mock<Request<SignedBody<Full<Bytes>>>, Response<Full<Bytes>>>;

#[tokio::test]
async fn a_turn_lasts_until_the_answer() {
    let nonces = strict(Strict::UntilAnswered);
    let (mock, mut handle): (Pair, _) = tower_test::mock::pair();
    let service = layer(&nonces).layer(mock);
    let mut first = task::spawn(service.clone().oneshot(order()));
    let mut waiting = order();
    let context = CallContext::new();
    context.enter(Phase::Sending);
    context.put(waiting.extensions_mut());
    let mut second = task::spawn(service.oneshot(waiting));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_eq!(context.phase(), Phase::Queued);
    // The nonce is not taken while waiting.
    assert_eq!(nonces.high_water(), NOW);
    let (request, send) = handle.next_request().await.unwrap();
    request.into_body().collect().await.unwrap();
    assert_pending!(second.poll());
    send.send_response(Response::new(Full::default()));
    assert!(first.poll().is_ready());
    assert!(second.is_woken());
    assert_pending!(second.poll());
    let (_, send) = handle.next_request().await.unwrap();
    send.send_response(Response::new(Full::default()));
    assert!(second.poll().is_ready());
    assert_eq!(nonces.high_water(), NOW + 1);
}

#[tokio::test]
async fn a_turn_may_end_when_the_request_was_taken() {
    for read in [true, false] {
        let (mock, mut handle): (Pair, _) = tower_test::mock::pair();
        let service = layer(&strict(Strict::UntilWritten)).layer(mock);
        let mut first = task::spawn(service.clone().oneshot(order()));
        let mut second = task::spawn(service.oneshot(order()));
        assert_pending!(first.poll());
        assert_pending!(second.poll());
        let (request, send) = handle.next_request().await.unwrap();
        let mut body = request.into_body();
        if read {
            assert_pending!(second.poll());
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), "buy 100");
            assert!(body.is_end_stream());
        } else {
            // Whoever lets go of the body will not write it.
            drop(body);
        }
        assert!(second.is_woken());
        assert_pending!(second.poll());
        let (_, sent_second) = handle.next_request().await.unwrap();
        drop((send, sent_second));
    }
}

#[tokio::test]
async fn a_call_dropped_anywhere_passes_on_its_turn() {
    for mode in [Strict::UntilAnswered, Strict::UntilWritten] {
        for polls in 0..6 {
            let nonces = strict(mode);
            let service = layer(&nonces).layer(Server::new(NOW));
            let mut call = task::spawn(service.clone().oneshot(order()));
            let mut behind = task::spawn(service.clone().oneshot(order()));
            let mut behind_is_done = false;
            for _ in 0..polls {
                if call.poll().is_ready() {
                    break;
                }
                behind_is_done = behind_is_done || behind.poll().is_ready();
            }
            drop(call);
            // Also from the middle of the line.
            let last = tokio::spawn(service.oneshot(order()));
            tokio::task::yield_now().await;
            drop(behind);
            let response = last.await.unwrap().unwrap();
            assert_eq!(response.status(), 200, "{mode:?} after {polls}");
        }
    }
}

#[tokio::test]
async fn an_error_passes_on_the_turn() {
    let (mock, mut handle): (Pair, _) = tower_test::mock::pair();
    let service = layer(&strict(Strict::UntilAnswered)).layer(mock);
    let mut first = task::spawn(service.clone().oneshot(order()));
    let mut second = task::spawn(service.oneshot(order()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    let (_, send) = handle.next_request().await.unwrap();
    send.send_error("reset");
    assert!(first.poll().is_ready());
    assert_pending!(second.poll());
    handle.next_request().await.unwrap();
}

/// A wall clock that runs, for nonces over real sockets.
#[derive(Debug)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> std::time::SystemTime {
        // Four requests to a millisecond.
        at_ms(NOW) + ms(self.0.fetch_add(1, Ordering::Relaxed) / 4)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_strict_calls_on_sixteen_connections_arrive_in_order() {
    const CALLS: usize = 10_000;
    const CONNECTIONS: usize = 16;
    let venue = Venue::builder()
        .demand(RisingNonce::new("x-nonce"))
        .start()
        .unwrap();
    let layer = SignLayer::builder(STAMP)
        .origin(venue.url(""))
        .clock(Arc::new(Ticking(AtomicU64::new(0))))
        .nonces(strict(Strict::UntilAnswered))
        .build()
        .unwrap();
    // One client is one connection, since a client never has two requests out.
    let services: Vec<_> = (0..CONNECTIONS)
        .map(|_| layer.layer(Client::builder(TokioExecutor::new()).build_http()))
        .collect();
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let calls = (0..CALLS).map(|call| {
        let request = Request::post(venue.url("/orders"))
            .header("x-operation-id", call.to_string())
            .body(Full::new(Bytes::from("buy 1")))
            .unwrap();
        let (service, statuses) = (services[call % CONNECTIONS].clone(), Arc::clone(&statuses));
        tokio::spawn(async move {
            let response = service.oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            response.into_body().collect().await.unwrap();
            statuses.lock().unwrap().push(status);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    let statuses = statuses.lock().unwrap();
    assert_eq!(statuses.len(), CALLS);
    assert!(statuses.iter().all(|&status| status == 200), "out of order");
    assert_eq!(venue.ledger().applied_total(), CALLS);
    assert!(venue.ledger().connections() >= 16);
}
