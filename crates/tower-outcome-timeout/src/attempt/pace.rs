//! How the transport gets on with a request body, and when.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tower_outcome_core::{AttemptWitness, BodyTaken, BodyWitness};

use super::bounds::Bounds;

/// How the transport gets on with a request body, shared with that body.
#[derive(Debug)]
pub(super) struct Pace {
    started: Instant,
    /// `None` where a request may be complete without its body.
    body: Option<BodyWitness>,
    /// What happened last and, in the upper bits, the nanoseconds from the start until then.
    last: AtomicU64,
}

/// What happened last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The transport has not looked at the request.
    Untouched,
    /// The transport has begun, or has taken a frame: the next move is its own.
    Taking(Instant),
    /// The transport asked for more than the source of the body had.
    Starved,
    /// The transport has the whole request.
    Whole(Instant),
}

const UNTOUCHED: u64 = 0;
const TAKING: u64 = 1;
const STARVED: u64 = 2;
const WHOLE: u64 = 3;

// === impl Pace ===

impl Pace {
    /// Returns one where somebody needs to know.
    #[inline]
    pub(super) fn of(
        bounds: &Bounds,
        started: Instant,
        witness: &AttemptWitness,
    ) -> Option<Arc<Self>> {
        (bounds.head.is_some() || bounds.write_idle.is_some()).then(|| {
            Arc::new(Self {
                started,
                body: witness.body().cloned(),
                last: AtomicU64::new(UNTOUCHED),
            })
        })
    }

    pub(super) fn progress(&self) -> Progress {
        let last = self.last.load(Ordering::Acquire);
        let at = self.started + Duration::from_nanos(last >> 2);
        match last & 3 {
            UNTOUCHED => Progress::Untouched,
            TAKING => Progress::Taking(at),
            STARVED => Progress::Starved,
            _ => Progress::Whole(at),
        }
    }

    /// The transport has looked at the request without taking anything: at first that is where the
    /// request begins, and it may be all there is of it.
    pub(super) fn looked_at(&self) {
        if self.is_whole() {
            self.note(WHOLE);
        } else if self.last.load(Ordering::Relaxed) == UNTOUCHED {
            self.note(TAKING);
        }
    }

    /// The transport was given a frame, or told that there is none left.
    pub(super) fn took(&self) {
        self.note(if self.is_whole() { WHOLE } else { TAKING });
    }

    /// The source of the body had nothing.
    pub(super) fn starved(&self) {
        self.note(STARVED);
    }

    /// A request without a witness may be complete as soon as it is looked at.
    fn is_whole(&self) -> bool {
        self.body
            .as_ref()
            .is_none_or(|body| body.taken() == BodyTaken::Whole)
    }

    /// One poller at a time calls this.
    fn note(&self, what: u64) {
        if self.last.load(Ordering::Relaxed) & 3 == WHOLE {
            return;
        }
        // 146 years of nanoseconds fit.
        let nanos = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(nanos << 2 | what, Ordering::Release);
    }
}
