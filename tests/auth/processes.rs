//! Processes that share a credential in a file.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};
use tower_outcome::{
    Credential,
    auth_refresh::{FileStore, TokenStore},
};
use tower_outcome_testkit::{Logins, Venue};

/// A venue, and a place for the file, which goes with the test.
struct Shared {
    logins: Logins,
    venue: Venue,
    directory: PathBuf,
}

impl Shared {
    fn new(name: &str) -> Self {
        let logins = Logins::at("/token");
        // A log-in takes its time, so that processes meet.
        let venue = Venue::builder()
            .demand(logins.clone())
            .latency(Duration::from_millis(50));
        let directory = format!("customers-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        Self {
            logins,
            venue: venue.start().unwrap(),
            directory,
        }
    }

    fn store(&self) -> FileStore {
        FileStore::new(self.directory.join("credential.json"))
    }

    fn customer(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_customer"));
        command.arg(arguments[0]).arg(self.store().path());
        command.args(&arguments[1..]);
        command.stdout(Stdio::piped()).kill_on_drop(true);
        command.spawn().unwrap()
    }

    /// Has so many processes ask for a credential at once, and returns what each got.
    async fn all_get(&self, processes: usize) -> Vec<String> {
        let url = self.venue.url("/token");
        let customers: Vec<_> = (0..processes)
            .map(|_| self.customer(&["get", &url]))
            .collect();
        let mut tokens = Vec::new();
        for customer in customers {
            let output = customer.wait_with_output().await.unwrap();
            assert!(output.status.success());
            tokens.push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
        }
        tokens
    }

    /// Puts the end of what is stored into the past.
    async fn expire(&self) {
        let store = self.store();
        let stored = store.load().await.unwrap().unwrap();
        let refresh = stored.credential.refresh_token().unwrap().clone();
        let over = Credential::new("over")
            .with_refresh_token(refresh)
            .with_expires_at(std::time::SystemTime::UNIX_EPOCH);
        store.compare_and_set(stored.revision, over).await.unwrap();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[tokio::test]
async fn processes_that_share_a_file_refresh_once_between_them() {
    let shared = Shared::new("once");
    assert_eq!(shared.all_get(3).await, ["access-1"; 3]);
    assert_eq!(shared.logins.logins(), 1);
    for round in 1..=3 {
        shared.expire().await;
        let expected = format!("access-{}", round + 1);
        assert_eq!(shared.all_get(2).await, [expected.as_str(); 2]);
        assert_eq!(shared.logins.refreshes(), round, "one refresh for both");
    }
    assert_eq!(shared.logins.logins(), 1);
    assert_eq!(shared.logins.reuses(), 0, "no rotation is lost");
}

#[tokio::test]
async fn the_lock_of_a_killed_process_ends_with_it() {
    let shared = Shared::new("killed");
    let mut holder = shared.customer(&["hold"]);
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("held"));
    let url = shared.venue.url("/token");
    let mut customer = shared.customer(&["get", &url]);
    // It waits as long as the other one lives.
    let waited = tokio::time::timeout(Duration::from_millis(300), customer.wait()).await;
    assert!(waited.is_err());
    assert_eq!(shared.logins.logins(), 0);
    holder.kill().await.unwrap();
    let output = customer.wait_with_output().await.unwrap();
    assert_eq!(output.stdout, b"access-1\n");
}
