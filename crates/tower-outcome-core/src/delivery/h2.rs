//! What an error of h2 proves. The one place that names types of h2.

use std::error::Error;

use super::{Clue, Delivery, FailureKind};

/// Reads the h2 error directly below hyper's outermost error, or one that a bare h2 client returned.
///
/// One that a known client holds deeper inside describes the connection's end, not this request.
pub(super) fn clue(error: &(dyn Error + 'static), known_client: bool) -> Option<Clue> {
    let error = error.downcast_ref::<::h2::Error>()?;
    Some(if known_client {
        Clue::NoProof(FailureKind::Transport)
    } else {
        refused(error)
    })
}

/// What the h2 error of a request's own stream says.
pub(super) fn refused(error: &::h2::Error) -> Clue {
    let refused_stream = error.is_reset() && error.reason() == Some(::h2::Reason::REFUSED_STREAM);
    // h2 gives a remote GOAWAY only to streams above its last stream identifier (RFC 9113, 6.8).
    if error.is_remote() && (error.is_go_away() || refused_stream) {
        Clue::Proof(Delivery::Refused, FailureKind::Transport)
    } else {
        Clue::NoProof(FailureKind::Transport)
    }
}
