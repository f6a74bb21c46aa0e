//! A peeked body is handed on as it was, whatever was read of it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use proptest::prelude::*;

use super::*;
use crate::replay::script::{
    Act, BROKEN, Hooked, Point, Says, Script, Seen, any_script, checksum, next, trace,
};

type Boxed = Pin<Box<Script>>;

fn script(acts: &[Act], says: Says) -> Boxed {
    Box::pin(Script::new(acts.iter().cloned(), says))
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn peek<B, M>(peek: &mut Peek<B, M>) -> Peeked
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    for _ in 0..100 {
        if let Poll::Ready(peeked) = peek.poll_peek(&mut context()) {
            return peeked;
        }
    }
    panic!("never ready");
}

fn first<B>(peek: &mut Peek<B>) -> FirstFrame<'_>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    for _ in 0..100 {
        if peek.poll_first(&mut context()).is_ready() {
            break;
        }
    }
    match peek.poll_first(&mut context()) {
        Poll::Ready(first) => first,
        Poll::Pending => panic!("never ready"),
    }
}

/// Holds what `body` does against `whole`.
fn assert_handed_on<B, M>(body: PeekBody<B, M>, whole: &[Point], says: Says)
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
    M: MapBodyError,
{
    let points = trace(body);
    assert_eq!(points.len(), whole.len());
    for (index, (point, original)) in points.iter().zip(whole).enumerate() {
        assert_eq!(point.seen, original.seen);
        assert!(point.lower >= original.lower);
        assert_eq!(point.upper, original.upper);
        if says == Says::Exactly {
            assert_eq!(point.lower, original.lower);
            assert_eq!(point.end, original.end);
        }
        // It may know of the end when the body itself could not say so, but must not be wrong.
        assert!(point.end || !original.end);
        if point.end {
            let rest = whole[index..].iter().map(|point| &point.seen);
            assert!(
                rest.into_iter()
                    .all(|seen| matches!(seen, Seen::End | Seen::Rest))
            );
        }
    }
}

/// Returns what a peek must come to, from what the body does.
fn expected(whole: &[Point], limit: usize) -> Peeked {
    let mut data = Vec::new();
    for point in whole {
        if data.len() as u64 + point.lower > limit as u64 {
            return Peeked::TooLarge;
        }
        match &point.seen {
            Seen::Data(more) => data.extend_from_slice(more),
            Seen::Error(_) => return Peeked::Failed,
            Seen::End => break,
            Seen::Trailers(_) | Seen::Rest => {}
        }
    }
    Peeked::Complete(data.into())
}

proptest! {
    #[test]
    fn peek_of_any_limit_hands_on_an_identical_body((acts, says) in any_script()) {
        let whole = trace(Script::new(acts.clone(), says));
        let total: usize = whole.iter().map(|point| match &point.seen {
            Seen::Data(data) => data.len(),
            _ => 0,
        }).sum();
        for limit in 0..=total + 6 {
            let mut peeking = Peek::new(script(&acts, says), limit);
            let peeked = peek(&mut peeking);
            prop_assert_eq!(&peeked, &expected(&whole, limit));
            prop_assert_eq!(peek(&mut peeking), peeked.clone());
            let trailers = whole.iter().any(|point| matches!(point.seen, Seen::Trailers(_)));
            if matches!(peeked, Peeked::Complete(_)) {
                prop_assert_eq!(peeking.trailers().is_some(), trailers);
            }
            prop_assert_eq!(peeking.error().is_some(), peeked == Peeked::Failed);
            assert_handed_on(peeking.into_body(), &whole, says);
        }
    }

    #[test]
    fn peek_given_up_at_any_poll_hands_on_an_identical_body((acts, says) in any_script()) {
        let whole = trace(Script::new(acts.clone(), says));
        for polls in 0..=acts.len() + 1 {
            let mut body = PeekBody::new(script(&acts, says));
            for _ in 0..polls {
                let _ = body.poll_read(&mut context());
            }
            assert_handed_on(body, &whole, says);
        }
    }

    #[test]
    fn first_frame_is_told_and_handed_on((acts, says) in any_script()) {
        let whole = trace(Script::new(acts.clone(), says));
        let tells = |point: &Point| match &point.seen {
            Seen::Data(data) => (!data.is_empty()).then_some(FirstFrame::Data),
            Seen::Error(_) => Some(FirstFrame::Failed),
            Seen::End => Some(FirstFrame::End),
            Seen::Trailers(_) | Seen::Rest => None,
        };
        let trailers = checksum("abc");
        let expected = whole.iter().find_map(|point| match &point.seen {
            Seen::Trailers(_) => Some(FirstFrame::Trailers(&trailers)),
            _ => tells(point),
        });
        let mut peeking = Peek::new(script(&acts, says), 0);
        prop_assert_eq!(Some(first(&mut peeking)), expected);
        assert_handed_on(peeking.into_body(), &whole, says);
    }

    #[test]
    fn peeks_may_follow_each_other(
        (acts, says) in any_script(),
        limit in 0usize..40,
        yielded in 0usize..3,
    ) {
        let whole = trace(Script::new(acts.clone(), says));
        let mut one = Peek::new(script(&acts, says), limit);
        first(&mut one);
        let peeked = peek(&mut one);
        let mut two = one.into_body().peek(1000);
        if peeked != Peeked::TooLarge {
            prop_assert_eq!(peek(&mut two), peeked);
        }
        let mut body = two.into_body();
        let yielded = yielded.min(whole.len() - 2);
        for point in &whole[..yielded] {
            prop_assert_eq!(&next(Pin::new(&mut body)).seen, &point.seen);
        }
        let mut three = body.peek(1000);
        prop_assert_eq!(peek(&mut three), expected(&whole[yielded..], 1000));
        assert_handed_on(three.into_body(), &whole[yielded..], says);
    }
}

#[test]
fn known_length_over_the_limit_reads_nothing() {
    struct Long;
    impl Body for Long {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            panic!("read");
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(11)
        }
    }
    assert_eq!(peek(&mut Peek::new(Long, 10)), Peeked::TooLarge);
}

#[test]
fn empty_body_is_complete_at_a_limit_of_zero() {
    let complete = Peeked::Complete(Bytes::new());
    assert_eq!(peek(&mut Peek::new(Empty::<Bytes>::new(), 0)), complete);
    assert_eq!(
        peek(&mut Peek::new(script(&[], Says::Nothing), 0)),
        complete
    );
    let acts = [Act::Data(Bytes::new()), Act::Trailers(checksum("1"))];
    let mut peeking = Peek::new(script(&acts, Says::Nothing), 0);
    assert_eq!(peek(&mut peeking), complete);
    assert_eq!(peeking.trailers(), Some(&checksum("1")));
    assert_eq!(
        peek(&mut Peek::new(Full::new(Bytes::from("a")), 0)),
        Peeked::TooLarge
    );
}

#[test]
fn body_in_one_frame_is_shared() {
    let data = Bytes::from(vec![1; 64]);
    let empty = Act::Data(Bytes::new());
    let acts = [empty.clone(), Act::Data(data.clone()), empty];
    let mut peeking = Peek::new(script(&acts, Says::Nothing), 64);
    let Peeked::Complete(whole) = peek(&mut peeking) else {
        panic!("incomplete");
    };
    assert_eq!(whole.as_ptr(), data.as_ptr());
    let mut body = peeking.into_body();
    next(Pin::new(&mut body));
    let Seen::Data(handed_on) = next(Pin::new(&mut body)).seen else {
        panic!("no data");
    };
    assert_eq!(handed_on.as_ptr(), data.as_ptr());
}

#[test]
fn body_in_many_frames_is_put_together_once() {
    let acts = ["ab", "", "cd"].map(|data| Act::Data(data.into()));
    let mut peeking = Peek::new(script(&acts, Says::Nothing), 4);
    let (one, two) = (peek(&mut peeking), peek(&mut peeking));
    let (Peeked::Complete(one), Peeked::Complete(two)) = (one, two) else {
        panic!("incomplete");
    };
    assert_eq!(one, "abcd");
    assert_eq!(one.as_ptr(), two.as_ptr());
}

#[test]
fn body_known_to_fail_is_failed_at_any_limit() {
    let acts = [Act::Data("abc".into()), Act::Error];
    let mut peeking = Peek::new(script(&acts, Says::Nothing), 3);
    assert_eq!(peek(&mut peeking), Peeked::Failed);
    assert_eq!(peek(&mut peeking.into_body().peek(2)), Peeked::Failed);
}

#[test]
fn unpeeked_body_holds_nothing_and_is_small() {
    let body = PeekBody::new(Full::new(Bytes::from_static(b"abc")));
    assert_eq!(body.held_frames(), 0);
    assert!(body.held.is_none());
    let bare = size_of::<Full<Bytes>>();
    assert!(size_of::<PeekBody<Full<Bytes>>>() <= bare + 2 * size_of::<usize>());
    assert_eq!(trace(body), trace(Full::new(Bytes::from_static(b"abc"))));
    // A known end is enough: nothing needs to be remembered of an empty body.
    let mut peeking = Peek::new(Empty::<Bytes>::new(), 9);
    peek(&mut peeking);
    assert!(peeking.into_body().held.is_none());
}

#[test]
fn buffer_in_pieces_is_one_frame() {
    let pieces = Bytes::from_static(b"ab").chain(Bytes::from_static(b"cd"));
    let mut peeking = Peek::new(Full::new(pieces), 4);
    assert_eq!(peek(&mut peeking), Peeked::Complete("abcd".into()));
    let Seen::Data(data) = next(Pin::new(&mut peeking.into_body())).seen else {
        panic!("no data");
    };
    assert_eq!(data, "abcd");
}

#[test]
fn tiny_frames_without_end_are_too_large() {
    let endless = || {
        Hooked(Box::new(|_| {
            Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
        }))
    };
    assert_eq!(peek(&mut Peek::new(endless(), 64)), Peeked::TooLarge);
    assert_eq!(first(&mut Peek::new(endless(), 64)), FirstFrame::Data);
}

#[test]
fn dripped_body_within_the_limit_is_complete() {
    let acts = vec![Act::Data("a".into()); 1000];
    let mut peeking = Peek::new(script(&acts, Says::Nothing), 1000);
    assert!(matches!(peek(&mut peeking), Peeked::Complete(data) if data.len() == 1000));
}

/// Counts how often it is asked, and marks the error.
#[derive(Debug, Default)]
struct Marks(AtomicUsize);

impl MapBodyError for Marks {
    fn map(&self, error: BoxError) -> BoxError {
        self.0.fetch_add(1, Ordering::SeqCst);
        format!("marked: {error}").into()
    }
}

fn error_text<M: MapBodyError>(body: &mut PeekBody<Hooked, M>) -> String {
    match next(Pin::new(body)).seen {
        Seen::Error(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn error_is_mapped_once_whether_peeked_or_not() {
    let failing = || Hooked(Box::new(|_| Poll::Ready(Some(Err(BROKEN.into())))));
    for peeked in [false, true] {
        let marks = Arc::new(Marks::default());
        let mut peeking = Peek::new(failing(), 9);
        if peeked {
            assert_eq!(peek(&mut peeking), Peeked::Failed);
            assert_eq!(peeking.error().unwrap().to_string(), BROKEN);
        }
        let mut body = peeking.into_body().with_error_map(Arc::clone(&marks));
        assert_eq!(marks.0.load(Ordering::SeqCst), 0);
        assert_eq!(error_text(&mut body), format!("marked: {BROKEN}"));
        assert_eq!(error_text(&mut body), BROKEN);
        assert_eq!(marks.0.load(Ordering::SeqCst), 1);
    }
    let mut body = PeekBody::new(failing()).with_error_map(None::<Marks>);
    assert_eq!(error_text(&mut body), BROKEN);
    let mut body = PeekBody::new(failing()).with_error_map(Some(Marks::default()));
    assert_eq!(error_text(&mut body), format!("marked: {BROKEN}"));
}

#[tokio::test]
async fn peek_is_a_future_that_can_be_waited_for_by_reference() {
    let acts = [
        Act::Pending,
        Act::Data("ab".into()),
        Act::Pending,
        Act::Data("c".into()),
    ];
    let mut peeking = Peek::new(script(&acts, Says::AtLeast), 3);
    assert_eq!((&mut peeking).await, Peeked::Complete("abc".into()));
    assert_eq!(peeking.limit(), 3);
    let body = peeking.into_body();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
}

#[test]
fn bodies_that_are_not_unpin_can_be_wrapped() {
    fn is_unpin<T: Unpin>() {}
    is_unpin::<PeekBody<Full<Bytes>, std::marker::PhantomPinned>>();
    let acts = [Act::Data("ab".into()), Act::Trailers(checksum("1"))];
    let bare = trace(Script::new(acts.clone(), Says::Exactly));
    assert_eq!(trace(PeekBody::new(Script::new(acts, Says::Exactly))), bare);
}

#[test]
fn another_rest_comes_after_what_was_peeked_unless_the_end_was_met() {
    for (limit, expected) in [(3, "abcdrest"), (4, "abcd")] {
        let acts = ["ab", "cd"].map(|data| Act::Data(data.into()));
        let mut peeking = Peek::new(script(&acts, Says::Nothing), limit);
        let _ = peek(&mut peeking);
        let rest = script(&[Act::Data("rest".into())], Says::Nothing);
        let mut whole = peeking.into_body().with_rest(rest).peek(100);
        assert_eq!(peek(&mut whole), Peeked::Complete(expected.into()));
    }
}
