//! An inner service that is not ready at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tower::{Layer, ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer};
use tower_outcome_auth_refresh::{AuthRefreshLayer, ExpiryGuardLayer, UnavailableKind};
use tower_outcome_core::{BoxError, Deadline, Delivery, Failure, Outcome, Reason};

use crate::support::*;

/// Twenty calls for two places; returns how many were done before long.
async fn twenty_calls_for_two_places(stage: &Stage) -> usize {
    let limited = ConcurrencyLimitLayer::new(2).layer(stage.venue.clone());
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(limited);
    let done = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (service, done) = (service.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                assert_eq!(service.oneshot(post()).await.unwrap().status(), 200);
                done.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    // Without a limit to it, a call that starts over and over would never let a test fail.
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    for call in calls {
        call.abort();
    }
    done.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_good_credential_is_served_after_the_wait_though_its_refresh_is_due_and_fails() {
    for into_the_window in [24, 29] {
        let lifetime = Some(MINUTE * 30);
        let stage = Stage::new(Source::new([Say::Token(lifetime), Say::Transient]));
        assert_eq!(stage.call().await, Ok(200));
        stage.pass(MINUTE * into_the_window + SECOND).await;
        assert_eq!(stage.call().await, Ok(200));
        stage.settle().await;
        assert_eq!(twenty_calls_for_two_places(&stage).await, 20);
        assert_eq!(stage.source.calls(), 2, "it is backing off");
    }
}

#[tokio::test(start_paused = true)]
async fn past_its_age_a_credential_is_served_after_the_wait() {
    let source = Source::new([Say::Token(None), Say::Never]);
    let stage = Stage::with(source, Venue::default(), |builder| builder.max_age(MINUTE));
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE).await;
    assert_eq!(twenty_calls_for_two_places(&stage).await, 20);
}

#[tokio::test(start_paused = true)]
async fn what_comes_due_during_the_wait_is_refreshed_in_the_background() {
    let stage = Stage::with(Source::endless(), Venue::default(), |builder| {
        builder.max_age(MINUTE)
    });
    stage.venue.latency(MINUTE * 2);
    let limited = ConcurrencyLimitLayer::new(1).layer(stage.venue.clone());
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(limited);
    let first = tokio::spawn(service.clone().oneshot(post()));
    stage.settle().await;
    let second = tokio::spawn(service.clone().oneshot(post()));
    stage.settle().await;
    stage.pass(MINUTE * 2).await;
    stage.settle().await;
    assert_eq!(stage.source.calls(), 2);
    for call in [first, second] {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(stage.venue.seen(), ["token-1", "token-1"]);
}

#[tokio::test(start_paused = true)]
async fn who_is_ready_after_its_deadline_waits_for_no_other_credential() {
    let stage = Stage::new(Source::tokens(MINUTE));
    stage.venue.latency(MINUTE * 2);
    let limited = ConcurrencyLimitLayer::new(1).layer(stage.venue.clone());
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(limited);
    let first = tokio::spawn(service.clone().oneshot(post()));
    stage.settle().await;
    let mut order = post();
    order.extensions_mut().insert(Deadline::after(SECOND * 30));
    let second = tokio::spawn(service.clone().oneshot(order));
    stage.settle().await;
    stage.pass(MINUTE * 2).await;
    first.await.unwrap().unwrap();
    let error = second.await.unwrap().unwrap_err();
    assert_eq!(kind(&error), UnavailableKind::Deadline);
    assert_eq!(stage.source.calls(), 1);
}

/// Sends a request that waits two minutes below, with a credential that lives for one.
async fn after_two_minutes_in_a_queue(stage: &Stage) -> Reply {
    let guard = ExpiryGuardLayer::new(stage.credentials.clone());
    let guarded = guard.layer(stage.venue.clone());
    let queue = tower::service_fn(move |request: Req| {
        let guarded = guarded.clone();
        async move {
            tokio::time::sleep(MINUTE * 2).await;
            guarded.oneshot(request).await
        }
    });
    let layer = AuthRefreshLayer::builder(stage.credentials.clone()).hands_down(true);
    let service = ServiceBuilder::new().layer(layer.build()).service(queue);
    service.oneshot(post()).await
}

#[tokio::test(start_paused = true)]
async fn what_expired_in_a_queue_below_is_not_sent_and_a_refresh_is_under_way() {
    let stage = Stage::new(Source::tokens(MINUTE));
    let error: BoxError = after_two_minutes_in_a_queue(&stage).await.unwrap_err();
    assert_eq!(kind(&error), UnavailableKind::ExpiredBelow);
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.delivery(), Delivery::NotSent);
    let unavailable = Outcome::Retryable {
        reason: Reason::AuthUnavailable,
        after: None,
    };
    assert_eq!(failure.outcome(), unavailable);
    assert!(stage.venue.seen().is_empty());
    stage.settle().await;
    assert_eq!(stage.source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_expired_in_a_queue_below_is_replaced_by_the_present_one() {
    let stage = Stage::new(Source::tokens(MINUTE));
    let credentials = stage.credentials.clone();
    tokio::spawn(async move {
        tokio::time::sleep(SECOND * 90).await;
        credentials.get(None).await.unwrap();
    });
    let response = after_two_minutes_in_a_queue(&stage).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(stage.venue.seen(), ["token-2"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_good_passes_the_guard_untouched() {
    let stage = Stage::new(Source::endless());
    let response = after_two_minutes_in_a_queue(&stage).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(stage.venue.seen(), ["token-1"]);
}
