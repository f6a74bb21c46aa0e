//! Below a Retry: what is found is the answer, and what is proven not applied is sent again.

use tokio::time::timeout;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_outcome::{
    CallReport, Outcome, Reason, Reconciled, Repeatable, RepeatableBecause, Resolution,
    Resolutions, reconcile::How,
};
use tower_outcome_testkit::{Fault, Point};

use super::*;

const APPLIED_AND_CLOSED: Fault = Fault::Close { at: Point::Applied };
const READ_AND_CLOSED: Fault = Fault::Close { at: Point::Body };

#[tokio::test]
async fn an_order_whose_answer_was_lost_is_found_and_not_sent_again() {
    let venue = venue(index().misses(2));
    let faults = Faults::new([APPLIED_AND_CLOSED]);
    let client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .layer(reconcile(by_query(&venue)).build().unwrap())
        .service(below(faults));
    let result = client.oneshot(order(&venue, "order-1")).await;
    assert!(CallReport::outcome_of(&result).is_success());
    let report = Reconciled::in_result(&result).unwrap();
    assert_eq!(report.how(), Some(How::Found));
    assert_eq!((report.inquiries(), report.misses()), (3, 2));
    assert_eq!(seen(&venue, "order-1"), (1, 1));
    let record = text(result.unwrap()).await;
    assert_eq!(record, r#"{"id":"order-1","status":"applied","times":1}"#);
}

#[tokio::test]
async fn an_order_that_was_not_applied_is_sent_again_by_the_retry_above_and_applied_once() {
    let venue = venue(index());
    let faults = Faults::new([READ_AND_CLOSED]);
    let client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .layer(reconcile(by_query(&venue)).build().unwrap())
        .service(below(faults));
    let result = client.oneshot(order(&venue, "order-1")).await;
    let report = CallReport::in_result(&result).unwrap();
    assert!(report.outcome().is_success());
    assert_eq!(report.attempts(), 2);
    assert_eq!(seen(&venue, "order-1"), (2, 1));
    assert_eq!(result.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn without_the_layer_nobody_knows_and_nothing_is_sent_again() {
    for fault in [APPLIED_AND_CLOSED, READ_AND_CLOSED] {
        let venue = venue(index());
        let client = retry().build().unwrap();
        let client = client.layer(below(Faults::new([fault])));
        let result = client.oneshot(order(&venue, "order-1")).await;
        assert!(CallReport::outcome_of(&result).is_unknown());
        assert_eq!(seen(&venue, "order-1").0, 1);
    }
}

#[tokio::test]
async fn a_copy_that_lags_longer_than_anybody_asks_leaves_it_unknown_and_unsent() {
    let venue = venue(index().misses(1000));
    let schedule = Schedule::new().first(MILLI).cap(MILLI).deadline(60 * MILLI);
    // Whoever knows of the lag sets the least age above it.
    let layer = reconcile(by_query(&venue))
        .schedule(schedule)
        .min_age(59 * MILLI)
        .misses(1001);
    let client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .layer(layer.build().unwrap())
        .service(below(Faults::new([APPLIED_AND_CLOSED])));
    let result = client.oneshot(order(&venue, "order-1")).await;
    let unknown = Outcome::Unknown {
        reason: Reason::Transport,
    };
    assert_eq!(CallReport::outcome_of(&result), unknown);
    assert!(Reconciled::in_result(&result).unwrap().misses() > 0);
    assert_eq!(seen(&venue, "order-1"), (1, 1));
}

fn repeatable(venue: &Venue) -> Request<Body> {
    let mut request = order(venue, "order-1");
    let because = RepeatableBecause::Marked;
    request.extensions_mut().insert(Repeatable::Yes(because));
    request
}

#[tokio::test]
async fn a_duplicate_after_an_unknown_attempt_is_the_success_of_that_one_however_the_copy_lags() {
    let venue = venue(index().misses(5));
    let client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .layer(reconcile(by_query(&venue)).misses(1).build().unwrap())
        .service(below(Faults::new([APPLIED_AND_CLOSED])));
    let result = client.oneshot(repeatable(&venue)).await;
    let report = CallReport::in_result(&result).unwrap();
    assert!(report.outcome().is_success());
    assert_eq!(report.attempts(), 2);
    let report = Reconciled::in_result(&result).unwrap();
    assert_eq!((report.reason(), report.misses()), (Reason::Duplicate, 5));
    assert_eq!(seen(&venue, "order-1"), (2, 1));
}

#[tokio::test]
async fn an_acceptance_on_the_stream_cancels_the_resend_that_is_scheduled() {
    let venue = venue(index());
    let lost = Fault::Status {
        code: 503,
        applied: true,
        retry_after: Some("3600".to_owned()),
        headers: Vec::new(),
        body: None,
    };
    let resolutions = Resolutions::new();
    let layer = reconcile(by_query(&venue)).resolutions(resolutions.clone());
    let hints = tower_outcome::Hints::new().longest(7200 * SECOND);
    let client = ServiceBuilder::new()
        .layer(retry().hints(hints).build().unwrap())
        .layer(layer.build().unwrap())
        .service(below(Faults::new([lost])));
    let call = tokio::spawn(client.oneshot(repeatable(&venue)));
    // The venue has applied it, and Retry sleeps for an hour.
    while seen(&venue, "order-1").1 == 0 {
        tokio::task::yield_now().await;
    }
    let id = tower_outcome::OperationId::from_static("order-1");
    let accepted = Response::new(Bytes::from_static(b"accepted"));
    assert!(resolutions.resolve(&id, Resolution::Applied(accepted)));
    let result = timeout(60 * SECOND, call).await.unwrap().unwrap();
    let report = CallReport::in_result(&result).unwrap();
    assert_eq!(report.attempts(), 1);
    assert_eq!(text(result.unwrap()).await, "accepted");
    assert_eq!(seen(&venue, "order-1"), (1, 1));
    assert_eq!(resolutions.under_way(), 0);
}

#[tokio::test]
async fn a_body_that_breaks_off_after_a_success_is_unknown_and_not_asked_about() {
    let venue = venue(index());
    let fault = Fault::Close {
        at: Point::Response,
    };
    let client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .layer(reconcile(by_query(&venue)).build().unwrap())
        .service(below(Faults::new([fault])));
    let response = client.oneshot(order(&venue, "order-1")).await.unwrap();
    let error = response.into_body().collect().await.unwrap_err();
    let failure = tower_outcome::Failure::of(&*error).unwrap();
    assert!(failure.outcome().is_unknown());
    assert_eq!(seen(&venue, "order-1"), (1, 1));
}

/// A call that is lost, refused as a duplicate, asked about and told, polled so often and dropped. Returns
/// whether it had ended.
async fn dropped_after(polls: usize) -> bool {
    let answers = Arc::new(Mutex::new(VecDeque::from([503, 409])));
    let below = tower::service_fn(move |_: Request<Body>| {
        let status = answers.lock().unwrap().pop_front().unwrap_or(200);
        async move {
            tokio::time::sleep(10 * MILLI).await;
            let mut response = Response::new(Body::from("answer"));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            let is_duplicate = status == 409;
            if is_duplicate {
                let headers = response.headers_mut();
                headers.insert("x-duplicate", http::HeaderValue::from_static("1"));
            }
            Ok::<_, BoxError>(response)
        }
    });
    let resolutions = Resolutions::new();
    let nobody = |_: Inquiry| async { Ok::<_, BoxError>(Finding::NotFound) };
    let layer = reconcile(nobody).resolutions(resolutions.clone());
    let budget = tower_outcome::RetryBudget::new();
    let fresh = format!("{budget:?}");
    let backoff = Backoff::new().base(50 * MILLI).jitter(Jitter::None);
    let mut client = ServiceBuilder::new()
        .layer(
            retry()
                .backoff(backoff)
                .budget(budget.clone())
                .build()
                .unwrap(),
        )
        .layer(layer.build().unwrap())
        .service(below);
    let mut request = Request::post("http://venue.test/orders")
        .header(Ledger::OPERATION_HEADER, "order-1")
        .body(Body::from("buy 100"))
        .unwrap();
    let because = RepeatableBecause::Marked;
    request.extensions_mut().insert(Repeatable::Yes(because));
    let call = tower::Service::call(client.ready().await.unwrap(), request);
    let mut call = Box::pin(call);
    let mut ended = false;
    for poll in 0..polls {
        if poll == 40 {
            let id = tower_outcome::OperationId::from_static("order-1");
            assert!(resolutions.resolve(&id, Resolution::applied()));
        }
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        if call.as_mut().poll(&mut cx).is_ready() {
            ended = true;
            break;
        }
        assert_eq!(resolutions.under_way(), 1, "at poll {poll}");
        tokio::time::advance(5 * MILLI).await;
    }
    drop(call);
    assert_eq!(resolutions.under_way(), 0, "after {polls} polls");
    if !ended && polls < 10 {
        assert_eq!(format!("{budget:?}"), fresh, "after {polls} polls");
    }
    ended
}

#[tokio::test(start_paused = true)]
async fn whenever_a_call_is_dropped_that_waits_to_be_sent_again_its_watch_goes_with_it() {
    let mut polls = 0;
    while !dropped_after(polls).await {
        polls += 1;
        assert!(polls < 1000, "the call never ends");
    }
    assert!(polls > 30, "every state was met: {polls}");
}
