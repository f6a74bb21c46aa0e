//! Log-ins by hand.

use std::time::SystemTime;

use tokio::time::Instant;
use tower_outcome_auth_refresh::{Credential, MemoryStore, TokenStore, UnavailableKind};

use crate::support::*;

fn by_hand() -> Credential {
    Credential::new("by-hand").with_refresh_token("new family")
}

fn old_family(token: &str) -> Credential {
    Credential::new(token)
        .with_refresh_token("old family")
        .with_lifetime(MINUTE)
}

#[tokio::test(start_paused = true)]
async fn a_log_in_wins_over_a_refresh_under_way_whatever_becomes_of_that() {
    let endings = [
        Say::Exactly(old_family("late")),
        Say::Dead,
        Say::Transient,
        Say::Panic,
    ];
    for ending in endings {
        let source = Source::new([
            Say::Exactly(old_family("old")),
            ending,
            Say::Token(Some(MINUTE)),
        ]);
        let stage = Stage::new(source);
        assert_eq!(stage.call().await, Ok(200));
        stage.pass(MINUTE).await;
        let gate = stage.source.shut();
        let credentials = stage.credentials.clone();
        let waiter = tokio::spawn(async move { credentials.get(None).await });
        stage.settle().await;
        let login = by_hand().with_lifetime(MINUTE * 10);
        let snapshot = stage.credentials.log_in(login).await.unwrap();
        // Who waits goes on at once.
        stage.settle().await;
        assert!(waiter.is_finished());
        let got = waiter.await.unwrap().unwrap();
        assert_eq!(got.generation(), snapshot.generation());
        gate.notify_one();
        stage.settle().await;
        assert_eq!(stage.credentials.current().unwrap().generation(), 2);
        assert_eq!(stage.call().await, Ok(200));
        assert_eq!(stage.venue.seen().last().unwrap(), "by-hand");
        // And its refresh token is the one that is spent.
        gate.notify_one();
        stage.pass(MINUTE * 10).await;
        assert_eq!(stage.call().await, Ok(200));
        let previous = stage.source.previous();
        let spent = previous.last().unwrap().as_ref().unwrap().refresh_token();
        assert_eq!(spent.unwrap().expose(), "new family");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_in_ends_the_wait_for_the_time_of_the_next_refresh() {
    let stage = Stage::with(Source::tokens(SECOND), Venue::default(), |builder| {
        builder.min_interval(MINUTE)
    });
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(SECOND * 2).await;
    let credentials = stage.credentials.clone();
    let waiter = tokio::spawn(async move { credentials.get(None).await });
    stage.settle().await;
    let begin = Instant::now();
    stage.credentials.log_in(by_hand()).await.unwrap();
    let got = waiter.await.unwrap().unwrap();
    assert_eq!(got.credential().token().expose(), "by-hand");
    assert!(begin.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_log_in_that_has_expired_changes_nothing() {
    for expired in [
        by_hand().with_expires_at(SystemTime::UNIX_EPOCH),
        by_hand().with_lifetime(std::time::Duration::ZERO),
    ] {
        let store = MemoryStore::new();
        let source = Source::new([Say::Exactly(old_family("old")), Say::Token(None)]);
        let stage = Stage::with(source, Venue::default(), |b| b.store(store.clone()));
        assert_eq!(stage.call().await, Ok(200));
        let error = stage.credentials.log_in(expired).await.unwrap_err();
        assert_eq!(error.kind(), UnavailableKind::Expired);
        let stored = store.load().await.unwrap().unwrap();
        assert_eq!(stored.credential.token().expose(), "old");
        assert_eq!(stage.call().await, Ok(200));
        stage.pass(MINUTE).await;
        assert_eq!(stage.call().await, Ok(200));
        let previous = stage.source.previous();
        let spent = previous.last().unwrap().as_ref().unwrap().refresh_token();
        assert_eq!(spent.unwrap().expose(), "old family");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_in_does_not_wait_for_ever_for_the_lock_of_a_store() {
    let store = MemoryStore::new();
    let stage = Stage::with(Source::endless(), Venue::default(), |b| {
        b.store(store.clone())
    });
    let _held = store.lock().await.unwrap();
    let error = stage.credentials.log_in(by_hand()).await.unwrap_err();
    assert_eq!(error.kind(), UnavailableKind::TimedOut);
}
