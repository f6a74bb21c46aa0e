//! Three ways to send a request.

use bytes::Bytes;
use http::Request;

use crate::limiter::Limiter;

mod naive;
mod tower_outcome;
mod tower_retry;

pub(crate) use self::naive::Naive;
pub(crate) use self::tower_outcome::TowerOutcome;
pub(crate) use self::tower_retry::TowerRetry;

/// A way to send a request and to decide whether it is sent again.
pub(crate) trait Strategy: Clone + Send + 'static {
    /// Its name in the results.
    const NAME: &'static str;

    /// Signs a request, sends it as often as it sees fit, and says what it believes became of it.
    fn send(&self, request: Request<Bytes>) -> impl Future<Output = Belief> + Send;

    /// What keeps it within the venue's limit, if anything does.
    fn limiter(&self) -> Option<Limiter> {
        None
    }

    /// About how many orders it has asked the venue by itself, if it does.
    fn asked_about(&self) -> Option<u64> {
        None
    }
}

/// What a program believes became of its request. The venue's ledger may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// The venue did it, and answered this.
    Done(Bytes),
    /// The venue did not do it.
    Failed,
    /// Nobody on this side can know; only strategies that keep the two apart say so.
    Unknown,
}
