//! Configuring a budget.

use std::sync::Arc;

use tower_outcome_core::ConfigError;

use super::{Budget, Pool, Pools, SCALE};

/// Builds a [`Budget`]; start with [`Budget::builder`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BudgetBuilder {
    capacity: u32,
    transient_cost: u32,
    throttled_cost: u32,
    deposit_percent: f64,
    unsent: u32,
    refund: bool,
}

// === impl BudgetBuilder ===

impl BudgetBuilder {
    /// Sets how many tokens the budget holds: by default 500. It is full at the start.
    pub const fn capacity(mut self, tokens: u32) -> Self {
        self.capacity = tokens;
        self
    }

    /// Sets what a retry costs: by default 14 tokens.
    pub const fn transient_cost(mut self, tokens: u32) -> Self {
        self.transient_cost = tokens;
        self
    }

    /// Sets what a retry costs after the server asked for fewer requests: by default 5 tokens.
    pub const fn throttled_cost(mut self, tokens: u32) -> Self {
        self.throttled_cost = tokens;
        self
    }

    /// Sets how many hundredths of a token a success on the first attempt puts back: by default
    /// 100, which is one token.
    pub const fn deposit_percent(mut self, percent: f64) -> Self {
        self.deposit_percent = percent;
        self
    }

    /// Sets how many resends of requests that never left, or that the peer refused without acting,
    /// are allowed in a row: by default 10. Ten successes put one back. 0 forbids them.
    pub const fn unsent(mut self, resends: u32) -> Self {
        self.unsent = resends;
        self
    }

    /// Sets whether a retry that succeeds gets its tokens back: by default it does, as in the AWS
    /// SDKs. Without that, every retry is paid for, and the share of retries is bounded for good.
    pub const fn refund_on_success(mut self, refund: bool) -> Self {
        self.refund = refund;
        self
    }

    /// Builds the budget.
    ///
    /// # Errors
    ///
    /// If a retry costs nothing, if the capacity is below the cost of one retry, so that none could
    /// ever be made, or if the deposit is not from a tenth of a percent to 100 percent.
    pub fn build(self) -> Result<Budget, ConfigError> {
        for (field, cost) in [
            ("transient_cost", self.transient_cost),
            ("throttled_cost", self.throttled_cost),
        ] {
            if cost == 0 {
                return Err(ConfigError::new(
                    field,
                    cost,
                    "at least 1 token; Budget::unlimited() allows every retry",
                ));
            }
        }
        if self.capacity < self.transient_cost.max(self.throttled_cost) {
            return Err(ConfigError::new(
                "capacity",
                self.capacity,
                "at least the cost of one retry, or none could ever be made",
            ));
        }
        if !(0.1..=100.0).contains(&self.deposit_percent) {
            return Err(ConfigError::new(
                "deposit_percent",
                self.deposit_percent,
                "a percentage from 0.1 to 100",
            ));
        }
        // Rounded down, so that no more is ever allowed than was asked for. A thousandth of a token
        // is a tenth of a percent. The nudge undoes what binary fractions lose: 0.3 * 10 is 2.99….
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 1000 by the check above"
        )]
        let deposit = (self.deposit_percent * 10.0 + 1e-9).floor() as u64;
        Ok(Budget(Some(Arc::new(Pools {
            retries: Pool::full(u64::from(self.capacity) * SCALE, deposit),
            unsent: Pool::full(u64::from(self.unsent) * SCALE, SCALE / 10),
            transient_cost: u64::from(self.transient_cost) * SCALE,
            throttled_cost: u64::from(self.throttled_cost) * SCALE,
            refund: self.refund,
        }))))
    }
}

impl Default for BudgetBuilder {
    fn default() -> Self {
        Self {
            capacity: 500,
            transient_cost: 14,
            throttled_cost: 5,
            deposit_percent: 100.0,
            unsent: 10,
            refund: true,
        }
    }
}
