//! What an answer says of the time and the nonce of its request.

use http::response;
use tower_outcome_core::{Decision, Reason, Resent};

use super::attempt::Signing;
use crate::{Resigned, SignReport, layer::Config};

/// Notes what the server had against the time or the nonce, and says whether to send once more.
#[cold]
pub(super) fn judge<A, C>(
    config: &Config<A, C>,
    signing: Option<&Signing>,
    decision: Decision,
    report: &mut SignReport,
) -> bool {
    // An answer of which nobody knows what it means proves nothing.
    let reason = decision
        .outcome
        .reason()
        .filter(|_| !decision.outcome.is_unknown());
    report.refused = match reason {
        Some(Reason::ClockSkew) => Some(Resigned::ClockSkew),
        Some(Reason::InvalidNonce) => Some(Resigned::InvalidNonce),
        _ => None,
    };
    if let (Some(nonces), Some(nonce)) = (&config.nonces, signing.and_then(Signing::nonce)) {
        // The rest may have been said before anybody looked at the nonce.
        let proves = matches!(reason, Some(Reason::Rejected | Reason::Duplicate));
        if report.refused == Some(Resigned::InvalidNonce) {
            nonces.refused(nonce);
        } else if proves || decision.outcome.is_success() {
            nonces.accepted(nonce);
        }
    }
    if let (Some(offset), Some(Resigned::ClockSkew)) = (&config.offset, report.refused) {
        offset.suspect();
    }
    // Once, whatever for: another refusal would not be cured by what did not cure the first.
    if report.resigned.is_some() {
        return false;
    }
    match report.refused {
        Some(Resigned::ClockSkew) => match (signing, report.offset) {
            (Some(signing), Some(heard)) => signing.was_wrong(config.skew_evidence, heard),
            _ => false,
        },
        Some(Resigned::InvalidNonce) => {
            let nonces = config.nonces.as_ref();
            nonces.is_some_and(|nonces| !nonces.is_stopped())
        }
        None => false,
    }
}

#[inline]
pub(super) fn publish_report(head: &mut response::Parts, report: SignReport) {
    if report.resigned.is_some() {
        // Those above have not paid for it.
        Resent::note(&mut head.extensions);
    }
    if report.refused.is_some() || report.resigned.is_some() {
        head.extensions.insert(report);
    }
}

pub(super) fn publish_end(head: &mut response::Parts, signing: Option<&Signing>) {
    if let Some(end) = signing.and_then(|signing| signing.valid_until) {
        head.extensions.insert(end);
    }
}
