//! What happens to a poll of the body during which another attempt takes over, or that panics.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    task::{Poll, Waker},
};

use http_body::{Body, Frame};

use super::{data_of, error_of, poll};
use crate::replay::{
    NotReplayable, Replay, ReplayBody, Superseded,
    script::{BROKEN, Bell, Hooked, Polled},
};

/// Polls a first attempt; while the body is being polled, a second one takes over.
///
/// The polls of the body after that come out of `rest`.
fn overtaken(
    limit: usize,
    during: Polled,
    mut rest: Vec<Polled>,
) -> (Polled, ReplayBody<Hooked>, usize) {
    type Slot = Arc<Mutex<Option<ReplayBody<Hooked>>>>;
    let slot: Slot = Arc::default();
    let (bell, waker) = Bell::new();
    let mut during = Some(during);
    let inner = Arc::clone(&slot);
    let mut first = ReplayBody::with_limit(
        Hooked(Box::new(move |_| {
            let Some(polled) = during.take() else {
                return rest.remove(0);
            };
            let mut second = inner.lock().unwrap().take().unwrap();
            assert!(poll(&mut second, &waker).is_pending());
            assert!(!second.is_end_stream());
            *inner.lock().unwrap() = Some(second);
            polled
        })),
        limit,
    );
    *slot.lock().unwrap() = first.replay();
    let polled = poll(&mut first, Waker::noop());
    let second = slot.lock().unwrap().take().unwrap();
    (polled, second, bell.rings())
}

fn is_superseded(polled: Polled) -> bool {
    matches!(polled, Poll::Ready(Some(Err(error))) if error.is::<Superseded>())
}

#[test]
fn frame_read_while_overtaken_goes_to_the_new_attempt() {
    let frame = Poll::Ready(Some(Ok(Frame::data("ab".into()))));
    let (first, mut second, rings) = overtaken(9, frame, vec![Poll::Ready(None)]);
    assert!(is_superseded(first));
    assert_eq!(rings, 1);
    assert_eq!(data_of(poll(&mut second, Waker::noop())), "ab");
    assert!(matches!(
        poll(&mut second, Waker::noop()),
        Poll::Ready(None)
    ));
    assert!(second.replay().is_some());
}

#[test]
fn frame_over_the_bound_read_while_overtaken_is_not_lost() {
    let frame = Poll::Ready(Some(Ok(Frame::data("abc".into()))));
    let next = Poll::Ready(Some(Ok(Frame::data("d".into()))));
    let (first, mut second, _) = overtaken(2, frame, vec![next, Poll::Ready(None)]);
    assert!(is_superseded(first));
    assert!(second.replay().is_none());
    assert_eq!(data_of(poll(&mut second, Waker::noop())), "abc");
    assert_eq!(second.recorded(), 0);
    assert_eq!(data_of(poll(&mut second, Waker::noop())), "d");
    assert!(matches!(
        poll(&mut second, Waker::noop()),
        Poll::Ready(None)
    ));
}

#[test]
fn error_met_while_overtaken_goes_to_the_new_attempt() {
    let error = Poll::Ready(Some(Err(BROKEN.into())));
    let (first, mut second, rings) = overtaken(9, error, Vec::new());
    assert!(is_superseded(first));
    assert_eq!(rings, 1);
    assert!(second.failed() && second.replay().is_none());
    assert_eq!(error_of(&mut second).to_string(), BROKEN);
}

#[test]
fn end_met_while_overtaken_ends_the_new_attempt() {
    let (first, mut second, rings) = overtaken(9, Poll::Ready(None), Vec::new());
    assert!(is_superseded(first));
    assert_eq!(rings, 1);
    assert!(matches!(
        poll(&mut second, Waker::noop()),
        Poll::Ready(None)
    ));
}

#[test]
fn waiting_while_overtaken_wakes_the_new_attempt_to_poll_for_itself() {
    let frame = Poll::Ready(Some(Ok(Frame::data("ab".into()))));
    let (first, mut second, rings) = overtaken(9, Poll::Pending, vec![frame]);
    assert!(is_superseded(first));
    assert_eq!(rings, 1);
    assert_eq!(data_of(poll(&mut second, Waker::noop())), "ab");
}

#[test]
fn body_that_panics_is_failed_and_sends_no_more() {
    let mut polls = 0;
    let mut first = ReplayBody::new(Hooked(Box::new(move |_| {
        polls += 1;
        assert!(polls < 2, "on purpose");
        Poll::Ready(Some(Ok(Frame::data("ab".into()))))
    })));
    let mut second = first.replay().unwrap();
    assert_eq!(data_of(poll(&mut first, Waker::noop())), "ab");
    let panicked = catch_unwind(AssertUnwindSafe(|| poll(&mut first, Waker::noop())));
    assert!(panicked.is_err());
    assert!(first.failed() && first.replay().is_none());
    assert!(error_of(&mut second).is::<NotReplayable>());
    assert!(error_of(&mut first).is::<NotReplayable>());
}
