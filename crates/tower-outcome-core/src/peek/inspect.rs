//! Asking a classifier about a response whose body it wants to see.

use std::task::{Context, Poll, ready};

use http::response;
use http_body::Body;

use super::{FirstFrame, Peek, PeekBody, Peeked};
use crate::{Attempt, BodySeen, BoxError, Classify, Decision, Verdict};

/// Asks a classifier about a response whose body it wants to see.
///
/// A layer that classifies makes one where [`Classify::response`] returns anything but
/// [`Verdict::Decided`], polls it for the decision, and hands the response on.
#[derive(Debug)]
pub struct Inspect<B> {
    head: response::Parts,
    peek: Peek<B>,
    whole: bool,
}

// === impl Inspect ===

impl<B> Inspect<B> {
    /// Begins with a response and what the classifier wants to see of its body.
    pub const fn new(head: response::Parts, body: B, verdict: Verdict) -> Self {
        let (limit, whole) = match verdict {
            Verdict::NeedsBody { limit } => (limit, true),
            _ => (0, false),
        };
        Self {
            head,
            peek: Peek::new(body, limit),
            whole,
        }
    }

    /// Returns the response, with everything that was read of its body.
    #[must_use]
    pub fn into_parts(self) -> (response::Parts, PeekBody<B>) {
        (self.head, self.peek.into_body())
    }
}

impl<B> Inspect<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    /// Reads as much of the body as the classifier wants to see, and asks it.
    pub fn poll_decision<C: Classify>(
        &mut self,
        cx: &mut Context<'_>,
        classifier: &C,
        call: &C::Call,
        attempt: Attempt,
    ) -> Poll<Decision> {
        let bytes;
        let seen = if self.whole {
            match ready!(self.peek.poll_peek(cx)) {
                Peeked::Complete(body) => {
                    bytes = body;
                    BodySeen::Whole {
                        body: &bytes,
                        trailers: self.peek.trailers(),
                    }
                }
                Peeked::TooLarge => BodySeen::TooLarge,
                Peeked::Failed => BodySeen::Failed,
            }
        } else {
            match ready!(self.peek.poll_first(cx)) {
                FirstFrame::Data => BodySeen::Began,
                FirstFrame::Trailers(trailers) => BodySeen::Whole {
                    body: &[],
                    trailers: Some(trailers),
                },
                FirstFrame::End => BodySeen::Whole {
                    body: &[],
                    trailers: None,
                },
                FirstFrame::Failed => BodySeen::Failed,
            }
        };
        Poll::Ready(classifier.body(call, attempt, &self.head, seen))
    }
}
