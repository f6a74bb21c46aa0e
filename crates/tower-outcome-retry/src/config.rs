//! What a Retry layer goes by, shared by all its services.

use std::{fmt, sync::Arc, time::Duration};

use http::request;
use tower_outcome_core::Random;

use crate::{Backoff, Budget, Hints};

/// What a Retry layer goes by.
pub(crate) struct Config<C> {
    pub(crate) classifier: C,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Backoff,
    pub(crate) hints: Hints,
    pub(crate) elapsed: Option<Duration>,
    pub(crate) budget: BudgetSource,
    pub(crate) resend_if: Option<Box<ResendIf>>,
    pub(crate) drain_limit: usize,
    pub(crate) random: Arc<dyn Random>,
}

/// Which budget a call draws on.
pub(crate) enum BudgetSource {
    Shared(Budget),
    ByRequest(Box<ByRequest>),
}

pub(crate) type ResendIf = dyn Fn(&request::Parts) -> bool + Send + Sync;
pub(crate) type ByRequest = dyn Fn(&request::Parts) -> Budget + Send + Sync;

// === impl Config ===

impl<C: fmt::Debug> fmt::Debug for Config<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("classifier", &self.classifier)
            .field("max_attempts", &self.max_attempts)
            .field("backoff", &self.backoff)
            .field("hints", &self.hints)
            .field("elapsed", &self.elapsed)
            .field("budget", &self.budget)
            .field("drain_limit", &self.drain_limit)
            .finish_non_exhaustive()
    }
}

// === impl BudgetSource ===

impl fmt::Debug for BudgetSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(budget) => budget.fmt(f),
            Self::ByRequest(_) => f.write_str("by request"),
        }
    }
}
