//! What a request looks like.

use std::collections::HashSet;

use plotters::element::DynElement;
use plotters::prelude::*;

use crate::run::{Fate, Run, Sent};
use crate::scenario::Kind;
use crate::strategy::Belief;

/// A kind of dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Answered,
    QueryRefused,
    QueryFailed,
    Refused,
    Failed,
    Placed,
    PlacedUnseen,
    PlacedAgain,
    Asked,
    Unknown,
    Lost,
}

const GREEN: RGBColor = RGBColor(0x1b, 0x8a, 0x5a);
const BLUE: RGBColor = RGBColor(0x9d, 0xb8, 0xd3);
const AMBER: RGBColor = RGBColor(0xf0, 0xa0, 0x20);
const RED: RGBColor = RGBColor(0xd6, 0x1f, 0x2c);
const GREY: RGBColor = RGBColor(0x6b, 0x72, 0x78);
const VIOLET: RGBColor = RGBColor(0x7a, 0x3f, 0xb5);

/// Returns the marks of every request, what matters most last, so that it lies on top.
pub(super) fn marks(run: &Run) -> Vec<(Mark, &Sent)> {
    let mut placed = HashSet::new();
    let mut marks = Vec::new();
    for sent in run.sent.iter().filter(|sent| sent.kind != Kind::LogIn) {
        let again = sent.applied && !placed.insert(&sent.call);
        marks.push((Mark::of(sent, again), sent));
    }
    for (id, order) in &run.orders {
        let mut attempts = run.sent.iter().rev().filter(|sent| sent.call == *id);
        let ring = match order.belief {
            Belief::Unknown => attempts.next().map(|sent| (Mark::Unknown, sent)),
            Belief::Failed => {
                let placed = attempts.find(|sent| sent.applied);
                placed.map(|sent| (Mark::Lost, sent))
            }
            Belief::Done(_) => None,
        };
        marks.extend(ring);
    }
    marks.sort_by_key(|(mark, _)| *mark);
    marks
}

// === impl Mark ===

impl Mark {
    /// What there is to explain, in three lines.
    pub(super) const LEGEND: [(&'static str, &'static [Self]); 3] = [
        (
            "orders",
            &[
                Self::Placed,
                Self::PlacedUnseen,
                Self::PlacedAgain,
                Self::Failed,
                Self::Refused,
            ],
        ),
        ("verdicts", &[Self::Unknown, Self::Asked, Self::Lost]),
        (
            "queries",
            &[Self::Answered, Self::QueryFailed, Self::QueryRefused],
        ),
    ];

    fn of(sent: &Sent, again: bool) -> Self {
        match (sent.kind, sent.fate) {
            (Kind::Query, Fate::Answered) => Self::Answered,
            (Kind::Query, Fate::Failed) => Self::QueryFailed,
            (Kind::Query, _) => Self::QueryRefused,
            (Kind::Order, _) if again => Self::PlacedAgain,
            (Kind::Order, Fate::Answered) => Self::Placed,
            (Kind::Order, Fate::Failed) if sent.applied => Self::PlacedUnseen,
            (Kind::Order, Fate::Failed) => Self::Failed,
            (Kind::Order, _) => Self::Refused,
            (Kind::Question | Kind::LogIn, _) => Self::Asked,
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::PlacedUnseen => "placed, but the answer was lost, late or an error",
            Self::PlacedAgain => "placed AGAIN",
            Self::Failed => "failed, not placed",
            Self::Refused | Self::QueryRefused => {
                "refused: 429, 418 while banned, stale, or logged out"
            }
            Self::Unknown => "reported as unknown",
            Self::Asked => "asked the venue what became of it",
            Self::Lost => "LOST FROM VIEW: placed, but believed to have failed",
            Self::Answered => "answered",
            Self::QueryFailed => "failed, broken off or too late",
        }
    }

    /// Returns the mark, ready to be drawn around a point.
    pub(super) fn at<'a, DB, C>(self, point: C) -> DynElement<'a, DB, C>
    where
        DB: DrawingBackend + 'a,
        C: Clone + 'a,
    {
        let here = EmptyElement::at(point);
        let square = |half: i32| [(-half, -half), (half, half)];
        let thick = |color: RGBColor| color.stroke_width(2);
        match self {
            Self::Answered => (here + Circle::new((0, 0), 2, BLUE.filled())).into_dyn(),
            Self::QueryRefused => (here + Circle::new((0, 0), 2, AMBER.filled())).into_dyn(),
            Self::QueryFailed => (here + Cross::new((0, 0), 2, GREY)).into_dyn(),
            Self::Placed => (here + Rectangle::new(square(3), GREEN.filled())).into_dyn(),
            Self::PlacedUnseen => (here + Rectangle::new(square(3), thick(GREEN))).into_dyn(),
            Self::PlacedAgain => (here + TriangleMarker::new((0, 0), 7, RED.filled())).into_dyn(),
            Self::Failed => (here + Cross::new((0, 0), 3, thick(GREY))).into_dyn(),
            Self::Refused => (here + Rectangle::new(square(2), AMBER.filled())).into_dyn(),
            Self::Asked => (here + Circle::new((0, 0), 3, VIOLET.filled())).into_dyn(),
            Self::Unknown => (here + Circle::new((0, 0), 7, thick(VIOLET))).into_dyn(),
            Self::Lost => (here + Circle::new((0, 0), 7, thick(RED))).into_dyn(),
        }
    }
}
