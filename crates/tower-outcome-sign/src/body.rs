//! Request bodies, read whole to be signed.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::{
    SignError, SignErrorKind,
    nonces::{Slot, Strict},
};
use tower_outcome_core::BoxError;

/// The body of a signed request: the bytes that were signed, or the caller's own body where the
/// signer did not ask for it.
pub struct SignedBody<B> {
    kind: Kind<B>,
    /// Given back when the body has been taken to its end, or is dropped.
    slot: Option<Slot>,
}

enum Kind<B> {
    Whole(Whole),
    Streamed(B),
}

/// A whole body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whole {
    pub(crate) data: Bytes,
    pub(crate) trailers: Option<Box<HeaderMap>>,
}

/// A body that is being read.
#[derive(Debug)]
pub(crate) struct Reading<B> {
    body: B,
    /// Mostly there is one frame, and then nothing is put aside.
    aside: Option<Box<Aside>>,
}

/// What was read of a body whose end is not there yet.
#[derive(Debug, Default)]
struct Aside {
    /// The first frame with data, as long as it is the only one.
    data: Option<Bytes>,
    /// All data, from the second frame on.
    more: Option<BytesMut>,
    trailers: Option<Box<HeaderMap>>,
}

// === impl Reading ===

impl<B> Reading<B> {
    pub(crate) fn new(body: B) -> Self {
        Self { body, aside: None }
    }

    /// Returns the body as it is, which must not have been read from.
    pub(crate) fn into_body(self) -> B {
        self.body
    }
}

impl<B> Reading<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    /// Reads to the end, or until more than `limit` bytes are there or announced.
    ///
    /// A body of one frame is shared, not copied.
    #[inline]
    pub(crate) fn poll_whole(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
    ) -> Poll<Result<Whole, SignError>> {
        loop {
            let size = self.size();
            let left = u64::try_from(limit - size).unwrap_or(u64::MAX);
            if self.body.size_hint().lower() > left {
                return Poll::Ready(Err(too_large(limit)));
            }
            let frame = if self.body.is_end_stream() {
                None
            } else {
                ready!(Pin::new(&mut self.body).poll_frame(cx))
            };
            match frame {
                None => return Poll::Ready(Ok(self.take())),
                Some(Err(error)) => {
                    let error = SignError::from(SignErrorKind::BodyFailed).with_source(error);
                    return Poll::Ready(Err(error));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(mut data) => {
                        if data.remaining() > limit - size {
                            return Poll::Ready(Err(too_large(limit)));
                        }
                        if size == 0 {
                            // No copy where it is `Bytes` already.
                            let data = data.copy_to_bytes(data.remaining());
                            if self.aside.is_none() && self.body.is_end_stream() {
                                return Poll::Ready(Ok(Whole {
                                    data,
                                    trailers: None,
                                }));
                            }
                            self.aside().data = Some(data);
                        } else {
                            self.aside().append(data);
                        }
                    }
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            self.aside().trailers = Some(Box::new(trailers));
                        }
                    }
                },
            }
        }
    }

    #[inline]
    fn size(&self) -> usize {
        self.aside.as_ref().map_or(0, |aside| aside.size())
    }

    fn aside(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }

    fn take(&mut self) -> Whole {
        self.aside
            .take()
            .map_or_else(Whole::default, |aside| Whole {
                data: match aside.more {
                    Some(more) => more.freeze(),
                    None => aside.data.unwrap_or_default(),
                },
                trailers: aside.trailers,
            })
    }
}

// === impl Aside ===

impl Aside {
    fn size(&self) -> usize {
        match (&self.data, &self.more) {
            (Some(data), _) => data.len(),
            (None, Some(more)) => more.len(),
            (None, None) => 0,
        }
    }

    #[cold]
    fn append(&mut self, data: impl Buf) {
        let first = &mut self.data;
        let more = self.more.get_or_insert_with(|| {
            let first = first.take().unwrap_or_default();
            BytesMut::from(&first[..])
        });
        more.put(data);
    }
}

#[cold]
fn too_large(limit: usize) -> SignError {
    SignErrorKind::BodyTooLarge { limit }.into()
}

// === impl SignedBody ===

impl<B> SignedBody<B> {
    #[inline]
    pub(crate) const fn whole(whole: Whole) -> Self {
        Self {
            kind: Kind::Whole(whole),
            slot: None,
        }
    }

    #[inline]
    pub(crate) const fn streamed(body: B) -> Self {
        Self {
            kind: Kind::Streamed(body),
            slot: None,
        }
    }

    /// The bytes, where they were read to be signed.
    #[cfg(debug_assertions)]
    pub(crate) fn data(&self) -> Option<Bytes> {
        match &self.kind {
            Kind::Whole(whole) => Some(whole.data.clone()),
            Kind::Streamed(_) => None,
        }
    }

    /// Lets the body give the slot back, where the order of sending ends with the body.
    pub(crate) fn hold(&mut self, slot: &mut Option<Slot>) {
        if slot
            .as_ref()
            .is_some_and(|slot| slot.strict() == Strict::UntilWritten)
        {
            self.slot = slot.take();
        }
    }
}

impl<B> Body for SignedBody<B>
where
    B: Body + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = match &mut this.kind {
            Kind::Whole(whole) => whole.next().map(Ok),
            Kind::Streamed(body) => ready!(Pin::new(body).poll_frame(cx)).map(|frame| {
                frame.map(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
            }),
        };
        if this.slot.is_some() && (frame.is_none() || this.is_end_stream()) {
            this.slot = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(whole) => whole.data.is_empty() && whole.trailers.is_none(),
            Kind::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(whole) => whole.size_hint(),
            Kind::Streamed(body) => body.size_hint(),
        }
    }
}

impl<B> fmt::Debug for SignedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Whole(_) => "whole",
            Kind::Streamed(_) => "streamed",
        };
        f.debug_struct("SignedBody")
            .field("kind", &kind)
            .finish_non_exhaustive()
    }
}

// === impl Whole ===

impl Whole {
    /// Exact only without trailers: HTTP/1 sends none after a body whose length it has announced.
    fn size_hint(&self) -> SizeHint {
        let size = u64::try_from(self.data.len()).unwrap_or(u64::MAX);
        if self.trailers.is_none() {
            return SizeHint::with_exact(size);
        }
        let mut hint = SizeHint::new();
        hint.set_lower(size);
        hint
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        if self.data.is_empty() {
            let trailers = self.trailers.take()?;
            return Some(Frame::trailers(*trailers));
        }
        Some(Frame::data(std::mem::take(&mut self.data)))
    }
}
