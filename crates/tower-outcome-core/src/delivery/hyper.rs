//! What an error of a hyper connection proves.

use std::error::Error;

use super::{Clue, Delivery, Evidence, FailureKind};
use crate::{BoxError, Failure, Outcome, Reason};

/// Reads hyper's outermost error. Its causes say why the connection died, not what became of the
/// request: a cancelled request legitimately carries "incomplete message" as its cause.
pub(super) fn clue(error: &(dyn Error + 'static), evidence: Evidence) -> Option<Clue> {
    let _ = evidence;
    let error = error.downcast_ref::<::hyper::Error>()?;
    if error.is_canceled() {
        // hyper keeps this word for requests of which no part reached the connection.
        return Some(Clue::Proof(Delivery::NotSent, FailureKind::Transport));
    }
    #[cfg(feature = "h2")]
    if let Some(error) = error.source().and_then(|error| error.downcast_ref()) {
        return Some(super::h2::refused(error, evidence.has_body));
    }
    Some(Clue::NoProof(if error.is_timeout() {
        FailureKind::TimedOut
    } else {
        FailureKind::Transport
    }))
}

/// Turns the error of `try_send_request` on a raw hyper connection into a [`Failure`].
///
/// A connection that hands the request back has not written any of it, which proves more than the
/// error alone. The request itself is dropped; a layer that resends keeps its own copy.
///
/// ```no_run
/// # use bytes::Bytes;
/// # use http::{Request, Response};
/// # use http_body_util::Full;
/// # use tower_outcome_core::BoxError;
/// async fn send(
///     connection: &mut hyper::client::conn::http1::SendRequest<Full<Bytes>>,
///     request: Request<Full<Bytes>>,
/// ) -> Result<Response<hyper::body::Incoming>, BoxError> {
///     connection
///         .try_send_request(request)
///         .await
///         .map_err(|error| tower_outcome_core::delivery::handed_back(error).into())
/// }
/// ```
pub fn handed_back<T>(mut error: ::hyper::client::conn::TrySendError<T>) -> Failure {
    let unsent = error.take_message().is_some();
    let error: BoxError = error.into_error().into();
    if unsent {
        let outcome = Outcome::Retryable {
            reason: Reason::Transport,
            after: None,
        };
        Failure::new(outcome, Delivery::NotSent, error)
    } else {
        super::failure(error, Evidence::default())
    }
}
