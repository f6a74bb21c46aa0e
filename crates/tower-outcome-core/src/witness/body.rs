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
use http::{HeaderMap, header::CONTENT_LENGTH};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

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

// === impl WitnessBody ===

impl<B: Body> WitnessBody<B> {
    /// Wraps the body of a request with these headers, and returns its witness.
    ///
    /// There is none for an empty body: such a request is complete with its head.
    pub fn new(inner: B, headers: &HeaderMap) -> (Self, Option<BodyWitness>) {
        // A caller may declare a length that the body itself does not know. The peer goes by the
        // header, so a body of that many bytes is complete even if the transport asks no further.
        let declared = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse().ok());
        let length = declared.or_else(|| inner.size_hint().exact());
        if inner.is_end_stream() || length == Some(0) {
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
        let frame = ready!(inner.as_mut().poll_frame(cx));
        let Some(witness) = this.witness else {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        };
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map(|data| data.remaining() as u64);
                witness.0.took(bytes, inner.is_end_stream());
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                witness.0.failed(error.into());
                Some(Err(Box::new(RequestBodyError {
                    source: None,
                    transport: None,
                })))
            }
            None => {
                witness.0.ended();
                None
            }
        })
    }

    // NOTE: a transport may learn from either hint that nothing more comes, and end the request
    // without asking for another frame. So both tell the witness what they told the transport.
    fn is_end_stream(&self) -> bool {
        let ended = self.inner.is_end_stream();
        if let (true, Some(witness)) = (ended, &self.witness) {
            witness.0.ended();
        }
        ended
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.inner.size_hint();
        if let (Some(left), Some(witness)) = (hint.exact(), &self.witness) {
            witness.0.announced(left);
        }
        hint
    }
}

// === impl BodyWitness ===

impl BodyWitness {
    /// Returns how much the transport has taken so far.
    #[must_use]
    pub fn taken(&self) -> BodyTaken {
        match self.0.taken.load(Ordering::SeqCst) {
            NOTHING => BodyTaken::Nothing,
            PART => BodyTaken::Part,
            FAILED => BodyTaken::Failed,
            _ => BodyTaken::Whole,
        }
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

// === impl State ===

impl State {
    /// One poller at a time calls this, so the two steps need not be one.
    fn took(&self, bytes: Option<u64>, ended: bool) {
        let total = self
            .bytes
            .load(Ordering::SeqCst)
            .saturating_add(bytes.unwrap_or(0));
        self.bytes.store(total, Ordering::SeqCst);
        // Trailers are the last frame of any body.
        let whole = ended || bytes.is_none() || total >= self.length.load(Ordering::SeqCst);
        self.taken
            .store(if whole { WHOLE } else { PART }, Ordering::SeqCst);
    }

    fn announced(&self, left: u64) {
        let total = self.bytes.load(Ordering::SeqCst).saturating_add(left);
        self.length.fetch_min(total, Ordering::SeqCst);
        if left == 0 {
            self.ended();
        }
    }

    fn ended(&self) {
        self.taken.store(WHOLE, Ordering::SeqCst);
    }

    fn failed(&self, error: BoxError) {
        // A body that fails after its declared length was taken was complete all the same.
        let was = self.taken.swap(FAILED, Ordering::SeqCst);
        if was == WHOLE {
            self.taken.store(WHOLE, Ordering::SeqCst);
        }
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
