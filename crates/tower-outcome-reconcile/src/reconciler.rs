//! Asking the server.

use tower_outcome_core::BoxError;

use crate::{Finding, Inquiry, Through};

/// Asks the server what became of a request.
///
/// Closures and async functions of an [`Inquiry`] work, for asking with a client of one's own. To ask
/// through the stack below the layer, use [`ByQuery`](crate::ByQuery), or implement the trait and
/// [send](Through::send) through what it is given.
///
/// `S` is the service below the layer and `B` the body of its requests.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not ask what became of a request",
    note = "use an async closure of an `Inquiry`, `ByQuery`, or implement `Reconciler`"
)]
pub trait Reconciler<S, B>: Send + Sync + 'static {
    /// Asks once. The layer asks again, in its own time.
    ///
    /// # Errors
    ///
    /// Whatever kept it from asking: it is evidence of nothing, never becomes the error of the call, and
    /// may carry how long to wait in a [`Failure`](tower_outcome_core::Failure).
    ///
    /// # Cancellation
    ///
    /// The future is dropped when it takes too long, when the call is dropped, and when somebody else
    /// says what became of the request.
    fn ask(
        &self,
        inquiry: Inquiry,
        through: Through<S>,
    ) -> impl Future<Output = Result<Finding, BoxError>> + Send;
}

// === impl Reconciler ===

impl<F, Fut, E, S, B> Reconciler<S, B> for F
where
    F: Fn(Inquiry) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Finding, E>> + Send,
    E: Into<BoxError>,
    S: Send,
{
    async fn ask(&self, inquiry: Inquiry, through: Through<S>) -> Result<Finding, BoxError> {
        // Nothing of the stack is held meanwhile.
        drop(through);
        self(inquiry).await.map_err(Into::into)
    }
}
