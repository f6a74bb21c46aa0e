//! The contract of tower's services.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};
use tower_outcome_core::{BoxError, WitnessLayer};
use tower_outcome_testkit::Probe;
use tower_outcome_timeout::{
    ConnectTimeoutLayer, ConnectionLimitLayer, DeadlineLayer, TimeoutLayer,
};
use tower_test::mock;

use crate::support::*;

/// Answers every request, at the second poll, so that a call can be dropped half-way.
#[derive(Clone, Debug)]
pub(crate) struct Echo;

impl Service<Sent> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Sent) -> Self::Future {
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(Response::new(Full::from("done")))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_instance_that_was_made_ready_is_the_one_called() {
    // The probe panics where an instance is called that was not made ready.
    let (probe, handle) = Probe::new(Echo);
    let limit = ConnectionLimitLayer::builder(1).build().unwrap();
    let service = TimeoutLayer::default().layer(WitnessLayer::new().layer(probe));
    let mut service = DeadlineLayer::default().layer(limit.layer(service));
    for _ in 0..3 {
        let called = service.ready().await.unwrap().call(post());
        assert!(called.await.is_ok());
    }
    assert_eq!((handle.calls(), handle.in_flight()), (3, 0));

    let connect = tower::service_fn(|()| async { Ok::<_, BoxError>("connected") });
    let (probe, handle) = Probe::new(connect);
    let mut connector = ConnectTimeoutLayer::default().layer(probe);
    let called = connector.ready().await.unwrap().call(());
    assert!(called.await.is_ok());
    assert_eq!(handle.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_makes_the_bounds_not_ready() {
    let (mock, mut server) = mock::pair::<Request<_>, Res>();
    server.allow(0);
    let service = TimeoutLayer::default().layer(WitnessLayer::new().layer(mock));
    let mut service = task::spawn(DeadlineLayer::default().layer(service));
    let poll = |cx: &mut Context<'_>, mut service: Pin<&mut _>| {
        Service::<Req>::poll_ready(&mut *service, cx)
    };
    assert_pending!(service.enter(poll));
    server.allow(1);
    assert!(service.is_woken());
    assert_ready_ok!(service.enter(poll));
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_passes_through() {
    let (mock, mut server) = mock::pair::<Request<_>, Res>();
    server.send_error("the worker is closed");
    let service = TimeoutLayer::default().layer(WitnessLayer::new().layer(mock));
    let mut service = DeadlineLayer::default().layer(service);
    let error = ServiceExt::<Req>::ready(&mut service).await.unwrap_err();
    assert_eq!(error.to_string(), "the worker is closed");
}

#[tokio::test]
async fn the_whole_can_be_boxed_and_shared() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    fn sent<T: Send + Sync + 'static>(_: &T) {}

    let limit = ConnectionLimitLayer::builder(1).build().unwrap();
    let service = TimeoutLayer::default().layer(WitnessLayer::new().layer(Echo));
    let service = DeadlineLayer::default().layer(limit.layer(service));
    shared(&service);
    let boxed = tower::util::BoxCloneSyncService::new(service);
    let response = boxed.oneshot(post()).await.unwrap();
    sent(response.body());
}
