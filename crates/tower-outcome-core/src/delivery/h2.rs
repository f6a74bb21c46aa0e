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
        // h2 itself gives a remote GOAWAY only to streams above its last stream identifier.
        refused(error, true)
    })
}

/// What the h2 error of a request says.
///
/// REFUSED_STREAM always belongs to the request's own stream. A GOAWAY does if it comes from the
/// stream, which is then above the last stream identifier (RFC 9113, section 6.8). But hyper asks
/// the *connection* whether it is well right after it has handed a request's head over, and passes
/// its error off as the request's; another thread may have written the head by then, and the peer
/// may have acted on it before it said GOAWAY, or may write it only now, so that a connection which
/// has accepted nothing yet proves nothing either. hyper sends no body in that case, so only a request
/// that is complete with its head is in doubt.
pub(super) fn refused(error: &::h2::Error, goaway_counts: bool) -> Clue {
    if error.is_go_away() && !goaway_counts {
        return Clue::InDoubt(FailureKind::Transport);
    }
    let refused_stream = error.is_reset() && error.reason() == Some(::h2::Reason::REFUSED_STREAM);
    if error.is_remote() && (error.is_go_away() || refused_stream) {
        Clue::Proof(Delivery::Refused, FailureKind::Transport)
    } else {
        Clue::NoProof(FailureKind::Transport)
    }
}
