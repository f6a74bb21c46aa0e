//! One stream: a request in progress and the answer to it.

use std::time::Duration;

use bytes::Bytes;

use crate::Answer;
use crate::course::{self, Death, Then};
use crate::desk::Order;

/// One stream that is not closed on both sides.
pub(super) struct Stream {
    pub(super) order: Order,
    pub(super) input: Input,
    /// What the client lets this stream send; may be negative (RFC 9113, section 6.9.2).
    pub(super) window: i64,
    pub(super) output: Option<Outgoing>,
    /// Nothing more becomes of the request.
    pub(super) stalled: bool,
}

/// What becomes of the bytes that the client sends on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// They are the body of the request.
    Read,
    /// They are read and change nothing any more.
    Drain,
    /// They are not read: the window is not opened again.
    Block,
    /// The client has ended the stream.
    Done,
}

/// An answer on its way.
pub(super) struct Outgoing {
    pub(super) answer: Answer,
    /// The `content-length` that the head promises, if any.
    pub(super) promised: Option<usize>,
    /// What is left of the body.
    pub(super) body: Bytes,
    pub(super) drip: Option<Duration>,
    pub(super) finish: Finish,
    pub(super) started: bool,
}

/// What happens once the body is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// The answer is ended properly, and this follows.
    End(Then),
    /// The answer is ended properly, and the stream reset if the client still sends.
    EndEarly,
    /// The answer is never ended.
    Die(Death),
}

// === impl Outgoing ===

impl Outgoing {
    /// An answer that is sent whole. Answers with trailers promise no length.
    pub(super) fn whole(answer: Answer, to_head: bool, finish: Finish) -> Self {
        let bodyless = answer.is_bodyless();
        let promises = answer.trailers.is_empty() && !bodyless;
        let body = if to_head || bodyless {
            Bytes::new()
        } else {
            answer.body.clone()
        };
        Self {
            promised: promises.then_some(answer.body.len()),
            body,
            answer,
            drip: None,
            finish,
            started: false,
        }
    }

    /// An answer that is cut off.
    pub(super) fn part(answer: Answer, to_head: bool, death: Death) -> Self {
        let (promised, part) = course::cut(&answer);
        Self {
            answer,
            promised: Some(promised),
            body: if to_head { Bytes::new() } else { part },
            drip: None,
            finish: Finish::Die(death),
            started: false,
        }
    }

    /// Whether the head ends the stream.
    pub(super) fn ends_with_head(&self) -> bool {
        self.body.is_empty()
            && self.answer.trailers.is_empty()
            && !matches!(self.finish, Finish::Die(_))
    }
}
