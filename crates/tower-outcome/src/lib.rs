//! Placeholder docs.

pub use tower_outcome_core::*;

/// Sending a request again, only when that is proven or declared safe.
#[cfg(feature = "retry")]
pub use tower_outcome_retry as retry;
#[cfg(feature = "retry")]
pub use tower_outcome_retry::{
    Backoff, Budget, Hints, IdempotencyKey, IdempotencyKeyLayer, Jitter, NoResend, RetryLayer,
};
