//! What an error of a tonic channel proves.
//!
//! tonic's mapping of transport failures to status codes depends on its Cargo features, so the code
//! is never looked at: only the chain of causes is.

use std::error::Error;

use super::{Clue, Delivery, FailureKind};
use crate::{Failure, failure::chain};

/// Reads the errors that tonic puts around those of hyper.
pub(super) fn clue(error: &(dyn Error + 'static)) -> Option<Clue> {
    if error.is::<::tonic::ConnectError>() {
        return Some(Clue::Proof(Delivery::NotSent, FailureKind::Transport));
    }
    if error.is::<::tonic::TimeoutExpired>() {
        return Some(Clue::NoProof(FailureKind::TimedOut));
    }
    if error.is::<::tonic::transport::Error>() {
        return Some(Clue::KnownClient);
    }
    if error.is::<::tonic::Status>() {
        // A status made from a body error has no transport error below it; what looks like a
        // refused stream there was a call that the server had begun to answer.
        let before_head = chain(error)
            .any(|error| error.is::<::tonic::transport::Error>() || error.is::<Failure>());
        return Some(if before_head {
            Clue::KnownClient
        } else {
            Clue::NoProof(FailureKind::Transport)
        });
    }
    None
}
