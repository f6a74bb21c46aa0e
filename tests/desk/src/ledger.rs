//! What the desk has seen and done, and what it is told to do wrong.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use tonic::{Status, metadata::MetadataMap};

/// What goes wrong with a call.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "before, after and never are all there is"
)]
pub enum Trouble {
    /// The call is answered with this status, and the desk does nothing.
    Before(Status),
    /// The desk acts, and this status is the answer; of a stream, the end.
    After(Status),
    /// The desk acts and never answers.
    Silent,
}

/// A call that the desk has seen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// The path of the method.
    pub method: &'static str,
    /// What came with it.
    pub metadata: MetadataMap,
}

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Ledger {
    // Never held across an await.
    state: Mutex<State>,
    placed: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    orders: Vec<crate::Order>,
    seen: Vec<Seen>,
    trouble: HashMap<&'static str, VecDeque<Trouble>>,
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            placed: watch::Sender::new(0),
        }
    }

    pub(crate) fn tell(&self, method: &'static str, trouble: Trouble) {
        self.lock()
            .trouble
            .entry(method)
            .or_default()
            .push_back(trouble);
    }

    /// Notes a call, and returns what goes wrong with it.
    pub(crate) fn see(&self, method: &'static str, metadata: &MetadataMap) -> Option<Trouble> {
        let mut state = self.lock();
        state.seen.push(Seen {
            method,
            metadata: metadata.clone(),
        });
        state.trouble.get_mut(method)?.pop_front()
    }

    pub(crate) fn place(&self, order: crate::Order) {
        let mut state = self.lock();
        state.orders.push(order);
        let placed = state.orders.len();
        drop(state);
        self.placed.send_replace(placed);
    }

    pub(crate) fn find(&self, id: &str) -> Option<crate::Order> {
        let state = self.lock();
        state.orders.iter().find(|order| order.id == id).cloned()
    }

    pub(crate) fn times_placed(&self, id: &str) -> usize {
        let state = self.lock();
        state.orders.iter().filter(|order| order.id == id).count()
    }

    pub(crate) fn seen(&self, method: &str) -> Vec<Seen> {
        let state = self.lock();
        let of_method = state.seen.iter().filter(|seen| seen.method == method);
        of_method.cloned().collect()
    }

    pub(crate) async fn orders(&self, count: usize) {
        let mut placed = self.placed.subscribe();
        // The sender is a field of this.
        let _ = placed.wait_for(|placed| *placed >= count).await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
