use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio_test::{assert_ready, task};

use super::*;
use crate::{
    BoxError, BrokenBody, Failure, Outcome, Reason,
    peek::{Peek, PeekBody, Peeked},
};

/// Announces ten bytes and yields as many as it has.
struct Ten {
    has: Option<Bytes>,
    left: u64,
    is_head: bool,
}

fn ten(has: &'static str) -> Ten {
    Ten {
        has: Some(Bytes::from_static(has.as_bytes())),
        left: 10,
        is_head: false,
    }
}

impl Body for Ten {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.has.take().map(|bytes| {
            self.left -= bytes.len() as u64;
            Ok(Frame::data(bytes))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_head
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

fn read(body: PeekBody<Ten, impl crate::peek::MapBodyError>) -> Result<Bytes, BoxError> {
    let mut reading = task::spawn(body.collect());
    assert_ready!(reading.poll()).map(|body| body.to_bytes())
}

#[test]
fn half_an_answer_is_not_a_whole_one() {
    let error = read(PeekBody::new(ten("half"))).unwrap_err();
    assert_eq!(error.downcast_ref::<CutShort>().unwrap().missing(), 6);
    assert_eq!(
        error.to_string(),
        "body ended 6 bytes before its announced length"
    );
}

#[test]
fn a_whole_answer_is_one() {
    assert_eq!(
        read(PeekBody::new(ten("0123456789"))).unwrap(),
        "0123456789"
    );
}

#[test]
fn the_answer_to_a_head_request_is_complete_without_what_it_announces() {
    let mut body = ten("");
    body.is_head = true;
    body.has = None;
    assert_eq!(read(PeekBody::new(body)).unwrap(), "");
}

#[test]
fn a_peek_sees_it_and_hands_it_on() {
    let mut peek = task::spawn(Peek::new(ten("half"), 100));
    assert_eq!(assert_ready!(peek.poll()), Peeked::Failed);
    let error = read(peek.into_inner().into_body()).unwrap_err();
    assert_eq!(error.downcast_ref::<CutShort>().unwrap().missing(), 6);
}

#[test]
fn it_says_what_it_means_for_the_call() {
    let outcome = Outcome::Unknown {
        reason: Reason::ResponseBody,
    };
    let body = PeekBody::new(ten("half")).with_error_map(BrokenBody::new(outcome));
    let error = read(body).unwrap_err();
    assert_eq!(Failure::of(&*error).unwrap().outcome(), outcome);
}
