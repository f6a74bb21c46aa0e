//! A stream that repeats itself, in a stack in which attempts wait.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_outcome::{
    CallReport, Delivery, Failure, Limit, OperationId, Outcome, RateBudget, RateLimitLayer, Reason,
    Reconciled, Resolution, Resolutions, reconcile::How,
};

use super::*;

/// What a layer that knows the transport says of a connection that broke.
fn reset() -> BoxError {
    let outcome = Outcome::Unknown {
        reason: Reason::Transport,
    };
    let source = io::Error::from(io::ErrorKind::ConnectionReset);
    Failure::new(outcome, Delivery::MaybeSent, source).into()
}

#[tokio::test(start_paused = true)]
async fn a_denial_repeated_while_the_next_attempt_waits_in_the_limiter_is_no_proof_about_that() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    // The first order is lost on its way, the others only lose their answer.
    let server = service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Err::<Response<Body>, _>(reset()) }
    });
    let budget = RateBudget::builder("venue")
        .limit(Limit::sliding("requests", 1, 10 * SECOND))
        .build()
        .unwrap();
    let id = OperationId::from_static("order-1");
    let resolutions = Resolutions::new();
    let ask = |_: Inquiry| async { Ok::<_, BoxError>(Finding::applied()) };
    let layer = ReconcileLayer::builder(ask)
        .id_header(http::HeaderName::from_static(Ledger::OPERATION_HEADER))
        .resolutions(resolutions.clone());
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new())
        .layer(layer.build().unwrap())
        .layer(RateLimitLayer::new(budget))
        .service(server);
    let order = Request::post("http://venue.test/orders")
        .header(Ledger::OPERATION_HEADER, "order-1")
        .body(Body::from("buy 100"))
        .unwrap();
    let call = tokio::spawn(client.oneshot(order));

    tokio::time::sleep(100 * MILLI).await;
    assert!(resolutions.resolve(&id, Resolution::NotApplied), "true");
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(sent.load(Ordering::Relaxed), 1, "the second waits");
    assert!(resolutions.resolve(&id, Resolution::NotApplied), "again");
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_success());
    let report = Reconciled::in_result(&result).unwrap();
    assert_eq!(report.how(), Some(How::Found));
    assert_eq!(sent.load(Ordering::Relaxed), 2, "one of them was applied");
}
