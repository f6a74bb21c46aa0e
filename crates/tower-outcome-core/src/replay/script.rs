//! A body that does what it is told, and a record of what any body does. For tests.

use std::{
    collections::VecDeque,
    fmt,
    marker::PhantomPinned,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use proptest::{collection::vec, option, prelude::*};

use crate::BoxError;

/// The text of the error of a script.
pub(crate) const BROKEN: &str = "script broke off";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Pending,
    Data(Bytes),
    Trailers(HeaderMap),
    Error,
}

/// How much a script says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Exactly,
    AtLeast,
    Nothing,
}

pin_project! {
    /// Plays acts; not `Unpin`, so that nothing here relies on it.
    #[derive(Debug)]
    pub(crate) struct Script {
        acts: VecDeque<Act>,
        says: Says,
        ended: bool,
        #[pin]
        pinned: PhantomPinned,
    }
}

/// A body of which each poll is a call.
pub(crate) struct Hooked(pub(crate) Hook);

pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;
pub(crate) type Hook = Box<dyn FnMut(&mut Context<'_>) -> Polled + Send>;

/// What was seen of a body at one point: its hints, then what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) lower: u64,
    pub(crate) upper: Option<u64>,
    pub(crate) end: bool,
    pub(crate) seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Data(Bytes),
    Trailers(HeaderMap),
    Error(String),
    End,
    /// Nothing was asked for but the hints.
    Rest,
}

/// Counts how often it was woken.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicUsize);

/// A script's acts and what it says, at random: any frames, any error, any waiting.
pub(crate) fn any_script() -> impl Strategy<Value = (Vec<Act>, Says)> {
    let data = vec(any::<u8>(), 0..24).prop_map(|data| Act::Data(data.into()));
    let act = prop_oneof![4 => data, 2 => Just(Act::Pending), 1 => Just(Act::Data(Bytes::new()))];
    let says = prop_oneof![
        Just(Says::Exactly),
        Just(Says::AtLeast),
        Just(Says::Nothing)
    ];
    (
        vec(act, 0..8),
        any::<bool>(),
        option::weighted(0.3, 0usize..10),
        says,
    )
        .prop_map(|(mut acts, trailers, error, says)| {
            if trailers {
                acts.push(Act::Trailers(checksum("abc")));
            }
            if let Some(at) = error {
                acts.truncate(at);
                acts.push(Act::Error);
            }
            (acts, says)
        })
}

pub(crate) fn checksum(value: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("checksum", http::HeaderValue::from_static(value));
    trailers
}

/// Returns everything `body` does, with the hints before each point and after its end or error.
pub(crate) fn trace<B>(body: B) -> Vec<Point>
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    let mut body = Box::pin(body);
    let mut points = Vec::new();
    loop {
        let point = next(body.as_mut());
        let last = matches!(point.seen, Seen::End | Seen::Error(_));
        points.push(point);
        if last {
            points.push(look(&body, Seen::Rest));
            return points;
        }
    }
}

/// Waits for what `body` does next.
pub(crate) fn next<B>(mut body: Pin<&mut B>) -> Point
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    for _ in 0..100 {
        if let Some(point) = once(body.as_mut(), Waker::noop()) {
            return point;
        }
    }
    panic!("the body is never ready");
}

/// Polls `body` once; `None` is pending.
pub(crate) fn once<B>(mut body: Pin<&mut B>, waker: &Waker) -> Option<Point>
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    let before = look(&body, Seen::Rest);
    let seen = match body.as_mut().poll_frame(&mut Context::from_waker(waker)) {
        Poll::Pending => {
            assert_eq!(look(&body, Seen::Rest), before, "waiting changes no hint");
            return None;
        }
        Poll::Ready(None) => Seen::End,
        Poll::Ready(Some(Err(error))) => Seen::Error(error.to_string()),
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            Ok(data) => Seen::Data(data),
            Err(frame) => Seen::Trailers(frame.into_trailers().unwrap()),
        },
    };
    Some(Point { seen, ..before })
}

fn look<B: Body>(body: &B, seen: Seen) -> Point {
    let size = body.size_hint();
    Point {
        lower: size.lower(),
        upper: size.upper(),
        end: body.is_end_stream(),
        seen,
    }
}

// === impl Script ===

impl Script {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>, says: Says) -> Self {
        Self {
            acts: acts.into_iter().collect(),
            says,
            ended: false,
            pinned: PhantomPinned,
        }
    }

    /// Frames of data and nothing else.
    pub(crate) fn chunks(chunks: impl IntoIterator<Item = &'static str>) -> Self {
        let data = |chunk: &'static str| Act::Data(Bytes::from_static(chunk.as_bytes()));
        Self::new(chunks.into_iter().map(data), Says::Exactly)
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.project();
        assert!(!*this.ended, "polled after its end");
        match this.acts.pop_front() {
            Some(Act::Pending) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Act::Data(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Some(Act::Trailers(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Some(Act::Error) => Poll::Ready(Some(Err(BROKEN.into()))),
            None => {
                *this.ended = true;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.says == Says::Exactly && self.acts.iter().all(|act| *act == Act::Pending)
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.acts.iter().fold(0, |sum, act| match act {
            Act::Data(data) => sum + data.len() as u64,
            // What it would have sent had it not failed.
            Act::Error => sum + 5,
            Act::Pending | Act::Trailers(_) => sum,
        });
        let mut hint = SizeHint::new();
        match self.says {
            Says::Exactly => hint.set_exact(left),
            Says::AtLeast => hint.set_lower(left / 2),
            Says::Nothing => {}
        }
        hint
    }
}

// === impl Hooked ===

impl Body for Hooked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        (self.get_mut().0)(cx)
    }
}

// === impl Bell ===

impl Bell {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        (Arc::clone(&bell), Waker::from(bell))
    }

    pub(crate) fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
