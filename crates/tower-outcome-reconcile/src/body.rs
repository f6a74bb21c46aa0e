//! The body of a response: that of the attempt, or one that was found.

use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_outcome_core::{BoxError, peek::PeekBody};

pin_project! {
    /// The body of a response: that of the attempt, or one that was found by asking.
    ///
    /// Where the server was asked and it stays unknown, the body of the attempt is what was read of it
    /// before the first question: all of it, or its beginning and then an error, a
    /// [`Failure`](tower_outcome_core::Failure) that says that the rest was let go.
    pub struct ReconcileBody<RB> {
        #[pin]
        kind: Kind<RB>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<RB> {
        Passed { #[pin] body: PeekBody<RB> },
        Kept { #[pin] body: PeekBody<Rest> },
        Found { data: Bytes },
    }
}

/// In the place of the rest of a body that was let go: nothing, or the error that says so.
#[derive(Debug)]
pub(crate) struct Rest(Option<BoxError>);

// === impl ReconcileBody ===

impl<RB> ReconcileBody<RB> {
    pub(crate) const fn passed(body: PeekBody<RB>) -> Self {
        Self {
            kind: Kind::Passed { body },
        }
    }

    pub(crate) const fn kept(body: PeekBody<Rest>) -> Self {
        Self {
            kind: Kind::Kept { body },
        }
    }

    pub(crate) const fn found(data: Bytes) -> Self {
        Self {
            kind: Kind::Found { data },
        }
    }
}

impl<RB> Body for ReconcileBody<RB>
where
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().kind.project() {
            KindProj::Passed { body } => body.poll_frame(cx),
            KindProj::Kept { body } => body.poll_frame(cx),
            KindProj::Found { data } if data.is_empty() => Poll::Ready(None),
            KindProj::Found { data } => Poll::Ready(Some(Ok(Frame::data(mem::take(data))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } => body.is_end_stream(),
            Kind::Kept { body } => body.is_end_stream(),
            Kind::Found { data } => data.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } => body.size_hint(),
            Kind::Kept { body } => body.size_hint(),
            Kind::Found { data } => SizeHint::with_exact(data.len() as u64),
        }
    }
}

impl<RB: fmt::Debug> fmt::Debug for ReconcileBody<RB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Passed { body } => body.fmt(f),
            Kind::Kept { body } => body.fmt(f),
            Kind::Found { data } => f.debug_tuple("Found").field(&data.len()).finish(),
        }
    }
}

// === impl Rest ===

impl Rest {
    /// The body was read to its end.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(crate) const fn let_go(error: BoxError) -> Self {
        Self(Some(error))
    }
}

impl Body for Rest {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.0.take().map(Err))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.0 {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(0),
        }
    }
}
