//! What an attempt that is dropped half-way says of itself on its way out.

use std::cell::Cell;

use crate::{
    Answer, Attempt, BoxError, Delivery, Failure, Outcome, Phase, Reason, Repeatable, Witnessed,
};

/// What is proven of an attempt that was dropped half-way; returned by [`give_up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastWords {
    /// How far it got, and will have got: nothing more is taken of its body.
    pub delivery: Delivery,
    /// Where it stood.
    pub phase: Phase,
    /// What proves that the server did not act, if that is proven.
    pub by: Option<Witnessed>,
}

/// What was heard on this thread.
#[derive(Clone, Copy, Debug)]
enum Heard {
    /// Nobody listens.
    Deaf,
    Nothing,
    Words(LastWords),
}

thread_local! {
    /// A future is dropped by a plain call, on the thread of who drops it, so what it says meanwhile is
    /// meant for that caller and nobody else.
    static HEARD: Cell<Heard> = const { Cell::new(Heard::Deaf) };
}

// === impl LastWords ===

impl LastWords {
    /// What is known where no witness was dropped: the request may have been sent.
    pub const NONE: Self = Self {
        delivery: Delivery::MaybeSent,
        phase: Phase::Connecting,
        by: None,
    };

    /// Returns what giving the attempt up amounts to: of one that may have been sent, the outcome is
    /// that of a request that must not be repeated.
    pub fn failure(self, reason: Reason, source: impl Into<BoxError>) -> Failure {
        let after = None;
        let answer = if self.delivery.proves_not_applied() {
            Answer::NotApplied { reason, after }
        } else {
            Answer::Unclear {
                reason,
                after,
                transient: true,
            }
        };
        let outcome: Outcome = answer.outcome(Repeatable::No, Attempt::FIRST);
        Failure::new(outcome, self.delivery, source).with_proven_by(self.by)
    }
}

/// Drops an attempt, and returns what the [`WitnessLayer`](crate::WitnessLayer) below had to say of it.
///
/// For a layer that gives up waiting for its inner future: `drop` drops that future, where it is. A
/// witness inside seals the request body, so that what it says stays true. Where none is dropped, as
/// when there is no such layer or another task has the future, nothing is proven.
///
/// What is said is about the attempts that are *under way*. Below the caller there must be no layer
/// that sends a request twice on its own, or an earlier one goes unmentioned.
///
/// A future that hears nobody costs nothing: no state is shared while it lives.
pub fn give_up(drop: impl FnOnce()) -> LastWords {
    let before = HEARD.replace(Heard::Nothing);
    drop();
    match HEARD.replace(before) {
        Heard::Words(words) => words,
        Heard::Deaf | Heard::Nothing => LastWords::NONE,
    }
}

/// Says something, if somebody listens. The furthest of several is kept.
pub(super) fn say(words: impl FnOnce() -> LastWords) {
    // Without the cell the thread is on its way out, and nobody listens.
    let _ = HEARD.try_with(|heard| match heard.get() {
        Heard::Deaf => {}
        Heard::Nothing => heard.set(Heard::Words(words())),
        Heard::Words(before) => {
            let words = words();
            if words.delivery >= before.delivery {
                heard.set(Heard::Words(words));
            }
        }
    });
}
