//! An inner service that is not ready at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tower::{Layer, ServiceExt, limit::ConcurrencyLimitLayer};
use tower_outcome_auth_refresh::{AuthRefreshLayer, UnavailableKind};
use tower_outcome_core::Deadline;

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
