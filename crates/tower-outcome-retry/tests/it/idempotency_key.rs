//! The key by which a server recognises a repeat.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderName, HeaderValue, StatusCode};
use tower::{Layer, ServiceExt};
use tower_outcome_core::{CallReport, Failure};
use tower_outcome_retry::{IdempotencyKey, IdempotencyKeyLayer};

use crate::support::*;

fn numbered() -> IdempotencyKeyLayer {
    let next = AtomicU64::new(1);
    IdempotencyKeyLayer::new(move || HeaderValue::from(next.fetch_add(1, Ordering::Relaxed)))
}

#[tokio::test(start_paused = true)]
async fn one_key_serves_all_attempts_of_a_call() {
    let (retry, mut server) = pair(&steady().build().unwrap());
    let call = tokio::spawn(numbered().layer(retry).oneshot(post()));
    for _ in 0..2 {
        let head = server.fail(reset()).await;
        assert_eq!(head.headers["idempotency-key"], "1");
    }
    let head = server.answer(201).await;
    assert_eq!(head.headers["idempotency-key"], "1");
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let key = response.extensions().get::<IdempotencyKey>().unwrap();
    assert_eq!(key.value(), "1");
}

#[tokio::test(start_paused = true)]
async fn each_call_has_a_key_of_its_own() {
    let (retry, mut server) = pair(&steady().build().unwrap());
    let service = numbered().layer(retry);
    for key in ["1", "2"] {
        let call = tokio::spawn(service.clone().oneshot(post()));
        let head = server.answer(201).await;
        assert_eq!(head.headers["idempotency-key"], key);
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_key_wins() {
    let (retry, mut server) = pair(&steady().build().unwrap());
    let call = tokio::spawn(numbered().layer(retry).oneshot(keyed_post()));
    let head = server.answer(201).await;
    assert_eq!(head.headers["idempotency-key"], "order-1");
    assert!(
        call.await
            .unwrap()
            .unwrap()
            .extensions()
            .get::<IdempotencyKey>()
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_key_of_the_callers_is_none() {
    let (retry, mut server) = pair(&steady().build().unwrap());
    let mut request = post();
    request
        .headers_mut()
        .insert("idempotency-key", "".parse().unwrap());
    let call = tokio::spawn(numbered().layer(retry).oneshot(request));
    let head = server.answer(201).await;
    assert_eq!(head.headers["idempotency-key"], "1");
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_question_needs_no_key() {
    let (retry, mut server) = pair(&steady().build().unwrap());
    let call = tokio::spawn(numbered().layer(retry).oneshot(get()));
    let head = server.answer(200).await;
    assert!(!head.headers.contains_key("idempotency-key"));
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_key_is_handed_back_with_a_failure() {
    let (retry, mut server) = pair(&steady().max_attempts(1).build().unwrap());
    let call = tokio::spawn(numbered().layer(retry).oneshot(post()));
    server.fail(reset()).await;
    let error = call.await.unwrap().unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.idempotency_key().unwrap(), "1");
    assert!(failure.outcome().is_retryable(), "with the same key");
}

#[tokio::test(start_paused = true)]
async fn without_a_retry_below_the_failure_says_what_is_proven() {
    let (mock, mut handle) = tower_test::mock::pair::<Req, Res>();
    let call = tokio::spawn(numbered().layer(mock).oneshot(post()));
    let (_, send) = handle.next_request().await.unwrap();
    send.send_error(reset());
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_retryable());
}

#[tokio::test(start_paused = true)]
async fn the_header_can_have_another_name() {
    let name = HeaderName::from_static("x-request-id");
    let (retry, mut server) = pair(&steady().build().unwrap());
    let call = tokio::spawn(numbered().header(name).layer(retry).oneshot(post()));
    let head = server.answer(201).await;
    assert_eq!(head.headers["x-request-id"], "1");
    call.await.unwrap().unwrap();
}

#[cfg(feature = "uuid")]
#[tokio::test(start_paused = true)]
async fn random_keys_differ_and_have_the_form_of_a_uuid() {
    let (retry, mut server) = pair(&steady().build().unwrap());
    let service = IdempotencyKeyLayer::random().layer(retry);
    let mut keys = Vec::new();
    for _ in 0..2 {
        let call = tokio::spawn(service.clone().oneshot(post()));
        let head = server.answer(201).await;
        keys.push(head.headers["idempotency-key"].to_str().unwrap().to_owned());
        call.await.unwrap().unwrap();
    }
    assert_ne!(keys[0], keys[1]);
    assert!(
        keys.iter()
            .all(|key| key.len() == 36 && key.as_bytes()[14] == b'4')
    );
}
