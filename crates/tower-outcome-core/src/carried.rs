//! What of this family a request carries in its extensions.

use std::sync::Arc;

use http::Extensions;

use crate::{CallContext, Deadline, Stage};

/// What of this family a request carries in its extensions: one thing, so that one look finds all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) context: Option<CallContext>,
    /// The mark of the lowest layer that the request has passed.
    pub(crate) stamp: Option<Arc<Stamp>>,
}

/// The mark of a layer, and of all above it.
#[derive(Debug)]
pub(crate) struct Stamp {
    pub(crate) stage: Stage,
    pub(crate) above: Option<Arc<Self>>,
}

// === impl Carried ===

impl Carried {
    #[inline]
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        // Mostly there are none, and then nothing is looked up.
        if extensions.is_empty() {
            return None;
        }
        extensions.get::<Self>()
    }

    /// Returns the deadline of the call, if the context has one.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.context.as_ref()?.deadline()
    }
}
