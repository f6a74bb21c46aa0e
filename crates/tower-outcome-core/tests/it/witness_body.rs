//! How much of a request body was taken, frame by frame and hint by hint.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Version, request};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Empty, Full};
use tokio_test::{assert_pending, task};
use tower_outcome_core::{BodyTaken, BodyWitness, BoxError, RequestBodyError, WitnessBody};

use crate::support::*;

/// A body that does what it is told, and hints what it is told.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    frames: VecDeque<Step>,
    /// What it says is left, if it knows.
    left: Option<u64>,
    /// Whether it says that it has ended once its frames are used up.
    tells_end: bool,
}

#[derive(Debug)]
pub(crate) enum Step {
    Data(&'static str),
    Trailers(HeaderMap),
    Pending,
    Fails,
}

// === impl Scripted ===

impl Scripted {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            frames: steps.into_iter().collect(),
            ..Self::default()
        }
    }

    pub(crate) fn exact(mut self, bytes: u64) -> Self {
        self.left = Some(bytes);
        self
    }

    pub(crate) fn telling_end(mut self) -> Self {
        self.tells_end = true;
        self
    }
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = Stranger;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Stranger>>> {
        let Some(step) = self.frames.pop_front() else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(match step {
            Step::Pending => return Poll::Pending,
            Step::Data(data) => {
                let bytes = u64::try_from(data.len()).unwrap();
                self.left = self.left.map(|left| left.saturating_sub(bytes));
                Ok(Frame::data(Bytes::from_static(data.as_bytes())))
            }
            Step::Trailers(trailers) => Ok(Frame::trailers(trailers)),
            Step::Fails => Err(Stranger),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.tells_end && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// Finds out its length when the first frame is taken.
#[derive(Debug)]
struct Late(Scripted, bool);

impl Body for Late {
    type Data = Bytes;
    type Error = Stranger;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Stranger>>> {
        self.1 = true;
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn size_hint(&self) -> SizeHint {
        if self.1 {
            self.0.size_hint()
        } else {
            SizeHint::new()
        }
    }
}

// ## A transport that takes one frame at a time

type Taken = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

fn take<B>(body: &mut WitnessBody<B>) -> Taken
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    task::spawn(()).enter(|cx, _| Pin::new(body).poll_frame(cx))
}

fn data(taken: Taken) -> Bytes {
    match taken {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn is_withheld(taken: Taken) -> bool {
    let Poll::Ready(Some(Err(error))) = taken else {
        return false;
    };
    let error = error.downcast_ref::<RequestBodyError>().unwrap();
    assert!(error.transport().is_none());
    assert!(std::error::Error::source(error).is_none(), "no cause yet");
    true
}

fn watched<B: Body>(body: B) -> (WitnessBody<B>, BodyWitness) {
    let (body, witness) = WitnessBody::new(body, &post());
    (body, witness.unwrap())
}

fn two_frames() -> Scripted {
    Scripted::new([Step::Data("buy "), Step::Data("100")])
}

fn declared(length: &str) -> request::Parts {
    let mut head = post();
    let length = length.parse().unwrap();
    head.headers.insert("content-length", length);
    head
}

#[test]
fn frames_trailers_and_hints_are_those_of_the_inner_body() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", "7".parse().unwrap());
    let steps = [
        Step::Data("buy "),
        Step::Pending,
        Step::Data("100"),
        Step::Trailers(trailers.clone()),
    ];
    let (mut body, witness) = watched(Scripted::new(steps));
    assert_eq!(body.size_hint().exact(), None);
    assert!(!body.is_end_stream());
    assert_eq!(data(take(&mut body)), "buy ");
    assert!(take(&mut body).is_pending());
    assert_eq!(data(take(&mut body)), "100");
    assert_eq!(witness.bytes(), 7);
    let Poll::Ready(Some(Ok(last))) = take(&mut body) else {
        panic!("the trailers are missing");
    };
    assert_eq!(last.into_trailers().unwrap(), trailers);
    assert!(matches!(take(&mut body), Poll::Ready(None)));
    assert!(body.get_ref().frames.is_empty());
    assert!(body.into_inner().frames.is_empty());

    let (mut body, _) = watched(two_frames().exact(7).telling_end());
    for left in [7, 3, 0] {
        assert_eq!(body.size_hint().exact(), Some(left));
        assert_eq!(body.is_end_stream(), left == 0);
        let _ = take(&mut body);
    }
}

#[test]
fn a_body_that_was_never_asked_for_was_not_taken() {
    let (body, witness) = watched(Full::<Bytes>::from("buy 100"));
    assert_eq!(witness.taken(), BodyTaken::Nothing);
    assert_eq!(body.size_hint().exact(), Some(7));
    assert!(!body.is_end_stream());
    assert_eq!(witness.taken(), BodyTaken::Nothing, "looking is not taking");
    assert_eq!(witness.bytes(), 0);
    let (mut body, witness) = watched(Scripted::new([Step::Pending]));
    assert_pending!(take(&mut body));
    assert_eq!(witness.taken(), BodyTaken::Nothing);
}

#[test]
fn a_body_of_known_length_is_whole_once_that_many_bytes_are_taken() {
    let (mut body, witness) = watched(two_frames().exact(7));
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Part);
    assert_eq!(witness.bytes(), 4);
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Whole, "without asking further");
    assert_eq!(witness.bytes(), 7);
}

#[test]
fn a_body_of_unknown_length_is_whole_only_at_its_end() {
    let (mut body, witness) = watched(two_frames());
    for _ in 0..2 {
        let _ = take(&mut body);
        assert_eq!(witness.taken(), BodyTaken::Part);
    }
    assert!(matches!(take(&mut body), Poll::Ready(None)));
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn a_last_frame_that_is_known_to_be_the_last_completes_the_body() {
    let (mut body, witness) = watched(two_frames().telling_end());
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Part);
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn trailers_complete_a_body() {
    let steps = [Step::Data("buy 100"), Step::Trailers(HeaderMap::new())];
    let (mut body, witness) = watched(Scripted::new(steps));
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Part);
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn a_declared_length_completes_a_body_that_does_not_know_its_own() {
    let (mut body, witness) = WitnessBody::new(two_frames(), &declared("4"));
    let witness = witness.unwrap();
    let _ = take(&mut body);
    assert_eq!(
        witness.taken(),
        BodyTaken::Whole,
        "the peer goes by the header"
    );
}

#[test]
fn a_declared_length_that_cannot_be_read_claims_nothing() {
    for junk in ["", "four", "-4", "99999999999999999999", "4, 4"] {
        let witness = WitnessBody::new(two_frames().exact(7), &declared(junk)).1;
        assert!(witness.is_none(), "{junk:?}");
    }
    let mut twice = declared("4");
    twice.headers.append("content-length", "7".parse().unwrap());
    assert!(WitnessBody::new(two_frames().exact(7), &twice).1.is_none());
}

#[test]
fn a_declared_length_that_the_body_does_not_reach_ends_with_the_body() {
    let (mut body, witness) = WitnessBody::new(two_frames().exact(7), &declared("100"));
    let witness = witness.unwrap();
    let _ = take(&mut body);
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Part);
    assert!(matches!(take(&mut body), Poll::Ready(None)));
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn an_end_that_was_learnt_by_asking_is_known_to_the_witness() {
    // The body tells its end without yielding another frame.
    let (mut body, witness) = watched(Scripted::new([Step::Pending]).telling_end());
    assert_pending!(take(&mut body));
    assert_eq!(witness.taken(), BodyTaken::Nothing);
    assert!(body.is_end_stream());
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn a_body_that_fails_keeps_its_error_for_the_caller() {
    let steps = [Step::Data("buy "), Step::Fails];
    let (mut body, witness) = watched(Scripted::new(steps));
    let _ = take(&mut body);
    assert!(witness.take_error().is_none());
    assert!(
        is_withheld(take(&mut body)),
        "the transport learns no cause"
    );
    assert_eq!(witness.taken(), BodyTaken::Failed);
    assert!(witness.take_error().unwrap().is::<Stranger>());
    assert!(witness.take_error().is_none(), "once");
}

#[test]
fn a_body_that_fails_after_its_end_was_whole() {
    let steps = [Step::Data("buy 100"), Step::Fails];
    let (mut body, witness) = watched(Scripted::new(steps).exact(7));
    let _ = take(&mut body);
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

// ## Requests that may be complete without their body

#[test]
fn an_empty_body_has_no_witness() {
    assert!(WitnessBody::new(Empty::<Bytes>::new(), &post()).1.is_none());
    assert!(
        WitnessBody::new(Full::<Bytes>::default(), &post())
            .1
            .is_none()
    );
    let ended = Scripted::new([]).telling_end();
    assert!(WitnessBody::new(ended, &post()).1.is_none());
    let nothing = Scripted::new([]).exact(0);
    assert!(WitnessBody::new(nothing, &post()).1.is_none());
    assert!(WitnessBody::new(two_frames(), &declared("0")).1.is_none());
}

#[test]
fn a_body_without_a_witness_is_passed_on_all_the_same() {
    let (mut body, witness) = WitnessBody::new(two_frames(), &declared("0"));
    assert!(witness.is_none());
    assert!(!body.is_end_stream());
    assert_eq!(body.size_hint().exact(), None);
    assert_eq!(data(take(&mut body)), "buy ");
    assert_eq!(data(take(&mut body)), "100");
    assert!(matches!(take(&mut body), Poll::Ready(None)));
    let (mut body, _) = WitnessBody::new(Scripted::new([Step::Fails]), &get());
    let Poll::Ready(Some(Err(error))) = take(&mut body) else {
        panic!("it fails");
    };
    assert!(error.is::<Stranger>(), "there is no witness to keep it");
}

#[test]
fn a_body_of_unknown_length_claims_nothing_where_http1_has_no_framing_for_it() {
    for method in ["GET", "HEAD", "CONNECT", "POST", "PUT", "DELETE", "OPTIONS"] {
        let method: Method = method.parse().unwrap();
        let left_out = [Method::GET, Method::HEAD, Method::CONNECT].contains(&method);
        for (version, old) in [
            (Version::HTTP_09, true),
            (Version::HTTP_10, true),
            (Version::HTTP_11, false),
            (Version::HTTP_2, false),
        ] {
            let mut head = request(method.clone());
            head.version = version;
            let unknown = WitnessBody::new(two_frames(), &head).1;
            assert_eq!(unknown.is_none(), left_out || old, "{method} {version:?}");
            // With a length there is a framing.
            let known = WitnessBody::new(two_frames().exact(7), &head).1;
            assert!(known.is_some(), "{method} {version:?}");
            let length = "7".parse().unwrap();
            head.headers.insert("content-length", length);
            let declared = WitnessBody::new(two_frames(), &head).1;
            assert!(declared.is_some(), "{method} {version:?}");
        }
    }
}

// ## Sealing

#[test]
fn after_sealing_nothing_more_is_handed_out_and_what_was_told_stays_true() {
    let (mut body, witness) = watched(two_frames().exact(7).telling_end());
    let _ = take(&mut body);
    assert_eq!(witness.seal(), BodyTaken::Part);
    for _ in 0..3 {
        assert!(is_withheld(take(&mut body)));
        assert!(!body.is_end_stream());
        assert_eq!(witness.taken(), BodyTaken::Part);
        assert_eq!(witness.clone().seal(), BodyTaken::Part);
    }
    assert_eq!(witness.bytes(), 4);
}

#[test]
fn a_sealed_body_tells_no_end_by_either_hint() {
    let (mut body, witness) = watched(Scripted::new([Step::Pending]).telling_end());
    assert_pending!(take(&mut body));
    assert_eq!(witness.seal(), BodyTaken::Nothing);
    assert!(!body.is_end_stream());
    assert_eq!(witness.taken(), BodyTaken::Nothing);

    let unknown_at_first = Late(Scripted::new([Step::Data("7")]).exact(1), false);
    let (mut body, witness) = watched(unknown_at_first);
    assert_eq!(body.size_hint().exact(), None);
    let _ = take(&mut body);
    let sealed = witness.seal();
    assert_eq!(sealed, BodyTaken::Part);
    assert_eq!(
        body.size_hint().exact(),
        None,
        "nothing is left, and not told"
    );
    assert_eq!(witness.taken(), sealed);
}

#[test]
fn a_body_that_learns_its_length_on_the_way_is_whole_when_the_rest_is_announced_as_nothing() {
    let (mut body, witness) = watched(Late(Scripted::new([Step::Data("7")]).exact(1), false));
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Part);
    assert_eq!(body.size_hint().exact(), Some(0));
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn a_length_that_was_announced_on_the_way_completes_the_body() {
    let (mut body, witness) = watched(Late(two_frames().exact(7), false));
    let _ = take(&mut body);
    assert_eq!(body.size_hint().exact(), Some(3));
    assert_eq!(witness.taken(), BodyTaken::Part);
    let _ = take(&mut body);
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn a_sealed_body_that_was_whole_may_tell_its_end_as_often_as_it_is_asked() {
    let (mut body, witness) = watched(two_frames().telling_end());
    let _ = take(&mut body);
    let _ = take(&mut body);
    assert_eq!(witness.seal(), BodyTaken::Whole);
    assert!(body.is_end_stream());
    assert_eq!(witness.taken(), BodyTaken::Whole);
    assert!(is_withheld(take(&mut body)));
    assert_eq!(witness.taken(), BodyTaken::Whole);
}

#[test]
fn a_sealed_failure_stays_a_failure() {
    let (mut body, witness) = watched(Scripted::new([Step::Fails]));
    let _ = take(&mut body);
    assert_eq!(witness.seal(), BodyTaken::Failed);
    assert!(is_withheld(take(&mut body)));
    assert_eq!(witness.taken(), BodyTaken::Failed);
    assert!(witness.take_error().unwrap().is::<Stranger>());
}
