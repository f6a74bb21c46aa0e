//! The frames of a second attempt are those of the first, wherever that stopped.

use std::{
    cell::Cell,
    convert::Infallible,
    future::{Ready, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes};
use http::Request;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use proptest::prelude::*;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    script::{
        Act, Bell, Hooked, Polled, Says, Script, Seen, any_script, checksum, next, once, trace,
    },
    *,
};
use crate::BoxError;

mod overtaken;

const ALL: usize = 1 << 20;

fn poll<B>(body: &mut ReplayBody<B>, waker: &Waker) -> Polled
where
    B: Body,
    B::Error: Into<BoxError>,
{
    Pin::new(body).poll_frame(&mut Context::from_waker(waker))
}

fn error_of<B>(body: &mut ReplayBody<B>) -> BoxError
where
    B: Body,
    B::Error: Into<BoxError>,
{
    match poll(body, Waker::noop()) {
        Poll::Ready(Some(Err(error))) => error,
        other => panic!("{other:?}"),
    }
}

fn data_of(polled: Polled) -> Bytes {
    match polled {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Polls `body` `times` times and holds what it does against the start of `whole`.
fn attempt(body: &mut ReplayBody<Script>, times: usize, whole: &[script::Point]) -> usize {
    let mut steps = 0;
    for _ in 0..times {
        if steps + 1 == whole.len() {
            break;
        }
        if let Some(point) = once(Pin::new(&mut *body), Waker::noop()) {
            assert_eq!(point, whole[steps]);
            steps += 1;
        }
    }
    steps
}

fn breaks(whole: &[script::Point]) -> bool {
    whole
        .iter()
        .any(|point| matches!(point.seen, Seen::Error(_)))
}

proptest! {
    #[test]
    fn first_attempt_is_the_body_itself((acts, says) in any_script(), limit in 0usize..64) {
        let whole = trace(Script::new(acts.clone(), says));
        let body = ReplayBody::with_limit(Script::new(acts, says), limit);
        prop_assert_eq!(trace(body), whole);
    }

    #[test]
    fn every_later_attempt_equals_the_first((acts, says) in any_script()) {
        let whole = trace(Script::new(acts.clone(), says));
        let polls = acts.len() + 2;
        for (one, two) in (0..=polls).flat_map(|one| (0..=polls).map(move |two| (one, two))) {
            for (early, keep) in [(true, true), (true, false), (false, true), (false, false)] {
                let mut first = ReplayBody::with_limit(Script::new(acts.clone(), says), ALL);
                let made = early.then(|| first.replay().unwrap());
                let met = attempt(&mut first, one, &whole);
                if met > 0 && matches!(whole[met - 1].seen, Seen::Error(_)) {
                    prop_assert!(first.failed() && first.replay().is_none());
                    if let Some(mut second) = made {
                        prop_assert!(second.failed());
                        prop_assert!(error_of(&mut second).is::<NotReplayable>());
                    }
                    continue;
                }
                prop_assert!(!first.failed());
                let mut second = made.or_else(|| first.replay()).unwrap();
                let first = keep.then_some(first);
                let met = attempt(&mut second, two, &whole);
                if met > 0 && matches!(whole[met - 1].seen, Seen::Error(_)) {
                    prop_assert!(second.failed() && second.replay().is_none());
                    continue;
                }
                let third = second.replay().unwrap();
                if !keep {
                    drop(second);
                }
                prop_assert_eq!(trace(third), whole.clone());
                if let Some(mut first) = first {
                    prop_assert_eq!(first.failed(), breaks(&whole));
                    prop_assert!(error_of(&mut first).is::<Superseded>());
                }
            }
        }
    }

    #[test]
    fn crossing_the_bound_at_any_frame_ends_replay_and_nothing_else((acts, says) in any_script()) {
        let whole = trace(Script::new(acts.clone(), says));
        let sizes: Vec<usize> = whole
            .iter()
            .scan(0, |sum, point| {
                *sum += match &point.seen {
                    Seen::Data(data) => data.len(),
                    Seen::Trailers(_) => "checksum".len() + "abc".len(),
                    Seen::Error(_) | Seen::End | Seen::Rest => 0,
                };
                Some(*sum)
            })
            .collect();
        for limit in 1..=sizes.last().unwrap() + 1 {
            let mut body = ReplayBody::with_limit(Script::new(acts.clone(), says), limit);
            let mut early = body.replay().unwrap();
            for (point, &size) in whole.iter().zip(&sizes) {
                if point.seen == Seen::Rest {
                    break;
                }
                prop_assert_eq!(&next(Pin::new(&mut body)), point);
                let kept = size <= limit && !body.failed();
                prop_assert_eq!(body.replay().is_some(), kept);
                prop_assert_eq!(body.recorded(), if kept { size } else { 0 });
            }
            if body.replay().is_some() {
                prop_assert_eq!(trace(early), whole.clone());
            } else {
                prop_assert!(error_of(&mut early).is::<NotReplayable>());
                prop_assert!(!early.is_end_stream());
                prop_assert_eq!(early.size_hint().lower(), whole[0].lower);
                prop_assert_eq!(early.size_hint().upper(), whole[0].upper);
            }
        }
    }
}

#[test]
fn untouched_first_attempt_disturbs_nothing() {
    let first = ReplayBody::new(Script::chunks(["ab", "c"]));
    let second = first.replay().unwrap();
    drop(first);
    assert_eq!(trace(second), trace(Script::chunks(["ab", "c"])));
}

#[test]
fn unread_replay_leaves_the_active_attempt_alone() {
    let mut first = ReplayBody::with_limit(Script::chunks(["ab", "cd", "e"]), 3);
    let mut second = first.replay().unwrap();
    assert_eq!(data_of(poll(&mut first, Waker::noop())), "ab");
    assert_eq!(data_of(poll(&mut first, Waker::noop())), "cd");
    assert!(error_of(&mut second).is::<NotReplayable>());
    assert_eq!(data_of(poll(&mut first, Waker::noop())), "e");
    assert!(error_of(&mut second).is::<NotReplayable>());
    assert!(!second.failed());
}

#[test]
fn crossing_the_bound_frees_the_recording() {
    let data = Bytes::from(vec![1; 4]);
    let acts = [data.clone(), "b".into()].map(Act::Data);
    let mut body = ReplayBody::with_limit(Script::new(acts, Says::Nothing), 4);
    assert_eq!(data_of(poll(&mut body, Waker::noop())), data);
    assert!(!data.is_unique());
    assert_eq!(data_of(poll(&mut body, Waker::noop())), "b");
    assert!(data.is_unique());
}

#[test]
fn superseded_attempt_never_takes_the_end_of_another_for_its_own() {
    let mut first = ReplayBody::with_limit(Script::chunks(["ab", "cd", "ef"]), 5);
    for chunk in ["ab", "cd"] {
        assert_eq!(data_of(poll(&mut first, Waker::noop())), chunk);
    }
    let mut second = first.replay().unwrap();
    for chunk in ["ab", "cd", "ef"] {
        assert_eq!(data_of(poll(&mut second, Waker::noop())), chunk);
    }
    assert!(second.is_end_stream());
    assert!(!first.is_end_stream());
    assert!(error_of(&mut first).is::<Superseded>());
}

#[test]
fn superseded_attempt_is_woken_and_stays_superseded() {
    let acts = [Act::Pending, Act::Data("x".into())];
    let mut first = ReplayBody::new(Script::new(acts, Says::Nothing));
    let (bell, waker) = Bell::new();
    assert!(poll(&mut first, &waker).is_pending());
    assert_eq!(bell.rings(), 1, "by the script");
    let mut second = first.replay().unwrap();
    assert_eq!(data_of(poll(&mut second, Waker::noop())), "x");
    assert_eq!(bell.rings(), 2, "by the attempt that took over");
    assert!(error_of(&mut first).is::<Superseded>());
    assert!(error_of(&mut first).is::<Superseded>());
    assert!(matches!(
        poll(&mut second, Waker::noop()),
        Poll::Ready(None)
    ));
    assert!(error_of(&mut first).is::<Superseded>());
}

#[test]
fn older_handle_polled_late_is_superseded_though_it_was_never_read() {
    let first = ReplayBody::new(Script::chunks(["a"]));
    let mut second = first.replay().unwrap();
    let mut third = second.replay().unwrap();
    assert_eq!(data_of(poll(&mut third, Waker::noop())), "a");
    assert!(error_of(&mut second).is::<Superseded>());
    assert_eq!(second.size_hint().exact(), Some(1));
    assert!(!second.is_end_stream());
}

#[test]
fn known_length_and_known_emptiness_survive() {
    let mut body = ReplayBody::new(Full::new(Bytes::from_static(b"12345")));
    assert_eq!(body.size_hint().exact(), Some(5));
    assert_eq!(data_of(poll(&mut body, Waker::noop())), "12345");
    assert_eq!(body.size_hint().exact(), Some(0));
    assert!(body.is_end_stream());
    let again = body.replay().unwrap();
    assert_eq!(again.size_hint().exact(), Some(5));
    assert!(!again.is_end_stream());
    let empty = ReplayBody::new(Empty::<Bytes>::new());
    assert!(empty.is_end_stream());
    assert!(empty.replay().unwrap().is_end_stream());
}

#[test]
fn bytes_are_kept_by_reference() {
    let data = Bytes::from(vec![7; 100]);
    let mut first = ReplayBody::new(Full::new(data.clone()));
    let mut second = first.replay().unwrap();
    assert_eq!(
        data_of(poll(&mut first, Waker::noop())).as_ptr(),
        data.as_ptr()
    );
    assert_eq!(
        data_of(poll(&mut second, Waker::noop())).as_ptr(),
        data.as_ptr()
    );
}

#[test]
fn buffer_in_pieces_is_one_frame() {
    let pieces = Bytes::from_static(b"ab").chain(Bytes::from_static(b"cd"));
    let mut first = ReplayBody::new(Full::new(pieces));
    let mut second = first.replay().unwrap();
    assert_eq!(data_of(poll(&mut first, Waker::noop())), "abcd");
    assert_eq!(data_of(poll(&mut second, Waker::noop())), "abcd");
}

#[test]
fn error_is_the_original_one() {
    let mut body = ReplayBody::new(Hooked(Box::new(|_| {
        Poll::Ready(Some(Err(Box::new(std::fmt::Error))))
    })));
    let later = body.replay().unwrap();
    assert!(error_of(&mut body).is::<std::fmt::Error>());
    assert!(body.failed() && later.failed());
}

#[test]
fn limit_of_zero_is_never_replayable() {
    let body = ReplayBody::with_limit(Empty::<Bytes>::new(), 0);
    assert!(body.replay().is_none() && !body.failed());
    let body = ReplayBody::with_limit(Script::chunks(["a", "b"]), 0);
    assert!(body.replay().is_none());
    assert_eq!(trace(body), trace(Script::chunks(["a", "b"])));
}

#[test]
fn empty_frames_cannot_pile_up() {
    let mut body = ReplayBody::with_limit(
        Hooked(Box::new(|_| {
            Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
        })),
        32,
    );
    for _ in 0..1026 {
        assert!(body.replay().is_some());
        assert!(data_of(poll(&mut body, Waker::noop())).is_empty());
    }
    assert!(data_of(poll(&mut body, Waker::noop())).is_empty());
    assert!(body.replay().is_none());
}

#[test]
fn ended_body_is_dropped_and_can_still_be_replayed() {
    let held = Arc::new(());
    let inner = Arc::clone(&held);
    let mut frames = vec![Frame::trailers(checksum("1")), Frame::data("x".into())];
    let mut first = ReplayBody::new(Hooked(Box::new(move |_| {
        let _ = &inner;
        Poll::Ready(frames.pop().map(Ok))
    })));
    let second = first.replay().unwrap();
    while let Poll::Ready(Some(_)) = poll(&mut first, Waker::noop()) {}
    assert_eq!(Arc::strong_count(&held), 1);
    let seen: Vec<Seen> = trace(second).into_iter().map(|point| point.seen).collect();
    let data = Seen::Data("x".into());
    let trailers = Seen::Trailers(checksum("1"));
    assert_eq!(seen, [data, trailers, Seen::End, Seen::Rest]);
}

#[test]
fn dropped_attempt_leaves_no_waker() {
    let mut first = ReplayBody::new(Hooked(Box::new(|_| Poll::Pending)));
    let (bell, waker) = Bell::new();
    assert!(poll(&mut first, &waker).is_pending());
    let second = first.replay().unwrap();
    drop((first, waker));
    assert_eq!(Arc::strong_count(&bell), 1);
    drop(second);
}

#[test]
fn panic_in_a_hint_is_not_spread_by_the_lock() {
    struct Rude(bool);
    impl Body for Rude {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.get_mut().0 = true;
            Poll::Ready(Some(Ok(Frame::data("a".into()))))
        }

        fn is_end_stream(&self) -> bool {
            assert!(!self.0, "on purpose");
            false
        }
    }
    let mut body = ReplayBody::new(Rude(false));
    assert_eq!(data_of(poll(&mut body, Waker::noop())), "a");
    assert!(catch_unwind(AssertUnwindSafe(|| body.is_end_stream())).is_err());
    assert_eq!(body.recorded(), 1);
    assert!(body.replay().is_some());
}

#[test]
fn handles_can_be_sent_shared_and_moved() {
    fn check<T: Send + Sync + Unpin>() {}
    check::<ReplayBody<Script>>();
    check::<ReplayBody<Full<Bytes>>>();
    check::<ReplayBody<http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>>>();
    check::<ReplayBody<Cell<u8>>>();
}

#[test]
fn cloneable_body_replays_by_cloning() {
    let body = Full::new(Bytes::from_static(b"abc"));
    let again = body.replay().unwrap();
    assert!(!body.failed());
    assert_eq!(trace(again), trace(body));
}

#[test]
fn errors_say_what_happened_in_one_fragment() {
    assert_eq!(
        Superseded::new().to_string(),
        "request body was taken over by a later attempt"
    );
    assert_eq!(
        NotReplayable::new().to_string(),
        "request body is no longer kept and cannot be sent again"
    );
}

/// Answers with the request it got.
#[derive(Clone, Debug)]
struct Echo;

impl<B> Service<Request<B>> for Echo {
    type Response = Request<B>;
    type Error = Infallible;
    type Future = Ready<Result<Request<B>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(request))
    }
}

#[tokio::test]
async fn layer_wraps_the_body_and_leaves_the_head() {
    for (layer, limit) in [
        (ReplayLayer::default(), 65_536),
        (ReplayLayer::with_limit(3), 3),
        (ReplayLayer::with_limit(0), 0),
    ] {
        let mut service = layer.layer(Echo);
        let request = Request::put("/x")
            .header("a", "b")
            .body(Script::chunks(["ab", "c"]));
        // The future is that of the inner service, by its type.
        let answer: Ready<_> = service.call(request.unwrap());
        let (head, body) = answer.await.unwrap().into_parts();
        assert_eq!((head.method.as_str(), head.uri.path()), ("PUT", "/x"));
        assert_eq!(head.headers["a"], "b");
        assert_eq!(body.limit(), limit);
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.replay().is_some(), limit > 0);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        let Echo = service.get_mut();
        let Echo = service.get_ref();
        let Echo = service.into_inner();
    }
}
