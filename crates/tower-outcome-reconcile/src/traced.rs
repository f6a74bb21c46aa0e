//! An observer that tells `tracing`.

use crate::{Observer, Resolved, Told, Unknown, Unresolved};

/// Tells `tracing` what a layer meets, with the target `tower_outcome_reconcile`.
///
/// | event | level | fields |
/// |---|---|---|
/// | `unknown` | warn | `reason` |
/// | `resolved` | info | `reason`, `how`, `inquiries`, `took_ms` |
/// | `unresolved` | error | `reason`, `why`, `inquiries`, `took_ms` |
/// | `told` | info | `how` |
///
/// Each has the name of the operation in `id`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traced(());

// === impl Traced ===

impl Traced {
    /// Creates the observer.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl Observer for Traced {
    fn unknown(&self, event: &Unknown<'_>) {
        tracing::warn!(id = ?event.id, reason = event.reason.label(), "unknown");
    }

    fn resolved(&self, event: &Resolved<'_>) {
        tracing::info!(
            id = ?event.id,
            reason = event.reason.label(),
            how = event.how.label(),
            inquiries = event.inquiries,
            took_ms = u64::try_from(event.took.as_millis()).unwrap_or(u64::MAX),
            "resolved"
        );
    }

    fn unresolved(&self, event: &Unresolved<'_>) {
        tracing::error!(
            id = ?event.id,
            reason = event.reason.label(),
            why = event.why.label(),
            inquiries = event.inquiries,
            took_ms = u64::try_from(event.took.as_millis()).unwrap_or(u64::MAX),
            "unresolved"
        );
    }

    fn told(&self, event: &Told<'_>) {
        tracing::info!(id = ?event.id, how = event.how.label(), "told");
    }
}
