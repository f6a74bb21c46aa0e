//! Asking through the stack below.

use std::{fmt, future::poll_fn};

use http::Request;
use tokio::time::Instant;
use tower_outcome_core::{BoxError, CallContext, Deadline, Priority};
use tower_service::Service;

/// The stack below the layer, for one inquiry: what is sent through it has a credential, waits its turn
/// and is signed as any other request.
pub struct Through<S> {
    service: S,
    priority: Priority,
    deadline: Instant,
}

// === impl Through ===

impl<S> Through<S> {
    pub(crate) const fn new(service: S, priority: Priority, deadline: Instant) -> Self {
        Self {
            service,
            priority,
            deadline,
        }
    }

    /// Sends a request, once the stack is ready for it.
    ///
    /// It has a deadline and a context of its own, so that it says nothing about the call, and the
    /// priority that the layer is set to, unless it brings one.
    ///
    /// # Errors
    ///
    /// Those of the stack.
    pub async fn send<B>(mut self, mut request: Request<B>) -> Result<S::Response, BoxError>
    where
        S: Service<Request<B>>,
        S::Error: Into<BoxError>,
    {
        let extensions = request.extensions_mut();
        if extensions.get::<Priority>().is_none() {
            extensions.insert(self.priority);
        }
        let context = CallContext::with_deadline(Some(Deadline::at(self.deadline)));
        context.put(extensions);
        let ready = poll_fn(|cx| self.service.poll_ready(cx)).await;
        ready.map_err(Into::into)?;
        context.begin_attempt();
        self.service.call(request).await.map_err(Into::into)
    }

    /// Returns when the inquiry ends.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl<S> fmt::Debug for Through<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Through")
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
