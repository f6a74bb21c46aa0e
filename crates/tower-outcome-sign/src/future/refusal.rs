//! An answer that refuses the time or the nonce, while its request is on its way once more.

use std::task::Context;

use http::{Response, response};
use http_body::Body;
use tower_outcome_core::{
    BoxError, CallContext, Delivery, Hold, Outcome, Phase, Reason,
    peek::{Peek, PeekBody},
};

use crate::{Draft, Resigned, future::LAYER};

/// How much of the body of a refusal is read while it is kept, in bytes, so that its connection is
/// free for the second sending.
const KEPT: usize = 64 * 1024;

/// An answer that refuses the time or the nonce. It is the caller's if the request cannot be sent
/// once more after all.
pub(super) struct Refusal<RB> {
    head: response::Parts,
    peek: Peek<RB>,
}

// === impl Refusal ===

impl<RB> Refusal<RB> {
    #[cold]
    pub(super) fn new(head: response::Parts, body: PeekBody<RB>) -> Box<Self> {
        Box::new(Self {
            head,
            peek: body.peek(KEPT),
        })
    }

    /// What the caller gets of a request that could not be sent: the refusal, if there was one. Then
    /// "not sent" would be a lie.
    #[cold]
    pub(super) fn or(
        kept: &mut Option<Box<Self>>,
        error: BoxError,
    ) -> Result<Response<PeekBody<RB>>, BoxError> {
        match kept.take() {
            Some(refusal) => Ok(Response::from_parts(refusal.head, refusal.peek.into_body())),
            None => Err(error),
        }
    }
}

impl<RB> Refusal<RB>
where
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    /// Reads on.
    pub(super) fn read(&mut self, cx: &mut Context<'_>) {
        // Whatever comes of it: the second sending does not wait for it.
        let _ = self.peek.poll_peek(cx);
    }
}

/// Tells those above, where there are any, that nothing was done, and that nothing of the second
/// sending has left yet.
#[cold]
pub(super) fn hold_again(draft: Option<&Draft>, refused: Option<Resigned>) -> Option<Hold> {
    let context = CallContext::of(&draft?.head().extensions)?;
    let reason = match refused {
        Some(Resigned::InvalidNonce) => Reason::InvalidNonce,
        _ => Reason::ClockSkew,
    };
    let outcome = Outcome::Retryable {
        reason,
        after: None,
    };
    context.end_attempt(outcome, Delivery::Refused);
    Some(context.hold(LAYER, Phase::Queued))
}
