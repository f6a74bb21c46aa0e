//! The contract of tower's services.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimit};
use tower_outcome_auth_refresh::AuthRefreshLayer;
use tower_outcome_core::{BoxError, CallReport, NotRetried};
use tower_outcome_testkit::Probe;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn an_instance_is_made_ready_before_each_of_its_calls() {
    // The probe panics where an instance is called that was not made ready.
    let (probe, handle) = Probe::new(Venue::rejecting(&["token-1"]));
    let stage = Stage::new(Source::endless());
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(probe);
    let response = service.oneshot(post()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        (handle.calls(), handle.peak(), handle.in_flight()),
        (2, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_of_the_inner_service_is_held_while_a_credential_is_awaited() {
    let stage = Stage::new(Source::endless());
    let gate = stage.source.shut();
    let mut limited = ConcurrencyLimit::new(stage.venue.clone(), 1);
    let layer = AuthRefreshLayer::new(stage.credentials.clone());
    let mut call = task::spawn(layer.layer(limited.clone()).oneshot(post()));
    assert_pending!(call.poll());
    poll_fn(|cx| limited.poll_ready(cx)).await.unwrap();
    drop(limited);
    gate.notify_one();
    assert_eq!(call.await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_passes_through() {
    let stage = Stage::new(Source::endless());
    let (mock, mut handle) = tower_test::mock::pair::<Req, Res>();
    handle.send_error("the worker is closed");
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(mock);
    let error = service.oneshot(post()).await.unwrap_err();
    assert_eq!(error.to_string(), "the worker is closed");
}

/// Is ready once, and then never again.
#[derive(Clone)]
struct Once<S>(S, bool);

impl<S: Service<Req, Error = BoxError>> Service<Req> for Once<S> {
    type Response = S::Response;
    type Error = BoxError;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.1 {
            return Poll::Ready(Err("closed".into()));
        }
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        self.1 = true;
        self.0.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_again_leaves_the_rejection_as_the_answer() {
    let stage = Stage::new(Source::endless());
    let venue = Once(Venue::rejecting(&["token-1"]), false);
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(venue);
    let reply: Reply = service.oneshot(post()).await;
    let report = CallReport::in_result(&reply).unwrap();
    assert!(matches!(
        report.not_retried(),
        Some(NotRetried::NotReady(_))
    ));
    assert_eq!(reply.unwrap().status(), 401);
}

/// Becomes ready so much later.
#[derive(Clone)]
struct Late<S>(
    S,
    std::time::Duration,
    Option<std::sync::Arc<std::sync::Mutex<std::pin::Pin<Box<tokio::time::Sleep>>>>>,
);

impl<S: Service<Req, Error = BoxError>> Service<Req> for Late<S> {
    type Response = S::Response;
    type Error = BoxError;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let sleep = self.2.get_or_insert_with(|| {
            std::sync::Arc::new(std::sync::Mutex::new(Box::pin(tokio::time::sleep(self.1))))
        });
        let slept = sleep.lock().unwrap().as_mut().poll(cx);
        std::task::ready!(slept);
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        self.2 = None;
        self.0.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn what_expired_while_the_inner_service_became_ready_is_not_sent() {
    let stage = Stage::new(Source::tokens(SECOND * 30));
    assert!(stage.credentials.get(None).await.is_ok());
    let late = Late(stage.venue.clone(), SECOND * 40, None);
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(late);
    let call = tokio::spawn(service.oneshot(post()));
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert_eq!(stage.venue.seen(), ["token-2"]);
}

#[tokio::test(start_paused = true)]
async fn the_service_is_always_ready() {
    let mut stage = Stage::new(Source::new([Say::Never]));
    let mut service = task::spawn(&mut stage.service);
    assert_ready_ok!(
        service.enter(|cx, service| Service::<Req>::poll_ready(service.get_mut(), cx))
    );
}

#[tokio::test(start_paused = true)]
async fn the_whole_can_be_boxed_and_shared() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}

    let stage = Stage::new(Source::endless());
    shared(&stage.service);
    let boxed = tower::util::BoxCloneSyncService::new(stage.service.clone());
    assert_eq!(boxed.oneshot(post()).await.unwrap().status(), 200);
}
