//! How the budget limits retries.

use http::StatusCode;
use tower_outcome_core::HttpClassifier;
use tower_outcome_retry::{Budget, RetryLayer};

use crate::support::*;

fn layer(budget: &Budget) -> RetryLayer<HttpClassifier> {
    steady().budget(budget.clone()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_returns_the_answer_it_could_not_retry() {
    let budget = Budget::ratio(10.0, 1).unwrap();
    let (service, mut server) = pair(&layer(&budget));
    let call = start(&service, get());
    server.answer(500).await;
    server.answer(502).await;
    let result = finish(call).await;
    assert_eq!(code(&result), StatusCode::BAD_GATEWAY);
    assert_eq!(not_retried(&result), "budget_spent");
    assert_eq!(body(result).await, "502", "and the body with it");
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_still_waiting_have_taken_their_tokens() {
    let budget = Budget::ratio(10.0, 1).unwrap();
    let (service, mut server) = pair(&layer(&budget));
    let waiting = start(&service, get());
    server.answer(503).await;
    tokio::task::yield_now().await;
    let refused = start(&service, get());
    server.answer(503).await;
    assert_eq!(not_retried(&finish(refused).await), "budget_spent");
    server.answer(200).await;
    finish(waiting).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_succeeds_gives_its_tokens_back() {
    let budget = Budget::new();
    let (service, mut server) = pair(&layer(&budget));
    let call = start(&service, get());
    server.answer(503).await;
    tokio::task::yield_now().await;
    assert_eq!(budget.remaining(), Some(486));
    server.answer(200).await;
    finish(call).await.unwrap();
    assert_eq!(budget.remaining(), Some(500));
}

#[tokio::test(start_paused = true)]
async fn retries_that_fail_stay_spent_and_clean_successes_pay_them_back() {
    let budget = Budget::new();
    let (service, mut server) = pair(&layer(&budget));
    let call = start(&service, get());
    for _ in 0..3 {
        server.answer(503).await;
    }
    finish(call).await.unwrap();
    assert_eq!(budget.remaining(), Some(500 - 2 * 14));
    let call = start(&service, get());
    server.answer(200).await;
    finish(call).await.unwrap();
    assert_eq!(budget.remaining(), Some(500 - 2 * 14 + 1));
}

#[tokio::test(start_paused = true)]
async fn resends_of_what_never_left_draw_on_their_own_quota() {
    let budget = Budget::builder().unsent(1).build().unwrap();
    let (service, mut server) = pair(&layer(&budget));
    let call = start(&service, post());
    server.fail(unsent()).await;
    server.fail(unsent()).await;
    let result = finish(call).await;
    assert_eq!(not_retried(&result), "budget_spent");
    assert_eq!(budget.remaining(), Some(500));
}

#[tokio::test(start_paused = true)]
async fn each_partition_has_its_own_budget() {
    let spent = Budget::ratio(10.0, 1).unwrap();
    let other = spent.clone();
    let fresh = Budget::new();
    let layer = steady()
        .budget_by(move |head| {
            if head.method == "GET" {
                other.clone()
            } else {
                fresh.clone()
            }
        })
        .build()
        .unwrap();
    let (service, mut server) = pair(&layer);
    let call = start(&service, get());
    server.answer(503).await;
    server.answer(503).await;
    assert_eq!(not_retried(&finish(call).await), "budget_spent");
    let call = start(&service, delete());
    for _ in 0..2 {
        server.answer(503).await;
    }
    server.answer(200).await;
    assert_eq!(code(&finish(call).await), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_ratio_bounds_retries_that_succeed_as_well() {
    let budget = Budget::ratio(10.0, 5).unwrap();
    let (service, mut server) = pair(&layer(&budget));
    let mut retried = 0;
    for _ in 0..20 {
        let call = start(&service, get());
        server.answer(503).await;
        tokio::task::yield_now().await;
        if !call.is_finished() {
            retried += 1;
            server.answer(200).await;
        }
        finish(call).await.unwrap();
    }
    assert_eq!(retried, 5);
}

async fn body(result: Outcomes) -> String {
    use http_body_util::BodyExt;

    let body = result.unwrap().into_body().collect().await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}
