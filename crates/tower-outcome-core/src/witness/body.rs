//! Watching how much of a request body the transport takes.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http::{Method, Version, request};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::attempt::Announced;
use crate::BoxError;

pin_project! {
    /// A request body that tells a [`BodyWitness`] how much of it the transport has taken.
    ///
    /// Frames, trailers, `size_hint` and `is_end_stream` are those of the inner body, so a body of
    /// known length keeps its content-length on the wire. If the inner body fails, the transport
    /// gets a [`RequestBodyError`] without the cause, and the witness keeps the cause: HTTP/2
    /// connections would lose it.
    #[derive(Debug)]
    pub struct WitnessBody<B> {
        #[pin]
        inner: B,
        witness: Option<BodyWitness>,
    }
}

/// Knows how much of a request body the transport has taken. Clones share what they know.
#[derive(Clone, Debug)]
pub struct BodyWitness(Arc<State>);

/// How much of a request body the transport has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyTaken {
    /// The transport never asked for the body.
    Nothing,
    /// The transport took some frames, and not the last.
    Part,
    /// The transport took the whole body.
    Whole,
    /// The body failed before its end.
    Failed,
}

/// Says that a request body failed while it was being sent: the caller's error, not the server's.
#[derive(Debug)]
pub struct RequestBodyError {
    source: Option<BoxError>,
    transport: Option<BoxError>,
}

#[derive(Debug)]
struct State {
    taken: AtomicU8,
    bytes: AtomicU64,
    /// The length at which the peer considers the body complete; `u64::MAX` while none is known.
    length: AtomicU64,
    /// Held to put the error in or take it out.
    error: Mutex<Option<BoxError>>,
}

const NOTHING: u8 = 0;
const PART: u8 = 1;
const WHOLE: u8 = 2;
const FAILED: u8 = 3;
/// Added to the others once nothing more may be taken.
const SEALED: u8 = 4;

// === impl WitnessBody ===

impl<B: Body> WitnessBody<B> {
    /// Wraps the body of a request with this head, and returns its witness.
    ///
    /// There is none where the request may be complete without its body: an empty body, or one of
    /// unknown length for which HTTP/1 has no framing, so that hyper leaves it out (`GET`, `HEAD`
    /// and `CONNECT`, and every method before HTTP/1.1), or one whose declared length cannot be
    /// read.
    pub fn new(inner: B, head: &request::Parts) -> (Self, Option<BodyWitness>) {
        let announced = Announced::of(&head.headers);
        Self::announced(inner, &head.method, head.version, announced)
    }

    #[inline]
    pub(super) fn announced(
        inner: B,
        method: &Method,
        version: Version,
        announced: Announced,
    ) -> (Self, Option<BodyWitness>) {
        // A caller may declare a length that the body itself does not know. The peer goes by the
        // header, so a body of that many bytes is complete even if the transport asks no further.
        let length = announced
            .length
            .flatten()
            .or_else(|| inner.size_hint().exact());
        let may_be_left_out = announced.may_be_left_out(length, method, version);
        if inner.is_end_stream() || length == Some(0) || may_be_left_out {
            return (
                Self {
                    inner,
                    witness: None,
                },
                None,
            );
        }
        let witness = BodyWitness(Arc::new(State {
            taken: AtomicU8::new(NOTHING),
            bytes: AtomicU64::new(0),
            length: AtomicU64::new(length.unwrap_or(u64::MAX)),
            error: Mutex::new(None),
        }));
        (
            Self {
                inner,
                witness: Some(witness.clone()),
            },
            Some(witness),
        )
    }

    /// Returns the inner body.
    pub fn get_ref(&self) -> &B {
        &self.inner
    }

    /// Returns the inner body, by value.
    pub fn into_inner(self) -> B {
        self.inner
    }
}

impl<B> Body for WitnessBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        let mut inner = this.inner;
        let Some(witness) = this.witness else {
            let frame = ready!(inner.poll_frame(cx));
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        };
        let state = &*witness.0;
        if state.is_sealed() {
            return Poll::Ready(Some(Err(RequestBodyError::withheld())));
        }
        // NOTE: a frame is handed out only if it could be noted, so that whoever seals the body
        // knows of every frame that the transport has or will ever get.
        let noted = match ready!(inner.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map(|data| data.remaining() as u64);
                state
                    .took(bytes, inner.is_end_stream())
                    .then_some(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                state.failed(error.into());
                Some(Some(Err(RequestBodyError::withheld())))
            }
            None => state.ended().then_some(None),
        };
        Poll::Ready(noted.unwrap_or_else(|| Some(Err(RequestBodyError::withheld()))))
    }

    // NOTE: a transport may learn from either hint that nothing more comes, and end the request
    // without asking for another frame. So both tell the witness what they tell the transport, and
    // once the body is sealed they do not tell the end any more.
    fn is_end_stream(&self) -> bool {
        let ended = self.inner.is_end_stream();
        match &self.witness {
            Some(witness) if ended => witness.0.ended(),
            _ => ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.inner.size_hint();
        if let (Some(left), Some(witness)) = (hint.exact(), &self.witness) {
            if !witness.0.announced(left) {
                return SizeHint::new();
            }
        }
        hint
    }
}

// === impl BodyWitness ===

impl BodyWitness {
    /// Returns how much the transport has taken so far.
    #[must_use]
    pub fn taken(&self) -> BodyTaken {
        BodyTaken::from_bits(self.0.taken.load(Ordering::SeqCst))
    }

    /// Returns how much the transport has taken, and lets it take nothing more.
    ///
    /// An attempt that was given up may still be on its way to the connection. Once it is sealed,
    /// what this returns stays true: a body that was not whole never will be.
    #[must_use]
    pub fn seal(&self) -> BodyTaken {
        BodyTaken::from_bits(self.0.taken.fetch_or(SEALED, Ordering::SeqCst))
    }

    /// Returns how many bytes the transport has taken so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::SeqCst)
    }

    /// Takes the error with which the body failed.
    #[must_use]
    pub fn take_error(&self) -> Option<BoxError> {
        self.0
            .error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

// === impl BodyTaken ===

impl BodyTaken {
    const fn from_bits(bits: u8) -> Self {
        match bits & !SEALED {
            NOTHING => Self::Nothing,
            PART => Self::Part,
            FAILED => Self::Failed,
            _ => Self::Whole,
        }
    }
}

// === impl State ===

impl State {
    fn is_sealed(&self) -> bool {
        self.taken.load(Ordering::SeqCst) & SEALED != 0
    }

    /// Notes what the transport is about to get, unless the body is sealed; says whether it may.
    fn note(&self, taken: u8) -> bool {
        let noted = self
            .taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |before| {
                match before {
                    sealed if sealed & SEALED != 0 => None,
                    // What was complete stays so, whatever the body says afterwards.
                    WHOLE => Some(WHOLE),
                    _ => Some(taken),
                }
            });
        // A transport that has the whole may be told of the end as often as it asks.
        noted.is_ok() || noted == Err(WHOLE | SEALED) && taken == WHOLE
    }

    /// One poller at a time calls this, so the two steps need not be one.
    fn took(&self, bytes: Option<u64>, ended: bool) -> bool {
        let total = self
            .bytes
            .load(Ordering::SeqCst)
            .saturating_add(bytes.unwrap_or(0));
        self.bytes.store(total, Ordering::SeqCst);
        // Trailers are the last frame of any body.
        let whole = ended || bytes.is_none() || total >= self.length.load(Ordering::SeqCst);
        self.note(if whole { WHOLE } else { PART })
    }

    /// Notes that the transport is told how many bytes are left.
    fn announced(&self, left: u64) -> bool {
        let total = self.bytes.load(Ordering::SeqCst).saturating_add(left);
        self.length.fetch_min(total, Ordering::SeqCst);
        left > 0 || self.ended()
    }

    fn ended(&self) -> bool {
        self.note(WHOLE)
    }

    fn failed(&self, error: BoxError) {
        self.note(FAILED);
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

// === impl RequestBodyError ===

impl RequestBodyError {
    pub(super) fn new(source: Option<BoxError>, transport: BoxError) -> Self {
        Self {
            source,
            transport: Some(transport),
        }
    }

    /// What the transport gets in place of a frame: the cause is kept by the witness.
    fn withheld() -> BoxError {
        Box::new(Self {
            source: None,
            transport: None,
        })
    }

    /// Finds the error in a chain of causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        crate::failure::chain(error).find_map(<dyn Error>::downcast_ref)
    }

    /// Returns what the transport made of it.
    #[must_use]
    pub fn transport(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.transport.as_deref()
    }
}

impl fmt::Display for RequestBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("request body failed while it was being sent")
    }
}

impl Error for RequestBodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
