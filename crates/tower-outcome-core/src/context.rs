//! What layers tell each other about a call while it lasts.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU8, AtomicU32, Ordering},
};

use http::Extensions;

use crate::{Delivery, Outcome, ValidUntil};

/// What layers tell each other about a call while it lasts.
///
/// A layer that needs to know (a deadline that must say what had happened when it struck) creates
/// the context and puts it into the request's extensions; layers below find it and keep it up to
/// date. Where nobody asks, nobody pays. Clones share the same state.
///
/// Every attempt of a call sees the same context, since a resend keeps the request's extensions.
#[derive(Clone, Debug, Default)]
pub struct CallContext(Arc<State>);

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting in a queue of this process; where a call starts.
    Queued,
    /// Waiting for a credential.
    AwaitingToken,
    /// Waiting between two attempts.
    BackingOff,
    /// Handed to the transport, which has taken nothing of its body yet.
    Connecting,
    /// The transport is taking the request body.
    Sending,
    /// The transport has taken the whole request.
    AwaitingHead,
    /// The response head is here.
    ReadingBody,
}

#[derive(Debug, Default)]
struct State {
    phase: AtomicU8,
    attempts: AtomicU32,
    /// Held for a copy in and out, never across an await.
    last: Mutex<Option<(Outcome, Delivery)>>,
    /// The same.
    valid_until: Mutex<Option<ValidUntil>>,
}

// === impl CallContext ===

impl CallContext {
    /// Creates the context of a call that has just started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the context that the extensions of a request carry.
    #[must_use]
    #[inline]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        // Mostly there are none, and then nothing is looked up.
        if extensions.is_empty() {
            return None;
        }
        extensions.get::<Self>()
    }

    /// Notes where the call stands.
    pub fn enter(&self, phase: Phase) {
        self.0.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Returns where the call stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.0.phase.load(Ordering::Relaxed) {
            1 => Phase::AwaitingToken,
            2 => Phase::BackingOff,
            3 => Phase::Connecting,
            4 => Phase::Sending,
            5 => Phase::AwaitingHead,
            6 => Phase::ReadingBody,
            _ => Phase::Queued,
        }
    }

    /// Notes that an attempt is about to be handed down.
    pub fn begin_attempt(&self) {
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many attempts have been handed down.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts.load(Ordering::Relaxed)
    }

    /// Notes how an attempt ended. The furthest delivery of all attempts is kept.
    pub fn end_attempt(&self, outcome: Outcome, delivery: Delivery) {
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let furthest = last.map_or(delivery, |(_, before)| before.furthest(delivery));
        *last = Some((outcome, furthest));
    }

    /// Returns the outcome of the last attempt that ended, and the furthest delivery so far.
    #[must_use]
    pub fn last(&self) -> Option<(Outcome, Delivery)> {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes until when a signature of this call is valid. The latest of all attempts is kept: only
    /// after it can none of them start any more.
    pub fn note_valid_until(&self, end: ValidUntil) {
        let mut kept = self.lock_valid_until();
        *kept = (*kept).max(Some(end));
    }

    /// Returns the instant after which no attempt of this call can start any more, as far as its
    /// signatures say.
    #[must_use]
    pub fn valid_until(&self) -> Option<ValidUntil> {
        *self.lock_valid_until()
    }

    fn lock_valid_until(&self) -> std::sync::MutexGuard<'_, Option<ValidUntil>> {
        let kept = &self.0.valid_until;
        kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Phase ===

impl Phase {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::AwaitingToken => "awaiting_token",
            Self::BackingOff => "backing_off",
            Self::Connecting => "connecting",
            Self::Sending => "sending",
            Self::AwaitingHead => "awaiting_head",
            Self::ReadingBody => "reading_body",
        }
    }
}
