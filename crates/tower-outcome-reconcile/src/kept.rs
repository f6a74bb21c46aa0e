//! What is kept of a request that may end unknown.

use tokio::time::Instant;
use tower_outcome_core::{Attempt, CallContext, Classify, Deadline, Repeatable, replay::HeadCopy};

use crate::{OperationId, Told, config::Config, evidence::Known, resolutions::Registration};

/// What is kept of a request of which something may have to be found out.
pub(crate) struct Kept<S, T> {
    pub(crate) call: T,
    pub(crate) attempt: Attempt,
    pub(crate) id: OperationId,
    /// Where somebody may tell.
    pub(crate) registration: Option<Registration>,
    /// Where the server may have to be asked.
    pub(crate) copy: Option<Copy<S>>,
}

/// What it takes to ask.
pub(crate) struct Copy<S> {
    pub(crate) service: S,
    pub(crate) head: Option<HeadCopy>,
    pub(crate) context: Option<CallContext>,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) sent: Instant,
}

// === impl Kept ===

impl<S, T> Kept<S, T> {
    /// What somebody has told.
    #[inline]
    pub(crate) fn known(&self) -> Option<Known> {
        let registration = self.registration.as_ref()?;
        registration.take().map(Known::from)
    }

    /// Tells whoever watches what somebody has told of a call that is not unknown.
    pub(crate) fn tell<R, C>(&self, config: &Config<R, C>, known: &Known) {
        let (id, how) = (&self.id, known.how());
        config.observer.told(&Told { id, how });
    }

    pub(crate) fn repeatable<R, C: Classify<Call = T>>(&self, config: &Config<R, C>) -> Repeatable {
        config.classifier.repeatable(&self.call)
    }
}
