//! A call that is dropped leaves nothing behind.

use std::{future::poll_fn, time::Duration};

use tokio_test::task;
use tower::{Layer, Service, limit::ConcurrencyLimit, service_fn};
use tower_outcome_core::BoxError;
use tower_outcome_reconcile::{ByQuery, Finding, Inquiry};
use tower_outcome_reconcile::{Counts, Ended, How, ReconcileLayer, Reconciler, Resolutions};

use crate::support::*;

/// Asks through the stack, and finds it at the third time.
fn by_query() -> impl Reconciler<ConcurrencyLimit<Slow>, http_body_util::Full<bytes::Bytes>> {
    ByQuery::new(
        |_: &Inquiry| http::Request::get("http://venue.test/orders/1").body(Default::default()),
        |inquiry: &Inquiry, answer| {
            if inquiry.number() < 3 {
                Finding::NotFound
            } else {
                Finding::Applied(answer)
            }
        },
    )
}

/// Takes 20 ms, and loses orders.
#[derive(Clone)]
struct Slow;

impl Service<Req> for Slow {
    type Response = Res;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Res, BoxError>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if request.method() == http::Method::GET {
                Ok(status(200))
            } else {
                Err(reset())
            }
        })
    }
}

/// A call that is polled so often and dropped. Returns whether it had ended.
async fn dropped_after(polls: usize) -> bool {
    let resolutions = Resolutions::new();
    let counts = Counts::new();
    let layer = ReconcileLayer::builder(by_query())
        .id_header(http::HeaderName::from_static("x-order-id"))
        .resolutions(resolutions.clone())
        .observer(counts.clone())
        .build()
        .unwrap();
    let mut limited = ConcurrencyLimit::new(Slow, 1);
    let mut service = layer.layer(limited.clone());
    poll_fn(|cx| Service::<Req>::poll_ready(&mut service, cx))
        .await
        .unwrap();
    let mut call = task::spawn(service.call(order()));
    assert_eq!(resolutions.under_way(), 1);
    let mut ended = false;
    for _ in 0..polls {
        if call.poll().is_ready() {
            ended = true;
            break;
        }
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    drop(call);
    assert_eq!(resolutions.under_way(), 0, "after {polls} polls");
    drop(service);
    // The place below is free again.
    poll_fn(|cx| limited.poll_ready(cx)).await.unwrap();
    let balance = counts.all_resolved() + counts.unresolved(Ended::Dropped);
    assert_eq!(counts.unknown(), balance, "after {polls} polls");
    if ended {
        assert_eq!(counts.resolved(How::Found), 1);
        assert_eq!(counts.inquiries(), 3);
    }
    ended
}

#[tokio::test(start_paused = true)]
async fn whenever_a_call_is_dropped_no_key_no_inquiry_and_no_permit_is_left() {
    let mut polls = 0;
    while !dropped_after(polls).await {
        polls += 1;
        assert!(polls < 1000, "the call never ends");
    }
    assert!(polls > 100, "every state was met: {polls}");
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_after_a_call_is_dropped() {
    let script = Script::new([Say::Missing]);
    let (service, mut server) = pair(builder(script.clone()));
    let call = start(&service, order());
    server.fail(reset()).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(script.times(), 1);
    call.abort();
    tokio::time::sleep(100 * SECOND).await;
    assert_eq!(script.times(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_finished_future_that_is_polled_again_waits_for_ever() {
    let below = service_fn(|_: Req| async { Ok::<Res, BoxError>(status(200)) });
    let layer = builder(Script::new([Say::Applied])).build().unwrap();
    let mut call = task::spawn(layer.layer(below).call(order()));
    assert!(call.poll().is_ready());
    assert!(call.poll().is_pending());
}
