//! A call that is dropped leaves nothing behind, and takes nothing along.

use std::{future::poll_fn, time::Duration};

use tokio_test::task;
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimit};
use tower_outcome_auth_refresh::AuthRefreshLayer;

use crate::support::*;

/// A call that meets a dead session, polled so often and dropped. Returns whether it had ended.
async fn dropped_after(polls: usize) -> bool {
    let source = Source::endless().takes(Duration::from_millis(50));
    let stage = Stage::with(source, Venue::default(), |b| b);
    assert_eq!(stage.call().await, Ok(200));
    // Past the least interval, so that a rejection starts a refresh at once.
    stage.pass(SECOND).await;
    stage.venue.reject("token-1");
    stage.venue.latency(Duration::from_millis(30));
    let mut limited = ConcurrencyLimit::new(stage.venue.clone(), 1);
    let mut service = AuthRefreshLayer::new(stage.credentials.clone()).layer(limited.clone());
    poll_fn(|cx| Service::<Req>::poll_ready(&mut service, cx))
        .await
        .unwrap();
    let mut call = task::spawn(service.call(post()));
    let mut ended = false;
    for _ in 0..polls {
        if call.poll().is_ready() {
            ended = true;
            break;
        }
        tokio::time::advance(Duration::from_millis(10)).await;
        stage.settle().await;
    }
    drop(call);
    drop(service);
    poll_fn(|cx| limited.poll_ready(cx)).await.unwrap();
    drop(limited);
    // Whatever the call began has ended by itself, and its fruit is there for the next.
    let was_started = stage.source.calls() == 2;
    tokio::time::sleep(SECOND).await;
    let generation = stage
        .credentials
        .current()
        .map(|snapshot| snapshot.generation());
    assert_eq!(
        generation,
        Some(if was_started { 2 } else { 1 }),
        "after {polls} polls"
    );
    assert_eq!(stage.call().await, Ok(200), "after {polls} polls");
    assert_eq!(stage.source.calls(), 2, "after {polls} polls");
    ended
}

#[tokio::test(start_paused = true)]
async fn whenever_a_call_is_dropped_its_refresh_goes_on_and_its_permit_is_back() {
    let mut polls = 0;
    while !dropped_after(polls).await {
        polls += 1;
        assert!(polls < 100, "the call never ends");
    }
    assert!(polls > 8, "every state was met: {polls}");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_survives_all_who_waited_for_it() {
    let stage = Stage::new(Source::endless());
    let gate = stage.source.shut();
    let calls: Vec<_> = (0..10)
        .map(|_| tokio::spawn(stage.service.clone().oneshot(post())))
        .collect();
    stage.settle().await;
    for call in &calls {
        call.abort();
    }
    for call in calls {
        assert!(call.await.unwrap_err().is_cancelled());
    }
    gate.notify_one();
    stage.settle().await;
    assert_eq!(stage.credentials.current().unwrap().generation(), 1);
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 1);
}

/// A thousand calls meet a dead session, and the one that refreshes is dropped after so many polls. Returns
/// whether it had ended.
async fn a_thousand_without_the_one_that_refreshes(polls: usize) -> bool {
    let source = Source::endless().takes(Duration::from_millis(50));
    let stage = Stage::with(source, Venue::default(), |b| b);
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(SECOND).await;
    stage.venue.reject("token-1");
    stage.venue.latency(Duration::from_millis(20));
    let mut first = stage.service.clone();
    let mut first = task::spawn(first.call(post()));
    let mut ended = first.poll().is_ready();
    // Its answer is there before theirs, so that it is the one that starts the refresh.
    tokio::time::advance(Duration::from_millis(10)).await;
    let calls: Vec<_> = (0..1000)
        .map(|_| tokio::spawn(stage.service.clone().oneshot(post())))
        .collect();
    for _ in 0..polls {
        if ended {
            break;
        }
        stage.settle().await;
        tokio::time::advance(Duration::from_millis(10)).await;
        ended = first.poll().is_ready();
    }
    drop(first);
    for call in calls {
        let response = call.await.unwrap().unwrap();
        assert_eq!(response.status(), 200, "after {polls} polls");
    }
    assert_eq!(stage.source.calls(), 2, "after {polls} polls");
    let replays = stage.venue.seen();
    let replays = replays.iter().filter(|token| *token == "token-2").count();
    assert!(replays <= 1001, "{replays} replays after {polls} polls");
    ended
}

#[tokio::test(start_paused = true)]
async fn whenever_the_one_that_refreshes_is_dropped_a_thousand_others_share_its_refresh() {
    let mut polls = 0;
    while !a_thousand_without_the_one_that_refreshes(polls).await {
        polls += 1;
        assert!(polls < 100, "the call never ends");
    }
    assert!(polls > 6, "every state was met: {polls}");
}
