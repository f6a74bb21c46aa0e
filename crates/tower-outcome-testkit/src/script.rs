//! An inner service that answers from a list.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tower_service::Service;

/// A service that answers from a list of results, one for each call, and keeps the requests.
///
/// Always ready; wrap it with a [`Probe`](crate::Probe) to check readiness. Clones share the list.
/// When the list is spent calls fail with [`Exhausted`].
///
/// ```
/// # use tower_outcome_testkit::Script;
/// let script: Script<&str, u16> = Script::new([Err("refused".into()), Ok(200)]);
/// assert_eq!(script.left(), 2);
/// ```
pub struct Script<R, T> {
    /// Shared by clones, which layers make freely.
    state: Arc<Mutex<State<R, T>>>,
}

/// The script has no result left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exhausted;

type BoxError = Box<dyn Error + Send + Sync>;

struct State<R, T> {
    results: VecDeque<Result<T, BoxError>>,
    requests: Vec<R>,
}

// === impl Script ===

impl<R, T> Script<R, T> {
    /// Makes a service that gives these results in order.
    #[must_use]
    pub fn new(results: impl IntoIterator<Item = Result<T, BoxError>>) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                results: results.into_iter().collect(),
                requests: Vec::new(),
            })),
        }
    }

    /// Takes the requests seen so far.
    #[must_use]
    pub fn take_requests(&self) -> Vec<R> {
        self.with(|state| std::mem::take(&mut state.requests))
    }

    /// Returns how many results are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.with(|state| state.results.len())
    }

    fn with<U>(&self, use_it: impl FnOnce(&mut State<R, T>) -> U) -> U {
        use_it(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<R, T> Service<R> for Script<R, T> {
    type Response = T;
    type Error = BoxError;
    type Future = Ready<Result<T, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        ready(self.with(|state| {
            state.requests.push(request);
            let result = state.results.pop_front();
            result.unwrap_or_else(|| Err(Exhausted.into()))
        }))
    }
}

impl<R, T> Clone for Script<R, T> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
        }
    }
}

impl<R, T> fmt::Debug for Script<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("left", &self.left())
            .finish_non_exhaustive()
    }
}

// === impl Exhausted ===

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script has no result left")
    }
}

impl Error for Exhausted {}
