//! What the handles of one body share: the body, its recording, and whose turn it is.

use std::{
    mem,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Buf;
use http_body::{Body, SizeHint};

use super::{
    error::Superseded,
    tape::{Hint, Place, Step, Tape},
};
use crate::BoxError;

/// The shared part of a replayable body.
///
/// The lock is held for bookkeeping alone. Whatever runs foreign code happens without it: polling
/// the body, waking, and dropping a body, a frame or a waker, each of which may come back here
/// through another handle.
#[derive(Debug)]
pub(super) struct Shared<B> {
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    source: Source<B>,
    tape: Tape,
    /// What the body said before anything was read from it.
    start: Hint,
    failed: bool,
    /// The attempt that may read; 0 before the first poll.
    active: u64,
    /// The handle made last.
    newest: u64,
    /// Wakes the active attempt.
    waiting: Option<Waker>,
}

#[derive(Debug)]
enum Source<B> {
    Idle(Pin<Box<B>>),
    /// An attempt is polling the body; it said this before.
    Lent(Hint),
    /// The body ended, and said this after.
    Ended(Hint),
    /// The body panicked, and what it had read is gone with it.
    Lost,
}

/// What a handle may do when it is polled.
#[derive(Debug)]
pub(super) enum Turn<'a, B> {
    Take(Step),
    Poll(Lease<'a, B>),
    Wait,
    Over,
    Superseded,
    NotReplayable,
}

/// The body, out of the shared state while it is polled.
///
/// NOTE: the state says `Lent` for as long as this lives; `settle` or `drop` ends it.
#[derive(Debug)]
pub(super) struct Lease<'a, B> {
    shared: &'a Shared<B>,
    id: u64,
    before: Hint,
    /// `None` once it went back.
    body: Option<Pin<Box<B>>>,
}

// === impl Shared ===

impl<B> Shared<B> {
    /// The id of the first handle.
    pub(super) const FIRST: u64 = 1;

    pub(super) fn is_failed(&self) -> bool {
        self.lock().failed
    }

    pub(super) fn recorded(&self) -> usize {
        self.lock().tape.size()
    }

    pub(super) fn limit(&self) -> usize {
        self.lock().tape.limit()
    }

    /// Returns the id of one handle more, if the body can still be replayed.
    pub(super) fn another(&self) -> Option<u64> {
        let mut state = self.lock();
        if !state.tape.is_recording() {
            return None;
        }
        state.newest += 1;
        Some(state.newest)
    }

    /// Forgets the waker of the handle `id`, which is going away.
    pub(super) fn leave(&self, id: u64) {
        let mut state = self.lock();
        let waker = if state.active == id {
            state.waiting.take()
        } else {
            None
        };
        drop(state);
        drop(waker);
    }

    // Recovered when poisoned: the only foreign code under the lock are the two hints of the body,
    // and at that moment every field holds what it should.
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Body> Shared<B> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        let start = Hint::of(&body);
        Self {
            state: Mutex::new(State {
                source: Source::Idle(Box::pin(body)),
                tape: Tape::new(limit),
                start,
                failed: false,
                active: 0,
                newest: Self::FIRST,
                waiting: None,
            }),
        }
    }

    /// Decides what the handle `id`, which has read `position` steps, does next.
    pub(super) fn turn(&self, id: u64, position: usize, waker: &Waker) -> Turn<'_, B> {
        let mut state = self.lock();
        if id < state.active {
            return Turn::Superseded;
        }
        let mut superseded = None;
        if id > state.active {
            // The active attempt still streams what cannot be replayed: leave it alone.
            if state.active != 0 && !state.tape.is_recording() {
                return Turn::NotReplayable;
            }
            state.active = id;
            superseded = state.waiting.take();
        }
        let mut replaced = None;
        let mut released = None;
        let turn = match state.tape.place(position) {
            Place::Kept(_) => {
                let taken = state.tape.read(position);
                released = Some(taken.released);
                taken.step.map_or(Turn::NotReplayable, Turn::Take)
            }
            Place::Gone => Turn::NotReplayable,
            Place::Live => match &state.source {
                Source::Idle(body) => {
                    let before = Hint::of(body);
                    match mem::replace(&mut state.source, Source::Lent(before)) {
                        Source::Idle(body) => Turn::Poll(Lease {
                            shared: self,
                            id,
                            before,
                            body: Some(body),
                        }),
                        _ => Turn::NotReplayable,
                    }
                }
                Source::Lent(_) => {
                    replaced = state.wait(waker);
                    Turn::Wait
                }
                Source::Ended(_) => Turn::Over,
                Source::Lost => Turn::NotReplayable,
            },
        };
        drop(state);
        drop((replaced, released));
        // The abandoned attempt learns that it is one, rather than to wait for ever.
        if let Some(waker) = superseded {
            waker.wake();
        }
        turn
    }

    pub(super) fn size_hint(&self, position: usize) -> SizeHint {
        self.hint(position).size()
    }

    pub(super) fn is_end_stream(&self, position: usize) -> bool {
        self.hint(position).is_end()
    }

    /// Returns what the body said, or says, after `position` steps.
    fn hint(&self, position: usize) -> Hint {
        let state = self.lock();
        match state.tape.place(position) {
            Place::Kept(hint) => hint,
            Place::Live => match &state.source {
                Source::Idle(body) => Hint::of(body),
                Source::Lent(hint) | Source::Ended(hint) => *hint,
                Source::Lost => Hint::default(),
            },
            Place::Gone if position == 0 => state.start,
            // Not the end of the stream: whoever asks must poll, and see the error.
            Place::Gone => Hint::default(),
        }
    }
}

// === impl State ===

impl<B> State<B> {
    /// Lets `waker` wake the active attempt, and returns the one it replaces.
    fn wait(&mut self, waker: &Waker) -> Option<Waker> {
        match &self.waiting {
            Some(waiting) if waiting.will_wake(waker) => None,
            _ => self.waiting.replace(waker.clone()),
        }
    }
}

// === impl Lease ===

impl<B> Lease<'_, B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    /// Polls the body and gives it back.
    ///
    /// `Superseded` if another attempt became the active one meanwhile; what the body did is kept
    /// for that one.
    pub(super) fn poll(mut self, cx: &mut Context<'_>) -> Poll<Result<Step, Superseded>> {
        let Some(body) = self.body.as_mut() else {
            return Poll::Ready(Ok(Step::End));
        };
        let step = match body.as_mut().poll_frame(cx) {
            Poll::Pending => None,
            Poll::Ready(None) => Some(Step::End),
            Poll::Ready(Some(Err(error))) => Some(Step::Error(error.into())),
            Poll::Ready(Some(Ok(frame))) => Some(Step::from(
                // `Bytes` hands itself over here; any other buffer is copied once.
                frame.map_data(|mut data| data.copy_to_bytes(data.remaining())),
            )),
        };
        let end = matches!(step, Some(Step::End)).then(|| Hint::of(body));
        self.settle(step, end, cx.waker())
    }

    fn settle(
        &mut self,
        step: Option<Step>,
        end: Option<Hint>,
        waker: &Waker,
    ) -> Poll<Result<Step, Superseded>> {
        let (source, ended) = match (self.body.take(), end) {
            (body, Some(hint)) => (Source::Ended(hint), body),
            (Some(body), None) => (Source::Idle(body), None),
            (None, None) => (Source::Lost, None),
        };
        let mut state = self.shared.lock();
        state.source = source;
        let active = state.active == self.id;
        let (result, released, replaced) = match step {
            None if active => (Poll::Pending, None, state.wait(waker)),
            None => (Poll::Ready(Err(Superseded::new())), None, None),
            Some(step) => {
                state.failed |= matches!(step, Step::Error(_));
                let taken = state.tape.accept(self.before, step, active);
                let result = taken.step.ok_or_else(Superseded::new);
                (Poll::Ready(result), Some(taken.released), None)
            }
        };
        // Another attempt that waits for the body to come back polls it with a waker of its own.
        let next = if active { None } else { state.waiting.take() };
        drop(state);
        drop((ended, released, replaced));
        if let Some(waker) = next {
            waker.wake();
        }
        result
    }
}

impl<B> Drop for Lease<'_, B> {
    fn drop(&mut self) {
        // Only a panic of the body leaves it here. Whatever it had taken from its own source is
        // lost, so it must not go on as if nothing had happened.
        let Some(body) = self.body.take() else {
            return;
        };
        let mut state = self.shared.lock();
        state.source = Source::Lost;
        state.failed = true;
        state.tape.stop();
        let next = state.waiting.take();
        drop(state);
        drop(body);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
