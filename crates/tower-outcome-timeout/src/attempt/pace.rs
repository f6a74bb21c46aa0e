//! How the transport gets on with a request body, and when.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Buf;
use http::{Method, Version, header::CONTENT_LENGTH, request};
use http_body::{Body, Frame};
use tokio::time::Instant;

use super::bounds::Bounds;

/// How the transport gets on with a request body, shared with that body.
#[derive(Debug)]
pub(super) struct Pace {
    started: Instant,
    /// Whether a request may be complete as soon as the transport looks at it.
    whole_at_sight: bool,
    /// Whether the request was handed down, so that it is the transport that looks at it.
    handed_down: AtomicBool,
    /// How many bytes the peer goes by, where they are declared.
    declared: Option<u64>,
    taken: AtomicU64,
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
    pub(super) fn of<B: Body>(
        bounds: &Bounds,
        started: Instant,
        head: &request::Parts,
        body: &B,
    ) -> Option<Arc<Self>> {
        if bounds.head.is_none() && bounds.write_idle.is_none() {
            return None;
        }
        Some(Arc::new(Self::new(started, head, body)))
    }

    #[cold]
    fn new<B: Body>(started: Instant, head: &request::Parts, body: &B) -> Self {
        let declared = head.headers.get(CONTENT_LENGTH);
        let declared = declared.and_then(|value| value.to_str().ok()?.parse().ok());
        let length = declared.or_else(|| body.size_hint().exact());
        // HTTP/1 has no framing for these, and hyper leaves the body out.
        let left_out = length.is_none()
            && (matches!(head.method, Method::GET | Method::HEAD | Method::CONNECT)
                || head.version < Version::HTTP_11);
        Self {
            started,
            whole_at_sight: left_out || length == Some(0) || body.is_end_stream(),
            handed_down: AtomicBool::new(false),
            declared,
            taken: AtomicU64::new(0),
            last: AtomicU64::new(UNTOUCHED),
        }
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

    /// The request was handed down. Whoever has looked at it before was a layer on the way.
    pub(super) fn handed_down(&self) {
        self.handed_down.store(true, Ordering::Release);
    }

    /// The transport has looked at the request without taking anything: at first that is where the
    /// request begins, and it may be told that there is nothing (more) to take.
    pub(super) fn looked_at(&self, ended: bool) {
        if !self.handed_down.load(Ordering::Acquire) {
            return;
        }
        if ended || self.whole_at_sight {
            self.note(WHOLE);
        } else if self.last.load(Ordering::Relaxed) == UNTOUCHED {
            self.note(TAKING);
        }
    }

    /// The transport was given a frame, or told that there is none left.
    pub(super) fn took<D: Buf, E>(&self, frame: Option<&Result<Frame<D>, E>>, ended: bool) {
        let whole = match frame {
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) => {
                    let bytes = data.remaining() as u64;
                    let before = self.taken.load(Ordering::Relaxed);
                    let taken = before.saturating_add(bytes);
                    self.taken.store(taken, Ordering::Relaxed);
                    ended || self.declared.is_some_and(|declared| taken >= declared)
                }
                // Trailers are the last frame of any body.
                None => true,
            },
            // After an error there is nothing more to take either.
            Some(Err(_)) | None => true,
        };
        self.note(if whole { WHOLE } else { TAKING });
    }

    /// The body was dropped: whatever the transport made of it, it wants no more.
    pub(super) fn dropped(&self) {
        self.note(WHOLE);
    }

    /// The source of the body had nothing.
    pub(super) fn starved(&self) {
        self.note(STARVED);
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
