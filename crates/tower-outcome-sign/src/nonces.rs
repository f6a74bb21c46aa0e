//! Numbers that rise with every attempt under a key.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Mutex, OwnedMutexGuard};
use tower_outcome_core::ConfigError;

use crate::{Nonce, SignError, SignErrorKind, SigningTime, Unit};

/// The nonces of one key: each the time in the key's unit, or one more than the last if that is
/// higher. The time is that of the wall clock, whatever a [`ClockOffset`](crate::ClockOffset) has
/// learned: nothing that a server says moves them.
///
/// A cheap handle; clones share. Make one for each key, and use it for everything that signs with
/// that key.
///
/// A venue never forgets the highest nonce that it has seen, so the unit can be changed to a smaller
/// one and never back. To go on where another run of the program left off, even if the clock has
/// been put back since, store [`high_water`](Self::high_water) and hand it to
/// [`starting_after`](NoncesBuilder::starting_after).
///
/// # Invalid nonces
///
/// A venue that refuses nonce after nonce is counting them, and will lock the key. After three
/// refusals in a row the key is stopped: nothing is signed with it any more until
/// [`resume`](Self::resume). Another program uses the same key, or has used it with a larger unit.
///
/// In a row are refusals of nonces that were issued after the refusal before was heard, with no answer
/// in between that proves that a nonce was accepted: a success, or a rejection for what the request
/// says. So requests of this program that overtake each other, as they do where the nonces are not
/// [strict](NoncesBuilder::strict) and there is more than one connection, do not stop the key; they are
/// refused and sent once more all the same.
#[derive(Clone)]
pub struct Nonces(Arc<State>);

/// Builds [`Nonces`]; start with [`Nonces::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct NoncesBuilder {
    unit: Unit,
    after: u64,
    strict: Option<Strict>,
    stop_after: u32,
}

/// How long a request holds its key's turn, so that requests leave in the order of their nonces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strict {
    /// Until it has been answered: the only order that holds over several connections, over HTTP/2, or
    /// with a client that has a pool, at one request per round trip.
    UntilAnswered,
    /// Until the transport has taken the whole request. This keeps the order on exactly one HTTP/1
    /// connection, such as that of hyper's `client::conn::http1`, and nowhere else.
    ///
    /// What the transport has taken is not on the wire yet. HTTP/2 writes the frames of several streams in
    /// an order of its own, and servers work on them side by side. A client with a pool opens another
    /// connection for what it cannot send at once, also over HTTP/1.1. There, requests overtake each other
    /// by the hundred.
    UntilWritten,
}

struct State {
    /// The last one that was issued. Shared by all that sign with the key.
    last: AtomicU64,
    unit: Unit,
    strict: Option<Strict>,
    /// Refusals in a row.
    invalid: AtomicU32,
    /// The last one that was issued when the last refusal of those was heard.
    refused_at: AtomicU64,
    /// The highest that was accepted for certain.
    accepted: AtomicU64,
    stop_after: u32,
    /// Whose turn it is. First come, first served; held across the sending of a request.
    turn: Arc<Mutex<()>>,
}

/// The turn of a key. Dropping it passes it on.
pub(crate) struct Slot {
    _turn: OwnedMutexGuard<()>,
    strict: Strict,
}

/// Waits for the turn of a key.
pub(crate) type Turn = Pin<Box<dyn Future<Output = Slot> + Send>>;

// === impl Nonces ===

impl Nonces {
    /// Creates the nonces of a key in a unit, which rise but leave in any order.
    #[must_use]
    pub fn new(unit: Unit) -> Self {
        Self(Arc::new(Self::builder(unit).state()))
    }

    /// Starts with the unit; milliseconds are usual.
    ///
    /// A key that is called more often than its unit ticks runs ahead of the clock, which is
    /// harmless.
    pub const fn builder(unit: Unit) -> NoncesBuilder {
        NoncesBuilder {
            unit,
            after: 0,
            strict: None,
            stop_after: 3,
        }
    }

    /// Issues the next nonce.
    ///
    /// # Errors
    ///
    /// If the key is stopped, or there is no higher number.
    pub fn issue(&self, now: SigningTime) -> Result<Nonce, SignError> {
        let state = &*self.0;
        if self.is_stopped() {
            return Err(SignErrorKind::NonceStopped.into());
        }
        let now = now.count(state.unit);
        let next = |last: u64| last.checked_add(1).map(|next| next.max(now));
        let last = state
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        match last.ok().and_then(next) {
            Some(nonce) => Ok(Nonce::new(nonce)),
            None => Err(SignErrorKind::NonceStopped.into()),
        }
    }

    /// Returns the highest nonce that was issued, to be stored.
    #[must_use]
    pub fn high_water(&self) -> u64 {
        self.0.last.load(Ordering::Relaxed)
    }

    /// Returns whether the key was stopped after too many invalid nonces.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.invalid.load(Ordering::Relaxed) >= self.0.stop_after
    }

    /// Lets a key that was stopped go on.
    pub fn resume(&self) {
        self.0.invalid.store(0, Ordering::Relaxed);
    }

    /// Notes that the venue has refused a nonce.
    #[cold]
    pub(crate) fn refused(&self, nonce: Nonce) {
        let state = &*self.0;
        if nonce.get() < state.accepted.load(Ordering::Relaxed) {
            // A later one of this program has overtaken it.
            return;
        }
        // Those that were under way when the last refusal was heard may have been overtaken, too.
        let last = self.high_water();
        let later = |at: u64| (nonce.get() > at).then_some(last);
        let refused_at = &state.refused_at;
        let counts = refused_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        if counts.is_ok() {
            let more = |count: u32| Some(count.saturating_add(1));
            // Never fails: there is always a next count.
            let _ = (state.invalid).fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Notes that the venue has accepted a nonce. A key that was stopped stays so.
    pub(crate) fn accepted(&self, nonce: Nonce) {
        self.0.accepted.fetch_max(nonce.get(), Ordering::Relaxed);
        if self.0.invalid.load(Ordering::Relaxed) != 0 && !self.is_stopped() {
            self.resume();
        }
    }

    /// Stands in line for the turn, if there is one.
    #[inline]
    pub(crate) fn turn(&self) -> Option<Turn> {
        let strict = self.0.strict?;
        let turn = Arc::clone(&self.0.turn).lock_owned();
        Some(Box::pin(async move {
            Slot {
                _turn: turn.await,
                strict,
            }
        }))
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces")
            .field("unit", &self.0.unit)
            .field("strict", &self.0.strict)
            .field("high_water", &self.high_water())
            .finish_non_exhaustive()
    }
}

// === impl NoncesBuilder ===

impl NoncesBuilder {
    /// Sets a nonce that was used before; all that follow are higher.
    pub const fn starting_after(mut self, high_water: u64) -> Self {
        self.after = high_water;
        self
    }

    /// Has requests leave in the order of their nonces, one after the other.
    pub const fn strict(mut self, strict: Strict) -> Self {
        self.strict = Some(strict);
        self
    }

    /// Sets after how many invalid nonces in a row the key is stopped: 3 by default, since venues
    /// lock a key that goes on.
    pub const fn stop_after(mut self, refusals: u32) -> Self {
        self.stop_after = refusals;
        self
    }

    /// Builds the nonces.
    ///
    /// # Errors
    ///
    /// If the key would be stopped before the first refusal, or what was used before lies more than
    /// a year ahead of `now` in this unit: then another unit was used, which cannot be undone.
    pub fn build(self, now: SigningTime) -> Result<Nonces, ConfigError> {
        const YEAR: Duration = Duration::from_secs(366 * 86_400);
        if self.stop_after == 0 {
            return Err(ConfigError::new("stop_after", 0, "1 or more"));
        }
        if self.after > now.saturating_add(YEAR).count(self.unit) {
            let expected = "a nonce in this unit: was another unit used before?";
            return Err(ConfigError::new("starting_after", self.after, expected));
        }
        Ok(Nonces(Arc::new(self.state())))
    }

    fn state(&self) -> State {
        State {
            last: AtomicU64::new(self.after),
            unit: self.unit,
            strict: self.strict,
            invalid: AtomicU32::new(0),
            refused_at: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            stop_after: self.stop_after,
            turn: Arc::default(),
        }
    }
}

// === impl Slot ===

impl Slot {
    pub(crate) const fn strict(&self) -> Strict {
        self.strict
    }
}
