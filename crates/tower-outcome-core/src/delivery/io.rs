//! What a bare error of the operating system proves.

use std::{
    error::Error,
    io::{self, ErrorKind},
};

use super::{Clue, Delivery, FailureKind};

/// Reads an I/O error that no known client has wrapped.
pub(super) fn clue(error: &(dyn Error + 'static), known_client: bool) -> Option<Clue> {
    let error = error.downcast_ref::<io::Error>()?;
    Some(match error.kind() {
        // On TCP only connect(2) yields these two. "Host unreachable" and "network unreachable" are
        // reported by established sockets as well.
        ErrorKind::ConnectionRefused | ErrorKind::AddrNotAvailable if !known_client => {
            Clue::Proof(Delivery::NotSent, FailureKind::Transport)
        }
        ErrorKind::TimedOut => Clue::NoProof(FailureKind::TimedOut),
        // An I/O error is often only a wrapper around somebody else's error; look inside.
        ErrorKind::Other => Clue::Nothing,
        ErrorKind::BrokenPipe
        | ErrorKind::ConnectionAborted
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => Clue::NoProof(FailureKind::Transport),
        _ => Clue::Nothing,
    })
}
