//! A record that is found answers the caller.

use http::StatusCode;
use tower_outcome_core::{CallReport, Delivery, Outcome, Reason, SettledBy};
use tower_outcome_reconcile::{AfterInquiry, Finding, How, Resolution};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn what_was_applied_is_a_success_with_the_record_as_its_answer() {
    let script = Script::new([Say::Applied]);
    let (result, took) = lost(builder(script.clone())).await;
    assert!(CallReport::outcome_of(&result).is_success());
    let call = CallReport::in_result(&result).unwrap();
    assert_eq!(call.settled_by(), Some(SettledBy::Inquiry));
    assert_eq!(call.delivery(), Delivery::Answered);
    let report = report(&result);
    assert_eq!(report.how(), Some(How::Found));
    assert_eq!(report.reason(), Reason::Transport);
    assert_eq!(report.inquiries(), 1);
    assert_eq!(took.as_millis(), 500);
    assert_eq!(text(result.unwrap()).await, "found");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_says_nothing_is_asked_about_too() {
    let (service, mut server) = pair(builder(Script::new([Say::Applied])));
    let call = start(&service, order());
    server.respond(status(503)).await;
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(text(response).await, "found");
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_refusal_is_permanent_and_kept() {
    let (result, _) = lost(builder(Script::new([Say::Rejected]))).await;
    let expected = Outcome::Permanent {
        reason: Reason::Rejected,
    };
    assert_eq!(CallReport::outcome_of(&result), expected);
    let error = result.unwrap_err();
    let after = AfterInquiry::of(&*error).unwrap();
    assert_eq!(&after.record().unwrap().body()[..], b"rejected");
    assert_eq!(after.report().how(), Some(How::Refused));
    let chain = format!("{error:#}");
    assert!(chain.ends_with("connection reset"), "{chain}");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_denies_may_be_sent_again() {
    let script = Script::new([Say::Denied]);
    let (result, _) = lost(builder(script)).await;
    let call = CallReport::in_result(&result).unwrap();
    assert!(call.outcome().is_retryable());
    assert!(call.delivery().proves_not_applied());
    assert_eq!(report(&result).how(), Some(How::Denied));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_said_nothing_is_kept_in_the_failure() {
    let (service, mut server) = pair(builder(Script::new([Say::Denied])));
    let call = start(&service, order());
    server.respond(status(502)).await;
    let error = call.await.unwrap().unwrap_err();
    let after = AfterInquiry::of(&*error).unwrap();
    assert_eq!(after.answer().unwrap().status(), 502);
}

#[tokio::test(start_paused = true)]
async fn what_is_pending_is_asked_again_until_it_is_decided() {
    let script = Script::new([Say::Pending, Say::Pending, Say::Applied]);
    let (result, took) = lost(builder(script.clone())).await;
    assert!(result.is_ok());
    assert_eq!(script.times(), 3);
    assert_eq!(took.as_millis(), 500 + 1000 + 2000);
}

#[tokio::test(start_paused = true)]
async fn an_inquiry_sees_the_request_and_how_its_attempt_ended() {
    let script = Script::new([Say::Applied]);
    let (result, _) = lost(builder(script.clone())).await;
    assert!(result.is_ok());
    let (asked, inquiry) = script.asked().remove(0);
    assert_eq!(inquiry.id().as_str(), Some("order-1"));
    assert_eq!(inquiry.method(), Some(&http::Method::POST));
    assert_eq!(inquiry.uri().unwrap().query(), Some("symbol=A"));
    assert_eq!(inquiry.headers().unwrap()["x-order-id"], "order-1");
    assert_eq!(inquiry.delivery(), Delivery::MaybeSent);
    assert!(inquiry.outcome().is_unknown());
    assert_eq!(inquiry.number(), 1);
    assert!(inquiry.deadline() > asked);
    assert!(!inquiry.is_received());
}

#[tokio::test(start_paused = true)]
async fn where_only_ids_are_kept_an_inquiry_has_no_head() {
    let script = Script::new([Say::Applied]);
    let (result, _) = lost(builder(script.clone()).keep(tower_outcome_reconcile::Keep::Id)).await;
    assert!(result.is_ok());
    assert!(script.asked()[0].1.head().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_logged_of_an_answer_a_record_or_an_inquiry_is_no_secret() {
    let script = Script::new([Say::Rejected]);
    let (service, mut server) = pair(builder(script.clone()));
    let mut request = order();
    *request.uri_mut() = "http://venue.test/orders?key=secret".parse().unwrap();
    let secret = http::HeaderValue::from_static("secret");
    request.headers_mut().insert("x-key", secret.clone());
    let call = start(&service, request);
    let mut answer = status(503);
    answer.headers_mut().insert("set-cookie", secret);
    server.respond(answer).await;
    let error = call.await.unwrap().unwrap_err();
    let after = format!("{:?}", AfterInquiry::of(&*error).unwrap());
    assert!(
        after.contains("503") && after.contains("set-cookie"),
        "{after}"
    );
    let inquiry = format!("{:?}", script.asked()[0].1);
    assert!(
        inquiry.contains("/orders") && inquiry.contains("x-key"),
        "{inquiry}"
    );
    let found = Finding::Applied(record("secret"));
    let told = Resolution::Rejected(record("secret"));
    for shown in [
        after,
        inquiry,
        format!("{found:?} {told:?}"),
        format!("{error:?}"),
    ] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}
