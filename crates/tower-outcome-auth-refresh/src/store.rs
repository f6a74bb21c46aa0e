//! Keeping a credential where other processes find it.

use std::{error::Error, fmt, pin::Pin};

use tower_outcome_core::BoxError;

use crate::Credential;

#[cfg(feature = "file-store")]
mod document;
#[cfg(feature = "file-store")]
mod file;
mod memory;

#[cfg(feature = "file-store")]
pub use self::file::{FileLock, FileStore};
pub use self::memory::MemoryStore;

/// Keeps a credential where other processes find it, so that one refresh is enough for all of them.
///
/// A refresh takes the lock, reads what is stored, and goes on only if nobody else has refreshed
/// meanwhile; what it fetches is stored before it is used. The lock belongs to the credential, not to a
/// place or a process: whoever spends the same refresh token has to share it.
///
/// Futures are dropped when the refresh runs out of its time.
pub trait TokenStore: Send + Sync + 'static {
    /// Keeps the others out until it is dropped. The lock of a process that was killed must end by
    /// itself.
    type Guard: Send + 'static;

    /// Waits for the lock.
    ///
    /// # Errors
    ///
    /// If nobody can tell who holds it. Then nothing is refreshed: two who refresh at once cost more.
    fn lock(&self) -> impl Future<Output = Result<Self::Guard, StoreError>> + Send;

    /// Reads what is stored; `None` if nothing ever was.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not whole.
    fn load(&self) -> impl Future<Output = Result<Option<Stored>, StoreError>> + Send;

    /// Stores a credential if the revision still is `expected` (0 if nothing was stored), and returns
    /// the next one. What it has is an end by the wall clock and no lifetime.
    ///
    /// # Errors
    ///
    /// If it could not be stored. What was stored before must then be whole.
    fn compare_and_set(
        &self,
        expected: u64,
        credential: Credential,
    ) -> impl Future<Output = Result<Swap, StoreError>> + Send;
}

/// What is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The credential.
    pub credential: Credential,
    /// Its number, from 1; each one that is stored has the next.
    pub revision: u64,
}

/// What became of an attempt to store a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: it was stored or it was not"
)]
pub enum Swap {
    /// It is stored, under this revision.
    Stored(u64),
    /// Somebody else has stored this one meanwhile (or removed it), and it is still there.
    Changed(Option<Stored>),
}

/// Says that a store cannot be used.
#[derive(Debug)]
pub struct StoreError(BoxError);

/// The same without a type of its own.
pub(crate) trait ErasedStore: Send + Sync {
    fn lock(&self) -> Storing<'_, Box<dyn Send>>;
    fn load(&self) -> Storing<'_, Option<Stored>>;
    fn compare_and_set(&self, expected: u64, credential: Credential) -> Storing<'_, Swap>;
}

pub(crate) type Storing<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

// === impl TokenStore ===

impl<T: TokenStore> ErasedStore for T {
    fn lock(&self) -> Storing<'_, Box<dyn Send>> {
        Box::pin(async {
            let guard: Box<dyn Send> = Box::new(TokenStore::lock(self).await?);
            Ok(guard)
        })
    }

    fn load(&self) -> Storing<'_, Option<Stored>> {
        Box::pin(TokenStore::load(self))
    }

    fn compare_and_set(&self, expected: u64, credential: Credential) -> Storing<'_, Swap> {
        Box::pin(TokenStore::compare_and_set(self, expected, credential))
    }
}

// === impl Stored ===

impl Stored {
    /// Creates it from a credential and its number.
    #[must_use]
    pub const fn new(credential: Credential, revision: u64) -> Self {
        Self {
            credential,
            revision,
        }
    }
}

// === impl StoreError ===

impl StoreError {
    /// Creates the error from its cause.
    pub fn new(source: impl Into<BoxError>) -> Self {
        Self(source.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the credential store cannot be used")
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
