//! Sealing a body while another thread takes it.

use std::{
    pin::Pin,
    sync::Barrier,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body, Frame};
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

#[derive(Clone, Copy, Debug)]
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
