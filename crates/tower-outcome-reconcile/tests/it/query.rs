//! Asking through the stack below.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_outcome_core::{CallContext, CallReport, Deadline, Priority, Stage};
use tower_outcome_reconcile::{ByQuery, Finding, How, Inquiry, OperationId, Reconciler};
use tower_test::mock::Mock;

use crate::support::*;

fn by_query() -> impl Reconciler<Mock<Req, Res>, Full<Bytes>> {
    ByQuery::new(
        |inquiry: &Inquiry| {
            let id = inquiry.id().to_path_segment();
            Request::get(format!("http://venue.test/orders/{id}")).body(Full::default())
        },
        |_: &Inquiry, answer: Response<Bytes>| match answer.status().as_u16() {
            200 => Finding::Applied(answer),
            404 => Finding::NotFound,
            _ => Finding::Unclear,
        },
    )
}

#[tokio::test(start_paused = true)]
async fn the_question_goes_through_the_stack_with_a_context_and_a_priority_of_its_own() {
    let (service, mut server) = pair(builder(by_query()).priority(Priority::new(7)));
    let mut request = order();
    let context = CallContext::with_deadline(Some(Deadline::after(30 * SECOND)));
    context.put(request.extensions_mut());
    context.begin_attempt();
    let call = start(&service, request);
    server.fail(reset()).await;
    let question = server.respond(status(200)).await;
    assert_eq!(question.uri.path(), "/orders/order-1");
    assert_eq!(Priority::of(&question.extensions), Priority::new(7));
    let own = CallContext::of(&question.extensions).unwrap();
    assert_eq!(own.attempts(), 1);
    let remaining = own
        .deadline()
        .unwrap()
        .remaining(tokio::time::Instant::now());
    assert_eq!(remaining, 5 * SECOND);
    // No mark of the layers above the call: what is below is passed anew.
    assert!(Stage::Retry.check(&question.extensions).is_ok());
    let result = call.await.unwrap();
    assert_eq!(report(&result).how(), Some(How::Found));
    assert_eq!(
        context.attempts(),
        1,
        "the question is no attempt of the call"
    );
    assert_eq!(text(result.unwrap()).await, "200");
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_the_question_is_never_what_becomes_of_the_call() {
    let (service, mut server) = pair(builder(by_query()));
    let call = start(&service, order());
    drop(service);
    server.respond(status(504)).await;
    // A dead session, a throttled and a broken server, a lost connection: none of it is evidence.
    server.respond(status(401)).await;
    server.respond(status(429)).await;
    server.respond(status(500)).await;
    server.fail(reset()).await;
    server.respond(status(404)).await;
    let (_, send) = server.attempt().await;
    send.send_response(status(200));
    let result = call.await.unwrap();
    let report = report(&result);
    assert_eq!((report.failures(), report.misses()), (4, 1));
    assert!(CallReport::outcome_of(&result).is_success());
    server.expect_no_more().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_longer_than_is_read_is_no_evidence() {
    let query = ByQuery::new(
        |_: &Inquiry| Request::get("http://venue.test/orders").body(Full::default()),
        |_: &Inquiry, answer: Response<Bytes>| Finding::Applied(answer),
    );
    let (service, mut server) = pair(builder(query.limit(2)));
    let call = start(&service, order());
    server.fail(reset()).await;
    server.respond(status(200)).await;
    let short = Response::new(Full::from("ok"));
    server.respond(short).await;
    let result = call.await.unwrap();
    assert_eq!(report(&result).failures(), 1);
    assert_eq!(text(result.unwrap()).await, "ok");
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_is_never_ready_costs_an_inquiry_its_time_and_no_more() {
    let (service, mut server) = pair(builder(by_query()));
    let call = start(&service, order());
    let (_, send) = server.attempt().await;
    server.0.allow(0);
    send.send_error(reset());
    tokio::time::sleep(6 * SECOND).await;
    server.0.allow(10);
    server.respond(status(200)).await;
    let result = call.await.unwrap();
    assert_eq!(report(&result).failures(), 1);
    assert!(report(&result).took() < Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn the_question_is_about_no_other_operation_whatever_the_id_holds() {
    for (id, path) in [
        ("ord\u{e9}r", "/orders/ord%C3%A9r"),
        ("order-1#2", "/orders/order-1%232"),
        ("x?y", "/orders/x%3Fy"),
        ("a/../b", "/orders/a%2F%2E%2E%2Fb"),
        ("..", "/orders/%2E%2E"),
        ("50 %", "/orders/50%20%25"),
    ] {
        let (service, mut server) = pair(builder(by_query()));
        let mut request = order();
        let extensions = request.extensions_mut();
        extensions.insert(OperationId::new(id).unwrap());
        let call = start(&service, request);
        server.fail(reset()).await;
        let question = server.respond(status(200)).await;
        assert_eq!(question.uri.path(), path);
        assert_eq!(question.uri.query(), None);
        assert!(call.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_id_is_no_name_to_ask_by() {
    let script = Script::new([Say::Applied]);
    let (service, mut server) = pair(builder(script.clone()));
    let mut request = order();
    let extensions = request.extensions_mut();
    extensions.insert(OperationId::from_static(""));
    let call = start(&service, request);
    server.fail(reset()).await;
    assert!(call.await.unwrap().is_err());
    assert_eq!(script.times(), 0);
}
