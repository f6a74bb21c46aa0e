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
    pub struct ReconcileBody<RB> {
        #[pin]
        kind: Kind<RB>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<RB> {
        Passed { #[pin] body: PeekBody<RB> },
        Found { data: Bytes },
    }
}

// === impl ReconcileBody ===

impl<RB> ReconcileBody<RB> {
    pub(crate) const fn passed(body: PeekBody<RB>) -> Self {
        Self {
            kind: Kind::Passed { body },
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
            KindProj::Found { data } if data.is_empty() => Poll::Ready(None),
            KindProj::Found { data } => Poll::Ready(Some(Ok(Frame::data(mem::take(data))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } => body.is_end_stream(),
            Kind::Found { data } => data.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } => body.size_hint(),
            Kind::Found { data } => SizeHint::with_exact(data.len() as u64),
        }
    }
}

impl<RB: fmt::Debug> fmt::Debug for ReconcileBody<RB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Passed { body } => body.fmt(f),
            Kind::Found { data } => f.debug_tuple("Found").field(&data.len()).finish(),
        }
    }
}
