//! The slots of each key.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http::request;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The slots of each key, shared by all services of a layer.
pub(crate) struct Slots<K> {
    limit: usize,
    key: Box<KeyOf<K>>,
    /// Held for a look-up, never across an await.
    keys: Mutex<Keys<K>>,
}

pub(crate) type KeyOf<K> = dyn Fn(&request::Parts) -> K + Send + Sync;

/// One of the slots; free again when it is dropped.
pub(crate) type Slot = OwnedSemaphorePermit;

/// A place in the queue for a slot: first come, first served.
pub(crate) enum Queue {
    Arrived(Arc<Semaphore>),
    Waiting(Pin<Box<dyn Future<Output = Result<Slot, AcquireError>> + Send>>),
}

struct Keys<K> {
    of: HashMap<K, Arc<Semaphore>>,
    /// How many there may be until the idle ones are dropped.
    sweep_at: usize,
}

/// Below that many, idle keys are left alone.
const FEW: usize = 64;

// === impl Slots ===

impl<K> Slots<K> {
    pub(crate) fn new(limit: usize, key: Box<KeyOf<K>>) -> Self {
        Self {
            limit,
            key,
            keys: Mutex::new(Keys {
                of: HashMap::new(),
                sweep_at: FEW,
            }),
        }
    }
}

impl<K: Eq + Hash> Slots<K> {
    /// Returns a place in the queue for the request's key.
    pub(crate) fn queue(&self, head: &request::Parts) -> Queue {
        let key = (self.key)(head);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = keys.of.get(&key) {
            return Queue::Arrived(Arc::clone(semaphore));
        }
        if keys.of.len() >= keys.sweep_at {
            // Whoever holds a slot or waits for one holds the semaphore too.
            keys.of
                .retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            keys.sweep_at = FEW.max(keys.of.len().saturating_mul(2));
        }
        let semaphore = Arc::new(Semaphore::new(self.limit));
        keys.of.insert(key, Arc::clone(&semaphore));
        Queue::Arrived(semaphore)
    }

    /// Returns how many slots of a key are taken.
    pub(crate) fn taken(&self, key: &K) -> usize {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let free = keys
            .of
            .get(key)
            .map_or(self.limit, |semaphore| semaphore.available_permits());
        self.limit.saturating_sub(free)
    }
}

impl<K> fmt::Debug for Slots<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

// === impl Queue ===

impl Queue {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Slot> {
        if let Self::Arrived(semaphore) = self {
            // Slots that are given back go to those who wait, so nobody is overtaken here.
            if let Ok(slot) = Arc::clone(semaphore).try_acquire_owned() {
                return Poll::Ready(slot);
            }
            *self = Self::Waiting(Box::pin(Arc::clone(semaphore).acquire_owned()));
        }
        match self {
            Self::Waiting(waiting) => match waiting.as_mut().poll(cx) {
                Poll::Ready(Ok(slot)) => Poll::Ready(slot),
                // Nobody ever closes the semaphore.
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            Self::Arrived(_) => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn keys_that_are_idle_are_forgotten() {
        let path = |head: &request::Parts| head.uri.path().to_owned();
        let slots = Slots::new(1, Box::new(path));
        let queue = |path: String| {
            let (head, ()) = Request::get(path).body(()).unwrap().into_parts();
            slots.queue(&head)
        };
        let kept: Vec<_> = (0..FEW)
            .map(|number| queue(format!("/kept/{number}")))
            .collect();
        for number in 0..10_000 {
            drop(queue(format!("/{number}")));
            assert!(slots.keys.lock().unwrap().of.len() <= 3 * FEW);
        }
        for number in 0..FEW {
            let keys = slots.keys.lock().unwrap();
            assert!(keys.of.contains_key(&format!("/kept/{number}")));
        }
        drop(kept);
    }
}
