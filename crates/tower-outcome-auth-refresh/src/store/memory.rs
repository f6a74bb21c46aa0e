//! A store in this process.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::{StoreError, Stored, Swap, TokenStore};
use crate::Credential;

/// Keeps a credential in the memory of this process: for several
/// [`Credentials`](crate::Credentials) that spend the same refresh token, and for tests. Clones share.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Held for a copy in or out.
    stored: Arc<Mutex<Option<Stored>>>,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// Creates a store that has nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl TokenStore for MemoryStore {
    type Guard = OwnedMutexGuard<()>;

    async fn lock(&self) -> Result<Self::Guard, StoreError> {
        Ok(Arc::clone(&self.turn).lock_owned().await)
    }

    async fn load(&self) -> Result<Option<Stored>, StoreError> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(stored.clone())
    }

    async fn compare_and_set(
        &self,
        expected: u64,
        credential: Credential,
    ) -> Result<Swap, StoreError> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = stored.as_ref().map_or(0, |stored| stored.revision);
        if revision != expected {
            return Ok(Swap::Changed(stored.clone()));
        }
        *stored = Some(Stored::new(credential, revision + 1));
        Ok(Swap::Stored(revision + 1))
    }
}
