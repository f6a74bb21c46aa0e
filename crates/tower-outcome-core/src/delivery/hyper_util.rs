//! What an error of hyper-util's legacy client proves.

use std::error::Error;

use ::hyper_util::client::legacy;

use super::{Clue, Delivery, Evidence, FailureKind};
use crate::witness::LastWrite;

/// Reads the client's error: whether a connection had been chosen, and whether that connection
/// accepted a byte since the attempt began.
pub(super) fn clue(error: &(dyn Error + 'static), evidence: Evidence) -> Option<Clue> {
    let error = error.downcast_ref::<legacy::Error>()?;
    let Some(connected) = error.connect_info() else {
        // Every error made before a connection was chosen lacks it; all later ones have it. What
        // has no cause either is the client's complaint about the URI or the version.
        let kind = if !error.is_connect() && error.source().is_none() {
            FailureKind::InvalidRequest
        } else {
            FailureKind::Transport
        };
        return Some(Clue::Proof(Delivery::NotSent, kind));
    };
    if let Some(started) = evidence.started {
        let mut extras = http::Extensions::new();
        connected.get_extras(&mut extras);
        if LastWrite::of(&extras).is_some_and(|last| last.is_before(started)) {
            return Some(Clue::Unwritten);
        }
    }
    Some(Clue::KnownClient)
}
