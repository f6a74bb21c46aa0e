//! A credential in a file.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use tower_outcome_auth_refresh::{
    Credential, FileStore, Stored, Swap, TokenStore, UnavailableKind,
};

use crate::support::*;

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("file-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> FileStore {
        FileStore::new(self.0.join("credential.json"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn full() -> Credential {
    Credential::new("access \"quoted\" \u{1f511}")
        .with_field("username", "DM123")
        .with_refresh_token("refresh")
        .with_expires_at(start() + SECOND / 1000)
        .with_login_until(start() + MINUTE)
}

#[tokio::test]
async fn what_is_stored_comes_back_as_it_was() {
    let directory = Directory::new("round");
    let store = directory.store();
    assert_eq!(store.load().await.unwrap(), None);
    for credential in [full(), Credential::new("bare"), full()] {
        let before = store
            .load()
            .await
            .unwrap()
            .map_or(0, |stored| stored.revision);
        let swap = store
            .compare_and_set(before, credential.clone())
            .await
            .unwrap();
        assert_eq!(swap, Swap::Stored(before + 1));
        let stored = store.load().await.unwrap().unwrap();
        assert_eq!(stored, Stored::new(credential, before + 1));
    }
    let mode = fs::metadata(store.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut left: Vec<_> = fs::read_dir(&directory.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["credential.json"]);
}

#[tokio::test]
async fn what_somebody_else_has_stored_is_not_overwritten() {
    let directory = Directory::new("swap");
    let store = directory.store();
    store
        .compare_and_set(0, Credential::new("a"))
        .await
        .unwrap();
    let swap = store
        .compare_and_set(0, Credential::new("b"))
        .await
        .unwrap();
    assert_eq!(
        swap,
        Swap::Changed(Some(Stored::new(Credential::new("a"), 1)))
    );
    fs::remove_file(store.path()).unwrap();
    let swap = store
        .compare_and_set(1, Credential::new("b"))
        .await
        .unwrap();
    assert_eq!(swap, Swap::Changed(None));
}

#[tokio::test]
async fn what_a_killed_process_has_left_is_in_nobodys_way() {
    let directory = Directory::new("left");
    let store = directory.store();
    let mut new = store.path().as_os_str().to_owned();
    new.push(".new");
    fs::write(new, "half of").unwrap();
    store.compare_and_set(0, full()).await.unwrap();
    assert!(store.load().await.unwrap().is_some());
}

#[tokio::test]
async fn a_file_that_is_half_of_one_is_an_error_and_not_an_empty_store() {
    let directory = Directory::new("half");
    let store = directory.store();
    store.compare_and_set(0, full()).await.unwrap();
    let whole = fs::read(store.path()).unwrap();
    for length in 0..whole.len() {
        fs::write(store.path(), &whole[..length]).unwrap();
        assert!(
            store.load().await.is_err(),
            "{length} of {} bytes",
            whole.len()
        );
    }
    fs::write(store.path(), vec![0; whole.len()]).unwrap();
    assert!(store.load().await.is_err());
    fs::write(store.path(), "{}").unwrap();
    assert!(store.compare_and_set(0, full()).await.is_err());
    assert_eq!(
        fs::read(store.path()).unwrap(),
        b"{}",
        "what may be a credential is left alone"
    );
}

#[tokio::test]
async fn a_file_that_others_may_read_is_refused() {
    let directory = Directory::new("public");
    let store = directory.store();
    store.compare_and_set(0, full()).await.unwrap();
    for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
        fs::set_permissions(store.path(), fs::Permissions::from_mode(mode)).unwrap();
        let error = store.load().await.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            cause.contains(&format!("{mode:o}")) && cause.contains("600"),
            "{cause}"
        );
    }
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(store.load().await.is_ok());
}

#[tokio::test]
async fn a_broken_file_is_a_transient_failure_and_nothing_is_fetched_over_it() {
    let directory = Directory::new("broken");
    let store = directory.store();
    fs::write(store.path(), "{ \"token\":").unwrap();
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o600)).unwrap();
    let source = Source::endless();
    let stage = Stage::with(source, Venue::default(), |builder| builder.store(store));
    assert_eq!(stage.call().await, Err(UnavailableKind::Store));
    assert_eq!(stage.source.calls(), 0);
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_said_so() {
    let store = FileStore::new("/nowhere/at/all/credential.json");
    assert!(store.lock().await.is_err());
    assert!(store.compare_and_set(0, full()).await.is_err());
}

#[tokio::test]
async fn the_lock_keeps_others_out_until_it_is_dropped() {
    let directory = Directory::new("lock");
    let (one, two) = (directory.store(), directory.store());
    let held = one.lock().await.unwrap();
    let mut waiting = tokio_test::task::spawn(two.lock());
    for _ in 0..20 {
        assert!(waiting.poll().is_pending());
        tokio::task::yield_now().await;
    }
    drop(held);
    waiting.await.unwrap();
}

#[tokio::test]
async fn what_somebody_stored_is_seen_though_its_revision_has_been_there_before() {
    let directory = Directory::new("emptied");
    let ours = Source::new([Say::Exactly(full())]);
    let stage = |source| {
        Stage::with(source, Venue::default(), |builder| {
            builder.store(directory.store())
        })
    };
    let ours = stage(ours);
    let session = Credential::new("ours").with_refresh_token("ours");
    ours.credentials.log_in(session).await.unwrap();
    fs::remove_file(directory.store().path()).unwrap();
    let theirs = stage(Source::endless());
    let session = Credential::new("theirs").with_refresh_token("theirs");
    theirs.credentials.log_in(session).await.unwrap();
    let stored = directory.store().load().await.unwrap().unwrap();
    assert_eq!(stored.revision, 1, "as before");
    ours.venue.reject("ours");
    assert_eq!(ours.call().await, Ok(200));
    assert_eq!(ours.source.calls(), 0, "there was a newer one");
    assert_eq!(ours.venue.seen().last().unwrap(), "theirs");
}

#[tokio::test]
async fn a_link_to_the_file_has_the_same_lock_and_stays_a_link() {
    let directory = Directory::new("link");
    let store = directory.store();
    let link = directory.0.join("link.json");
    std::os::unix::fs::symlink(store.path(), &link).unwrap();
    // With and without a file to point at.
    for revision in [0, 1] {
        let linked = FileStore::new(&link);
        let held = linked.lock().await.unwrap();
        assert!(
            tokio::time::timeout(SECOND / 20, store.lock())
                .await
                .is_err()
        );
        let swap = linked
            .compare_and_set(revision, Credential::new("new"))
            .await
            .unwrap();
        assert_eq!(swap, Swap::Stored(revision + 1));
        drop(held);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let stored = store.load().await.unwrap().unwrap();
        assert_eq!(stored.revision, revision + 1);
    }
}

#[tokio::test]
async fn an_error_of_a_file_shows_nothing_of_it() {
    let directory = Directory::new("shown");
    let store = directory.store();
    store.compare_and_set(0, full()).await.unwrap();
    let text = fs::read_to_string(store.path()).unwrap();
    for (from, to) in [
        ("\"version\": 1", "\"version\": \"refresh\""),
        ("\"token\"", "\"refresh\""),
    ] {
        fs::write(store.path(), text.replace(from, to)).unwrap();
        let error = store.load().await.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap();
        let shown = format!("{error} {error:?} {cause} {cause:?}");
        assert!(!shown.contains("refresh"), "{shown}");
    }
}

#[tokio::test]
async fn a_file_that_names_somebody_else_is_not_taken_and_not_overwritten() {
    let directory = Directory::new("account");
    let one = directory.store().account("desk 1");
    one.compare_and_set(0, full()).await.unwrap();
    let other = directory.store().account("desk 2");
    let error = other.load().await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.contains("desk 1") && cause.contains("desk 2"),
        "{cause}"
    );
    assert!(other.compare_and_set(1, full()).await.is_err());
    // Who does not say whose it is takes what there is, as does the one whose it is.
    for store in [one, directory.store()] {
        assert_eq!(store.load().await.unwrap().unwrap().credential, full());
    }
}
