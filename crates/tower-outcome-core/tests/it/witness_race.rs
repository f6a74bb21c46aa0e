//! Sealing a body while another thread takes it.

use std::{
    pin::Pin,
    sync::{Barrier, OnceLock},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tower_outcome_core::{BodyTaken, BodyWitness, WitnessBody};

use crate::{
    support::*,
    witness_body::{Scripted, Step},
};

const ROUNDS: usize = 3000;

/// What a transport has at last: whether it got the last frame, or knows of the end.
struct Has {
    frames: usize,
    end: bool,
}

/// A transport that learns of the end in one way or another.
fn transport(mut body: WitnessBody<Scripted>, asks: Asks) -> Has {
    let mut has = Has {
        frames: 0,
        end: false,
    };
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let _: Frame<Bytes> = frame;
                has.frames += 1;
            }
            Poll::Ready(None) => has.end = true,
            Poll::Ready(Some(Err(_))) => return has,
            Poll::Pending => {}
        }
        has.end |= match asks {
            Asks::Frames => false,
            Asks::End => body.is_end_stream(),
            Asks::Size => body.size_hint().exact() == Some(0),
        };
        if has.end {
            return has;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Frames,
    End,
    Size,
}

fn race(make: impl Fn() -> Scripted, asks: Asks, check: impl Fn(BodyTaken, &Has)) {
    for round in 0..ROUNDS {
        let (body, witness) = WitnessBody::new(make(), &post());
        let witness: BodyWitness = witness.unwrap();
        let barrier = Barrier::new(2);
        let (sealed, has) = std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                barrier.wait();
                transport(body, asks)
            });
            barrier.wait();
            // Not always at once, so that the seal falls everywhere.
            for _ in 0..round % 64 {
                std::hint::spin_loop();
            }
            let sealed = witness.seal();
            (sealed, taker.join().unwrap())
        });
        assert_eq!(witness.taken(), sealed, "what was told stays true");
        check(sealed, &has);
    }
}

#[test]
fn who_seals_a_body_of_known_length_knows_of_its_last_frame() {
    let steps = || [Step::Data("1"), Step::Data("2"), Step::Data("3")];
    race(
        || Scripted::new(steps()).exact(3),
        Asks::Frames,
        |sealed, has| {
            assert_eq!(sealed == BodyTaken::Whole, has.frames == 3);
            assert_eq!(sealed == BodyTaken::Nothing, has.frames == 0);
        },
    );
}

#[test]
fn who_seals_a_body_of_unknown_length_knows_whether_its_end_was_told() {
    let steps = || [Step::Data("1"), Step::Data("2")];
    race(
        || Scripted::new(steps()),
        Asks::Frames,
        |sealed, has| assert_eq!(sealed == BodyTaken::Whole, has.end),
    );
}

#[test]
fn who_seals_a_body_knows_whether_a_hint_told_its_end() {
    let steps = || [Step::Data("1"), Step::Pending];
    for (make, asks) in [
        (Scripted::telling_end as fn(Scripted) -> Scripted, Asks::End),
        (|body| body.exact(1), Asks::Size),
    ] {
        race(
            || make(Scripted::new(steps())),
            asks,
            |sealed, has| {
                assert!(sealed == BodyTaken::Whole || !has.end, "{asks:?}");
            },
        );
    }
}

// ## The narrowest moment, without a second thread

/// Is sealed while it is being asked, between the transport's question and its answer.
struct SealedMeanwhile {
    inner: Scripted,
    witness: OnceLock<BodyWitness>,
    sealed: OnceLock<BodyTaken>,
    seals_on: Asks,
}

// === impl SealedMeanwhile ===

impl SealedMeanwhile {
    fn new(seals_on: Asks, steps: impl IntoIterator<Item = Step>) -> WitnessBody<Self> {
        let body = Self {
            inner: Scripted::new(steps).telling_end(),
            witness: OnceLock::new(),
            sealed: OnceLock::new(),
            seals_on,
        };
        let (body, witness) = WitnessBody::new(body, &post());
        body.get_ref().witness.set(witness.unwrap()).unwrap();
        body
    }

    /// Not before it has a witness, or it would get none.
    fn has_ended(&self) -> bool {
        self.witness.get().is_some() && self.inner.is_end_stream()
    }

    fn seal(&self, on: Asks) {
        if let Some(witness) = self.witness.get().filter(|_| on == self.seals_on) {
            self.sealed.get_or_init(|| witness.seal());
        }
    }
}

impl Body for SealedMeanwhile {
    type Data = Bytes;
    type Error = Stranger;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Stranger>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        self.seal(Asks::Frames);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.seal(Asks::End);
        self.has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        if self.has_ended() {
            SizeHint::with_exact(0)
        } else {
            SizeHint::new()
        }
    }
}

fn nothing_is_told(body: &mut WitnessBody<SealedMeanwhile>) {
    let mut cx = Context::from_waker(Waker::noop());
    let taken = Pin::new(&mut *body).poll_frame(&mut cx);
    assert!(matches!(taken, Poll::Ready(Some(Err(_)))), "{taken:?}");
    assert!(!body.is_end_stream());
    assert_eq!(body.size_hint().exact(), None);
    let inner = body.get_ref();
    assert_eq!(inner.sealed.get(), Some(&BodyTaken::Nothing));
    assert_eq!(inner.witness.get().unwrap().taken(), BodyTaken::Nothing);
}

#[test]
fn a_frame_or_an_end_that_was_on_its_way_when_the_body_was_sealed_is_withheld() {
    nothing_is_told(&mut SealedMeanwhile::new(Asks::Frames, [Step::Data("1")]));
    // Its last frame is taken and noted only after the seal.
    nothing_is_told(&mut SealedMeanwhile::new(Asks::End, [Step::Data("1")]));
    nothing_is_told(&mut SealedMeanwhile::new(Asks::Frames, []));
    let trailers = Step::Trailers(http::HeaderMap::new());
    nothing_is_told(&mut SealedMeanwhile::new(Asks::Frames, [trailers]));
}
