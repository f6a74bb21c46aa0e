//! Why a handle on a replayable body yields nothing any more.

use std::{error::Error, fmt};

/// A later attempt has taken the body over.
///
/// Raised by the [`ReplayBody`](super::ReplayBody) of an abandoned attempt, so that it can
/// neither take frames from the attempt that replaced it nor wait for ever.
#[derive(Debug)]
pub struct Superseded {
    _private: (),
}

/// The start of the body is no longer kept, so it cannot be sent again.
///
/// Raised by a [`ReplayBody`](super::ReplayBody) that was made while a replay was still possible,
/// but was first read after the body had crossed its bound or had failed. Nothing of the body
/// has been yielded by that handle, so no complete request left this process.
#[derive(Debug)]
pub struct NotReplayable {
    _private: (),
}

// === impl Superseded ===

impl Superseded {
    pub(super) const fn new() -> Self {
        Self { _private: () }
    }
}

impl fmt::Display for Superseded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("request body was taken over by a later attempt")
    }
}

impl Error for Superseded {}

// === impl NotReplayable ===

impl NotReplayable {
    pub(super) const fn new() -> Self {
        Self { _private: () }
    }
}

impl fmt::Display for NotReplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("request body is no longer kept and cannot be sent again")
    }
}

impl Error for NotReplayable {}
