//! The contract of tower's services.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use http::StatusCode;
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};
use tower_outcome_core::BoxError;
use tower_outcome_testkit::Probe;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn the_instance_that_was_made_ready_is_the_one_called() {
    // The probe panics where an instance is called that was not made ready.
    let (probe, handle) = Probe::new(Scripted::new(vec![503, 503, 200]));
    let mut service = steady().build().unwrap().layer(probe);
    let response = service.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(handle.calls(), 3);
    assert_eq!(handle.in_flight(), 0);
    assert_eq!(handle.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_makes_retry_not_ready() {
    let (service, mut server) = pair(&steady().build().unwrap());
    server.0.allow(0);
    let mut service = task::spawn(service);
    assert_pending!(service.enter(|cx, service| service.get_mut().poll_ready(cx)));
    server.0.allow(1);
    assert!(service.is_woken());
    assert_ready_ok!(service.enter(|cx, service| service.get_mut().poll_ready(cx)));
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_passes_through() {
    let (mut service, mut server) = pair(&steady().build().unwrap());
    server.0.send_error("the worker is closed");
    let error = service.ready().await.unwrap_err();
    assert_eq!(error.to_string(), "the worker is closed");
}

#[tokio::test]
async fn the_whole_can_be_boxed_and_shared() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}

    let service = steady().build().unwrap().layer(Scripted::new(vec![200]));
    shared(&service);
    let boxed = tower::util::BoxCloneSyncService::new(service);
    assert_eq!(boxed.oneshot(get()).await.unwrap().status(), StatusCode::OK);
}

/// Answers with these statuses, one after the other, and the last for ever.
#[derive(Clone)]
pub(crate) struct Scripted {
    codes: Arc<Vec<u16>>,
    next: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) fn new(codes: Vec<u16>) -> Self {
        Self {
            codes: Arc::new(codes),
            next: Arc::default(),
        }
    }
}

impl Service<Req> for Scripted {
    type Response = Res;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Res, BoxError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Req) -> Self::Future {
        let at = self.next.fetch_add(1, Ordering::SeqCst);
        let code = self.codes[at.min(self.codes.len() - 1)];
        Box::pin(async move {
            // A call takes two polls, so that it can be dropped half-way.
            tokio::task::yield_now().await;
            Ok(status(code))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_boxed_body_can_be_awaited_in_a_task() {
    use bytes::Bytes;
    use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
    use tower_outcome_core::{ReplayBody, ReplayLayer};

    type Boxed = UnsyncBoxBody<Bytes, BoxError>;
    let (mock, mut handle) = tower_test::mock::pair::<http::Request<ReplayBody<Boxed>>, Res>();
    let retry = steady().build().unwrap();
    let mut service = ReplayLayer::new().layer(retry.layer(mock));
    let body: Boxed = Full::from("x")
        .map_err(|never| match never {})
        .boxed_unsync();
    // The compiler has to see that this block is `Send`.
    let call = tokio::spawn(async move {
        let request = http::Request::put("http://venue.test/").body(body).unwrap();
        service.ready().await.unwrap().call(request).await
    });
    let (_, send) = handle.next_request().await.unwrap();
    send.send_response(status(200));
    assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK);
}
