//! How many retries a program may make, in proportion to what succeeds.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tower_outcome_core::{ConfigError, Delivery, Reason};

mod builder;

pub use self::builder::BudgetBuilder;

/// How many retries may be made, in proportion to what succeeds, so that a server in trouble is not
/// buried by the retries of everything it fails.
///
/// A budget is a handle: clones share the tokens. Use one for everything that fails together, such
/// as one host or one API key. A retry takes tokens when it is *scheduled*, so that retries which
/// are still waiting count; a call that succeeds on its first attempt puts some back.
///
/// | | default | |
/// |---|---|---|
/// | capacity | 500 | full at the start |
/// | a retry costs | 14 | about 35 retries in a row before anything succeeds |
/// | a retry after throttling costs | 5 | the server is there; waiting is the cure |
/// | a success on the first attempt puts back | 1 | so in the long run one call in 14 may be retried |
///
/// These are the numbers of the AWS SDKs' standard retry quota. A retry that succeeds gets its
/// tokens back.
///
/// Requests that provably never left, or that the peer refused without acting, have a quota of their
/// own ([`unsent`](BudgetBuilder::unsent)): by default 10, and a tenth of one back with each success,
/// as gRPC's retry throttling has it. They cost the server nothing, but a server that is down should
/// not be knocked at by every call three times.
///
/// # Cancellation
///
/// A call that is dropped gives back what it took, also while its retry is under way. Calls that are
/// given up by a time-out above Retry are therefore not counted: put the deadline into the request's
/// extensions instead, where Retry respects it.
#[derive(Clone, Debug)]
pub struct Budget(Option<Arc<Pools>>);

/// All amounts are in thousandths of a token.
#[derive(Debug)]
struct Pools {
    retries: Pool,
    unsent: Pool,
    transient_cost: u64,
    throttled_cost: u64,
    /// Whether a retry that succeeds gets its tokens back.
    refund: bool,
}

#[derive(Debug)]
struct Pool {
    capacity: u64,
    deposit: u64,
    tokens: AtomicU64,
}

/// Tokens that were taken for one retry, and go back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation(Option<(Arc<Pools>, Kind, u64)>);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Retry,
    Unsent,
}

/// Tokens are counted in thousandths, so that small percentages are not rounded away.
const SCALE: u64 = 1000;

// === impl Budget ===

impl Budget {
    /// Creates the default budget.
    #[must_use]
    pub fn new() -> Self {
        Self(Some(Arc::new(Pools {
            retries: Pool::full(500 * SCALE, SCALE),
            unsent: Pool::full(10 * SCALE, SCALE / 10),
            transient_cost: 14 * SCALE,
            throttled_cost: 5 * SCALE,
            refund: true,
        })))
    }

    /// Starts with the defaults, to change some.
    pub fn builder() -> BudgetBuilder {
        BudgetBuilder::default()
    }

    /// Allows retries for that percentage of the calls that succeed on their first attempt, beside a
    /// reserve of whole retries that is full at the start and never exceeded. A retry that succeeds
    /// stays paid for.
    ///
    /// # Errors
    ///
    /// If the percentage is not from 0.1 to 100 (`deposit_percent`), or the reserve is 0 (`capacity`).
    pub fn ratio(percent: f64, reserve: u32) -> Result<Self, ConfigError> {
        Self::builder()
            .capacity(reserve)
            .transient_cost(1)
            .throttled_cost(1)
            .deposit_percent(percent)
            .refund_on_success(false)
            .build()
    }

    /// Allows every retry. Nothing but the number of attempts then keeps retries from multiplying
    /// the load on a server in trouble.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self(None)
    }

    /// Returns how many whole tokens are left for retries, or `None` if there is no limit.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        let pools = self.0.as_ref()?;
        Some(pools.retries.tokens.load(Ordering::Relaxed) / SCALE)
    }

    /// Returns how many resends of requests that never left are left, or `None` if there is no
    /// limit.
    #[must_use]
    pub fn remaining_unsent(&self) -> Option<u64> {
        let pools = self.0.as_ref()?;
        Some(pools.unsent.tokens.load(Ordering::Relaxed) / SCALE)
    }

    /// Notes a call that succeeded on its first attempt.
    pub(crate) fn deposit(&self) {
        if let Some(pools) = &self.0 {
            pools.retries.put(pools.retries.deposit);
            pools.unsent.put(pools.unsent.deposit);
        }
    }

    /// Takes the tokens for one retry.
    pub(crate) fn reserve(&self, reason: Reason, delivery: Delivery) -> Option<Reservation> {
        let Some(pools) = &self.0 else {
            return Some(Reservation(None));
        };
        let (kind, cost) = if reason.is_throttling() {
            (Kind::Retry, pools.throttled_cost)
        } else if delivery.proves_not_applied() {
            (Kind::Unsent, SCALE)
        } else {
            (Kind::Retry, pools.transient_cost)
        };
        pools
            .pool(kind)
            .take(cost)
            .then(|| Reservation(Some((Arc::clone(pools), kind, cost))))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Pools ===

impl Pools {
    const fn pool(&self, kind: Kind) -> &Pool {
        match kind {
            Kind::Retry => &self.retries,
            Kind::Unsent => &self.unsent,
        }
    }
}

// === impl Pool ===

impl Pool {
    const fn full(capacity: u64, deposit: u64) -> Self {
        Self {
            capacity,
            deposit,
            tokens: AtomicU64::new(capacity),
        }
    }

    /// Puts tokens back, up to the capacity. A full pool, the normal case, is only read.
    fn put(&self, amount: u64) {
        let mut tokens = self.tokens.load(Ordering::Relaxed);
        while tokens < self.capacity {
            let more = tokens.saturating_add(amount).min(self.capacity);
            match self.tokens.compare_exchange_weak(
                tokens,
                more,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => tokens = now,
            }
        }
    }

    /// Takes tokens if there are enough, in one step: two callers cannot take the same ones.
    fn take(&self, amount: u64) -> bool {
        self.tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tokens| {
                tokens.checked_sub(amount)
            })
            .is_ok()
    }
}

// === impl Reservation ===

impl Reservation {
    /// The retry was made, and it succeeded.
    pub(crate) fn succeed(self) {
        if self.0.as_ref().is_some_and(|(pools, ..)| !pools.refund) {
            self.spend();
        }
    }

    /// Keeps the tokens from going back: the retry was made, and it failed.
    pub(crate) fn spend(mut self) {
        self.0 = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some((pools, kind, amount)) = self.0.take() {
            pools.pool(kind).put(amount);
        }
    }
}

#[cfg(test)]
mod tests;
