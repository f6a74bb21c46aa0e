//! What is asked about.

use std::{fmt, time::SystemTime};

use http::{HeaderMap, Method, Uri, request};
use tokio::time::Instant;
use tower_outcome_core::{Attempt, Delivery, Outcome};

use crate::{OperationId, shown::ShownRequest};

/// What a [`Reconciler`](crate::Reconciler) is asked about: one attempt whose outcome is unknown.
///
/// Its `Debug` shows of the request the method, the path and the names of the headers.
#[derive(Clone)]
pub struct Inquiry {
    pub(crate) id: OperationId,
    pub(crate) head: Option<request::Parts>,
    pub(crate) outcome: Outcome,
    pub(crate) delivery: Delivery,
    pub(crate) attempt: Attempt,
    pub(crate) number: u32,
    pub(crate) sent: Instant,
    pub(crate) sent_at: SystemTime,
    pub(crate) starts_until: Option<Instant>,
    pub(crate) absent_from: Instant,
    pub(crate) is_received: bool,
    pub(crate) deadline: Instant,
}

// === impl Inquiry ===

impl Inquiry {
    /// Returns the name of the operation.
    #[must_use]
    pub const fn id(&self) -> &OperationId {
        &self.id
    }

    /// Returns the head of the request as it was handed to this layer, without a signature and a
    /// credential; `None` where the layer [keeps only ids](crate::Keep::Id).
    #[must_use]
    pub const fn head(&self) -> Option<&request::Parts> {
        self.head.as_ref()
    }

    /// Returns the method of the request, where its head is kept.
    #[must_use]
    pub fn method(&self) -> Option<&Method> {
        self.head.as_ref().map(|head| &head.method)
    }

    /// Returns the target of the request, where its head is kept.
    #[must_use]
    pub fn uri(&self) -> Option<&Uri> {
        self.head.as_ref().map(|head| &head.uri)
    }

    /// Returns the headers of the request, where its head is kept.
    #[must_use]
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.head.as_ref().map(|head| &head.headers)
    }

    /// Returns the outcome of the attempt, which is unknown for this reason.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns how far the attempt got.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Returns which attempt it was, and whether an earlier one may have been applied.
    #[must_use]
    pub const fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Returns the number of this inquiry; the first is 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns when the attempt was handed down.
    #[must_use]
    pub const fn sent(&self) -> Instant {
        self.sent
    }

    /// Returns the wall time at which the attempt was handed down: for servers that have to be asked for
    /// a list, since then.
    #[must_use]
    pub const fn sent_at(&self) -> SystemTime {
        self.sent_at
    }

    /// Returns until when the server may still begin to work on the request, as far as its signatures
    /// say.
    #[must_use]
    pub const fn starts_until(&self) -> Option<Instant> {
        self.starts_until
    }

    /// Returns from when on "not found" can mean that it was not applied.
    #[must_use]
    pub const fn absent_from(&self) -> Instant {
        self.absent_from
    }

    /// Returns whether the server is known to have received the request: it called it a duplicate, or
    /// knew it when it was asked before.
    #[must_use]
    pub const fn is_received(&self) -> bool {
        self.is_received
    }

    /// Returns when asking ends.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inquiry")
            .field("id", &self.id)
            .field("head", &self.head.as_ref().map(ShownRequest))
            .field("outcome", &self.outcome)
            .field("delivery", &self.delivery)
            .field("attempt", &self.attempt)
            .field("number", &self.number)
            .field("is_received", &self.is_received)
            .finish_non_exhaustive()
    }
}
