//! Several who share what is stored.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tower_outcome_auth_refresh::{
    Credential, Credentials, MemoryStore, Secret, StoreError, Stored, Swap, TokenStore,
    UnavailableKind,
};
use tower_outcome_core::{ManualClock, SplitMix64};

use crate::support::*;

/// A store that can be told to fail.
#[derive(Clone, Default)]
struct Faulty {
    store: MemoryStore,
    locks_fail: Arc<AtomicBool>,
    loads_fail: Arc<AtomicBool>,
    sets_fail: Arc<AtomicBool>,
    sets: Arc<AtomicUsize>,
    /// What somebody who does not ask for the lock stores before the next look.
    intruder: Arc<Mutex<Option<Credential>>>,
}

impl TokenStore for Faulty {
    type Guard = <MemoryStore as TokenStore>::Guard;

    async fn lock(&self) -> Result<Self::Guard, StoreError> {
        if self.locks_fail.load(Ordering::SeqCst) {
            return Err(StoreError::new("nobody knows who holds the lock"));
        }
        self.store.lock().await
    }

    async fn load(&self) -> Result<Option<Stored>, StoreError> {
        if self.loads_fail.load(Ordering::SeqCst) {
            return Err(StoreError::new("half of a file"));
        }
        let stored = self.store.load().await?;
        let intruder = self.intruder.lock().unwrap().take();
        if let Some(credential) = intruder {
            let revision = stored.as_ref().map_or(0, |stored| stored.revision);
            self.store.compare_and_set(revision, credential).await?;
        }
        Ok(stored)
    }

    async fn compare_and_set(&self, expected: u64, new: Credential) -> Result<Swap, StoreError> {
        if self.sets_fail.load(Ordering::SeqCst) {
            return Err(StoreError::new("the disk is full"));
        }
        self.sets.fetch_add(1, Ordering::SeqCst);
        self.store.compare_and_set(expected, new).await
    }
}

fn on(store: impl TokenStore, source: Source) -> Stage {
    Stage::with(source, Venue::default(), |builder| builder.store(store))
}

async fn stored(store: &Faulty) -> Option<String> {
    let stored = store.store.load().await.unwrap();
    stored.map(|stored| stored.credential.token().expose().to_owned())
}

#[tokio::test(start_paused = true)]
async fn one_refresh_serves_all_who_share_a_store() {
    let store = MemoryStore::new();
    let source = Source::tokens(MINUTE * 30).takes(SECOND);
    let stages: Vec<_> = (0..8).map(|_| on(store.clone(), source.clone())).collect();
    for round in 1..=3 {
        let calls: Vec<_> = stages
            .iter()
            .map(|stage| {
                tokio::spawn({
                    let credentials = stage.credentials.clone();
                    async move { credentials.get(None).await.unwrap() }
                })
            })
            .collect();
        for call in calls {
            let snapshot = call.await.unwrap();
            assert_eq!(
                snapshot.credential().token().expose(),
                format!("token-{round}")
            );
        }
        assert_eq!(source.calls(), round);
        for stage in &stages {
            stage.clock.advance(MINUTE * 30);
        }
        tokio::time::sleep(MINUTE * 30).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_one_is_adopted_instead_of_a_refresh_and_a_rejected_one_is_not() {
    let store = MemoryStore::new();
    let ours = on(store.clone(), Source::endless());
    assert_eq!(ours.call().await, Ok(200));
    let theirs = Source::new([Say::Exactly(Credential::new("theirs"))]);
    let other = on(store.clone(), theirs);
    assert_eq!(other.call().await, Ok(200));
    assert_eq!(other.source.calls(), 0, "it found ours");
    ours.pass(SECOND).await;

    // The other one meets the dead session first.
    other.venue.reject("token-1");
    ours.venue.reject("token-1");
    assert_eq!(other.call().await, Ok(200));
    assert_eq!(other.source.calls(), 1);
    assert_eq!(ours.call().await, Ok(200));
    assert_eq!(ours.source.calls(), 1);
    assert_eq!(ours.venue.seen(), ["token-1", "token-1", "theirs"]);
}

#[tokio::test(start_paused = true)]
async fn a_rotated_one_is_stored_before_it_is_used_and_not_lost_if_that_fails() {
    let store = Faulty::default();
    let rotated = |token: &str| {
        let credential = Credential::new(token).with_refresh_token(format!("refresh-{token}"));
        Say::Exactly(credential)
    };
    let stage = on(store.clone(), Source::new([rotated("a"), rotated("b")]));
    store.sets_fail.store(true, Ordering::SeqCst);
    assert_eq!(stage.call().await, Err(UnavailableKind::Store));
    stage.pass(SECOND * 2).await;
    assert_eq!(stage.call().await, Err(UnavailableKind::Store));
    assert!(stage.venue.seen().is_empty());
    assert_eq!(
        stage.source.calls(),
        1,
        "what was fetched is stored before more is fetched"
    );
    store.sets_fail.store(false, Ordering::SeqCst);
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["a"]);
    assert_eq!(stored(&store).await.as_deref(), Some("a"));
    assert_eq!(stage.source.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_did_not_rotate_is_used_even_if_it_cannot_be_stored() {
    let store = Faulty::default();
    let kept = |token: &str| {
        let credential = Credential::new(token).with_lifetime(MINUTE);
        Say::Exactly(credential.with_refresh_token("always the same"))
    };
    let stage = on(store.clone(), Source::new([kept("a"), kept("b")]));
    assert_eq!(stage.call().await, Ok(200));
    store.sets_fail.store(true, Ordering::SeqCst);
    stage.pass(MINUTE).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_fetched_under_a_lock_that_nobody_can_vouch_for() {
    let store = Faulty::default();
    let stage = on(store.clone(), Source::endless());
    for broken in [&store.locks_fail, &store.loads_fail] {
        broken.store(true, Ordering::SeqCst);
        assert_eq!(stage.call().await, Err(UnavailableKind::Store));
        broken.store(false, Ordering::SeqCst);
        stage.pass(SECOND * 5).await;
    }
    assert_eq!(stage.source.calls(), 0);
    assert_eq!(stage.call().await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn whoever_lost_a_race_adopts_what_the_winner_has_stored() {
    // Somebody who does not know of the lock has refreshed, and so killed our refresh token.
    let store = Faulty::default();
    let stage = on(store.clone(), Source::new([Say::Dead]));
    *store.intruder.lock().unwrap() = Some(Credential::new("winner"));
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["winner"]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_source_with_nothing_newer_in_the_store_is_dead_and_the_store_is_watched() {
    let store = Faulty::default();
    let old = Credential::new("old").with_expires_at(start() - SECOND);
    store.store.compare_and_set(0, old).await.unwrap();
    let stage = on(store.clone(), Source::new([Say::Dead]));
    for _ in 0..10 {
        assert_eq!(stage.call().await, Err(UnavailableKind::Dead));
        stage.pass(SECOND * 5).await;
    }
    assert_eq!(stage.source.calls(), 1);
    let spent = stage.source.previous()[0].clone().unwrap();
    assert_eq!(
        spent.token(),
        &Secret::new("old"),
        "its refresh token is the one to go on with"
    );
    assert_eq!(
        stored(&store).await.as_deref(),
        Some("old"),
        "nothing is wiped"
    );
    // A human logs in elsewhere.
    store
        .store
        .compare_and_set(1, Credential::new("by-hand"))
        .await
        .unwrap();
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_login_by_hand_while_a_refresh_is_under_way_wins() {
    let store = Faulty::default();
    let stage = on(store.clone(), Source::new([Say::Token(None)]));
    let gate = stage.source.shut();
    let call = tokio::spawn(tower::ServiceExt::oneshot(stage.service.clone(), post()));
    stage.settle().await;
    store
        .store
        .compare_and_set(0, Credential::new("by-hand"))
        .await
        .unwrap();
    gate.notify_one();
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert_eq!(stage.venue.seen(), ["by-hand"]);
    assert_eq!(stored(&store).await.as_deref(), Some("by-hand"));
}

#[tokio::test(start_paused = true)]
async fn a_login_by_hand_is_stored_for_the_others() {
    let store = MemoryStore::new();
    let (one, two) = (Source::new([Say::Dead]), Source::new([Say::Dead]));
    let (one, two) = (on(store.clone(), one), on(store.clone(), two));
    assert_eq!(one.call().await, Err(UnavailableKind::Dead));
    assert_eq!(two.call().await, Err(UnavailableKind::Dead));
    let login = Credential::new("by-hand").with_lifetime(MINUTE);
    one.credentials.log_in(login).await.unwrap();
    assert_eq!(one.call().await, Ok(200));
    two.pass(SECOND * 5).await;
    assert_eq!(two.call().await, Ok(200));
    two.pass(MINUTE - SECOND * 5).await;
    assert!(
        two.credentials.current().is_none(),
        "its end is on the wall clock"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_is_stored_as_an_end_that_others_can_read() {
    let store = MemoryStore::new();
    let stage = on(store.clone(), Source::tokens(MINUTE));
    assert_eq!(stage.call().await, Ok(200));
    let stored = store.load().await.unwrap().unwrap().credential;
    assert_eq!(
        (stored.lifetime(), stored.expires_at()),
        (None, Some(start() + MINUTE))
    );
}

#[tokio::test(start_paused = true)]
async fn two_audiences_that_spend_one_refresh_token_take_turns() {
    // The refresh token is theirs together, so the lock is; what they store is their own.
    #[derive(Clone)]
    struct Own(MemoryStore, MemoryStore);

    impl TokenStore for Own {
        type Guard = <MemoryStore as TokenStore>::Guard;

        async fn lock(&self) -> Result<Self::Guard, StoreError> {
            self.0.lock().await
        }

        async fn load(&self) -> Result<Option<Stored>, StoreError> {
            self.1.load().await
        }

        async fn compare_and_set(&self, at: u64, new: Credential) -> Result<Swap, StoreError> {
            self.1.compare_and_set(at, new).await
        }
    }

    let turn = MemoryStore::new();
    let at_once = Arc::new(AtomicUsize::new(0));
    let audience = |name: &'static str| {
        let at_once = Arc::clone(&at_once);
        let source = move |_| {
            let at_once = Arc::clone(&at_once);
            async move {
                assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                tokio::time::sleep(SECOND).await;
                at_once.fetch_sub(1, Ordering::SeqCst);
                Ok(Credential::new(name))
            }
        };
        Credentials::builder(name, source)
            .any_origin()
            .store(Own(turn.clone(), MemoryStore::new()))
            .clock(Arc::new(ManualClock::new(start())))
            .random(Arc::new(SplitMix64::seeded(1)))
            .build()
            .unwrap()
    };
    let (orders, charts) = (audience("orders"), audience("charts"));
    let (orders, charts) = tokio::join!(orders.get(None), charts.get(None));
    assert_eq!(orders.unwrap().credential().token().expose(), "orders");
    assert_eq!(charts.unwrap().credential().token().expose(), "charts");
}

#[tokio::test(start_paused = true)]
async fn the_refresh_token_of_one_that_is_adopted_and_cannot_be_attached_is_the_one_to_go_on_with()
{
    let store = MemoryStore::new();
    let first = Credential::new("first")
        .with_refresh_token("spent")
        .with_lifetime(MINUTE);
    let source = Source::new([Say::Exactly(first), Say::Token(None)]);
    let stage = on(store.clone(), source);
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE).await;
    // Another process has refreshed meanwhile, and got something odd.
    let theirs = Credential::new("").with_refresh_token("rotated");
    store.compare_and_set(1, theirs).await.unwrap();
    assert_eq!(stage.call().await, Err(UnavailableKind::Unattachable));
    assert_eq!(stage.source.calls(), 1);
    stage.pass(SECOND * 5).await;
    // It has no end, and is looked at again; what matters is what is spent.
    stage.credentials.try_again();
    assert_eq!(stage.call().await, Ok(200));
    let previous = stage.source.previous();
    let spent = previous.last().unwrap().as_ref().unwrap().refresh_token();
    assert_eq!(spent.unwrap().expose(), "rotated");
}

/// A store that is slow to write.
#[derive(Clone, Default)]
struct Slow(MemoryStore);

impl TokenStore for Slow {
    type Guard = <MemoryStore as TokenStore>::Guard;

    async fn lock(&self) -> Result<Self::Guard, StoreError> {
        self.0.lock().await
    }

    async fn load(&self) -> Result<Option<Stored>, StoreError> {
        self.0.load().await
    }

    async fn compare_and_set(&self, expected: u64, new: Credential) -> Result<Swap, StoreError> {
        tokio::time::sleep(SECOND * 14).await;
        self.0.compare_and_set(expected, new).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_still_storing_is_not_lost() {
    let stage = on(Slow::default(), Source::endless().takes(SECOND * 14));
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 1);
}
