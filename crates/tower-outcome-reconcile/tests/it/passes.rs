//! What is not unknown passes as it is, and so does what has no name to ask by.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::Request;
use http_body_util::Full;
use tower::{Layer, ServiceExt, service_fn};
use tower_outcome_core::{BoxError, CallReport, Failure, Reason, Stage, StageStamp, WrongOrder};
use tower_outcome_reconcile::{Finding, Inquiry, OperationId, ReconcileLayer, Reconciled};

use crate::support::*;

async fn passes(request: Req, response: Res) -> Reply {
    let script = Script::new([Say::Applied]);
    let (service, mut server) = pair(builder(script.clone()));
    let call = start(&service, request);
    server.respond(response).await;
    let result = call.await.unwrap();
    assert_eq!(script.times(), 0);
    assert!(Reconciled::in_result(&result).is_none());
    assert!(CallReport::in_result(&result).is_none());
    result
}

#[tokio::test(start_paused = true)]
async fn a_success_a_refusal_and_what_may_be_repeated_pass_untouched() {
    for code in [200, 201, 400, 401, 404, 501] {
        let response = passes(order(), status(code)).await.unwrap();
        assert_eq!(response.status(), code);
        assert_eq!(text(response).await, code.to_string());
    }
    let get = Request::get("http://venue.test/orders");
    let get = get.header("x-order-id", "order-1");
    let get = get.body(Full::default()).unwrap();
    assert_eq!(passes(get, status(503)).await.unwrap().status(), 503);
    let mut keyed = order();
    let headers = keyed.headers_mut();
    headers.insert("idempotency-key", "key-1".parse().unwrap());
    assert_eq!(passes(keyed, status(503)).await.unwrap().status(), 503);
}

#[tokio::test(start_paused = true)]
async fn what_was_provably_not_applied_is_not_asked_about() {
    let script = Script::new([Say::Applied]);
    let (service, mut server) = pair(builder(script.clone()));
    let call = start(&service, order());
    server
        .fail(Failure::not_sent(Reason::Transport, "no connection").into())
        .await;
    let error = call.await.unwrap().unwrap_err();
    assert!(Failure::of(&*error).unwrap().outcome().is_retryable());
    assert_eq!(script.times(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_name_is_not_asked_about() {
    let nameless = Request::post("http://venue.test/orders");
    let nameless = nameless.body(Full::from("buy 100")).unwrap();
    assert_eq!(passes(nameless, status(503)).await.unwrap().status(), 503);
}

#[tokio::test(start_paused = true)]
async fn a_name_in_the_extensions_goes_before_the_header() {
    let script = Script::new([Say::Applied]);
    let (service, mut server) = pair(builder(script.clone()));
    let mut request = order();
    let extensions = request.extensions_mut();
    extensions.insert(OperationId::from_static("in the body"));
    let call = start(&service, request);
    server.fail(reset()).await;
    assert!(call.await.unwrap().is_ok());
    assert_eq!(script.asked()[0].1.id().as_str(), Some("in the body"));
}

#[tokio::test(start_paused = true)]
async fn a_closure_decides_which_requests_are_asked_about() {
    let script = Script::new([Say::Applied]);
    let builder = builder(script.clone()).identify(|head| {
        let is_order = head.uri.path() == "/orders";
        is_order.then(|| OperationId::from_static("by path"))
    });
    let (service, mut server) = pair(builder);
    let call = start(&service, order());
    server.fail(reset()).await;
    assert!(call.await.unwrap().is_ok());
    let mut other = order();
    *other.uri_mut() = "http://venue.test/transfers".parse().unwrap();
    let call = start(&service, other);
    server.fail(reset()).await;
    assert!(call.await.unwrap().is_err());
    assert_eq!(script.times(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_async_closure_of_an_inquiry_is_a_reconciler() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let layer = ReconcileLayer::new(move |inquiry: Inquiry| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            assert_eq!(inquiry.number(), 1);
            Ok::<_, BoxError>(Finding::applied())
        }
    });
    let below = service_fn(|_: Req| async { Err::<Res, BoxError>(reset()) });
    let mut request = order();
    let extensions = request.extensions_mut();
    extensions.insert(OperationId::from_static("order-1"));
    let response = layer.layer(below).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn below_a_layer_that_its_inquiries_need_it_refuses() {
    for above in [
        Stage::AuthRefresh,
        Stage::RateLimit,
        Stage::Sign,
        Stage::Timeout,
        Stage::Witness,
        Stage::Reconcile,
    ] {
        let (service, server) = pair(builder(Script::new([Say::Applied])));
        let mut request = order();
        let stamp = StageStamp::new(above);
        let _ = stamp.leave(request.extensions_mut());
        let error = service.oneshot(request).await.unwrap_err();
        let order = WrongOrder::of(&*error).unwrap();
        assert_eq!((order.above(), order.below()), (above, Stage::Reconcile));
        server.expect_no_more().await;
    }
}
