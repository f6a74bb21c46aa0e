//! What layers tell each other about a call while it lasts.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU8, AtomicU32, Ordering},
};

use http::{Extensions, HeaderValue};

use crate::{
    Answer, Attempt, AttemptWitness, BoxError, Deadline, Delivery, Failure, Outcome, Reason,
    Repeatable, ValidUntil, carried::Carried, few::Few,
};

/// What layers tell each other about a call while it lasts.
///
/// A layer that needs to know (a deadline that must say what had happened when it struck) creates
/// the context and [puts](Self::put) it into the request's extensions; layers below [find](Self::of) it
/// and keep it up to date. Where nobody asks, nobody pays. Clones share the same state.
///
/// Every attempt of a call sees the same context, since a resend keeps the request's extensions.
#[derive(Clone, Debug, Default)]
pub struct CallContext(Arc<State>);

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting in a queue of this process; where a call starts.
    Queued,
    /// Waiting for a credential.
    AwaitingToken,
    /// Waiting between two attempts.
    BackingOff,
    /// Handed down, and nothing of its body is known to have been taken yet.
    Connecting,
    /// The transport is taking the request body.
    Sending,
    /// The transport has taken the whole request.
    AwaitingHead,
    /// The response head is here.
    ReadingBody,
}

/// Keeps what is to be sent in this process; made by [`CallContext::hold`].
///
/// A layer [lets go](Self::let_go) of it before it hands the request down.
#[derive(Debug)]
#[must_use = "dropping it says that the request is handed down"]
pub struct Hold {
    context: CallContext,
    layer: &'static str,
    is_held: bool,
}

/// How far a call got that is given up from above; returned by [`CallContext::give_up`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GivenUp {
    /// Where the call stood.
    pub phase: Phase,
    /// How far it got: the furthest of all its attempts.
    pub delivery: Delivery,
    /// The outcome of the last attempt, if the call was between two.
    pub last: Option<Outcome>,
}

#[derive(Debug, Default)]
struct State {
    deadline: Option<Deadline>,
    phase: AtomicU8,
    attempts: AtomicU32,
    /// Held for a copy in and out, never across an await.
    course: Mutex<Course>,
}

/// What became of the attempts.
#[derive(Debug, Default)]
struct Course {
    /// The outcome of the last attempt that ended, and the furthest delivery of all.
    last: Option<(Outcome, Delivery)>,
    /// Whether `last` is all there is: no attempt has begun since.
    ended: bool,
    /// Who knows how far the attempt under way got: each layer that watches it, for each request that
    /// it was made of.
    watched: Few<AttemptWitness, 1>,
    /// Whether a response head of the attempt under way is here.
    answered: bool,
    /// How many layers keep the request in this process.
    held: u32,
    /// The layers that have handed the request of this attempt down.
    passed: Few<&'static str, 4>,
    /// Whether a layer had a second request of this attempt: then the first may be anywhere.
    several: bool,
    /// Whether an attempt has begun and not ended.
    begun: bool,
    /// Whether an attempt ever began while another was under way, as below a hedge: what is known of
    /// one may be of the other.
    tangled: bool,
    given_up: bool,
    repeatable: Option<Repeatable>,
    idempotency_key: Option<HeaderValue>,
    /// The latest end of validity of all attempts.
    valid_until: Option<ValidUntil>,
}

// === impl CallContext ===

impl CallContext {
    /// Creates the context of a call that has just started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the context of a call with this deadline, which [`Deadline::of`] finds in it.
    #[must_use]
    pub fn with_deadline(deadline: Option<Deadline>) -> Self {
        Self(Arc::new(State {
            deadline,
            ..State::default()
        }))
    }

    /// Returns the deadline of the call, if it was created with one.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        self.0.deadline
    }

    /// Returns the context that the extensions of a request carry.
    #[must_use]
    #[inline]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        Carried::of(extensions)?.context.as_ref()
    }

    /// Puts the context into the extensions of a request, in the place of another if there is one.
    #[inline]
    pub fn put(&self, extensions: &mut Extensions) {
        // Mostly there is nothing, and then nothing is looked up.
        let carried = if extensions.is_empty() {
            None
        } else {
            extensions.get_mut::<Carried>()
        };
        match carried {
            Some(carried) => carried.context = Some(self.clone()),
            None => {
                extensions.insert(Carried {
                    context: Some(self.clone()),
                    stamp: None,
                });
            }
        }
    }

    /// Notes where the call stands.
    pub fn enter(&self, phase: Phase) {
        self.0.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Returns where the call stands.
    ///
    /// While the transport has the request, a witness of the attempt says how much of it was taken.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let noted = Phase::of(self.0.phase.load(Ordering::Relaxed));
        match noted {
            Phase::Connecting => {
                let course = self.course();
                course
                    .watched
                    .iter()
                    .last()
                    .map_or(noted, AttemptWitness::phase)
            }
            _ => noted,
        }
    }

    /// Notes that an attempt is about to be handed down.
    pub fn begin_attempt(&self) {
        self.begin(|_| {});
    }

    /// Notes that an attempt is about to be handed down, and whether its request may be repeated: both
    /// [`begin_attempt`](Self::begin_attempt) and [`note_repeatable`](Self::note_repeatable).
    pub fn begin_attempt_of(&self, repeatable: Repeatable) {
        self.begin(|course| course.note_repeatable(repeatable));
    }

    fn begin(&self, note: impl FnOnce(&mut Course)) {
        self.enter(Phase::Connecting);
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
        let mut course = self.course();
        course.tangled |= course.begun;
        course.next_attempt();
        course.begun = true;
        note(&mut course);
    }

    /// Returns how many attempts have been handed down.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts.load(Ordering::Relaxed)
    }

    /// Notes how an attempt ended. The furthest delivery of all attempts is kept.
    pub fn end_attempt(&self, outcome: Outcome, delivery: Delivery) {
        let mut course = self.course();
        let before = course.last.map(|(_, before)| before);
        course.next_attempt();
        course.begun = false;
        course.last = Some((
            outcome,
            before.map_or(delivery, |before| before.furthest(delivery)),
        ));
        course.ended = true;
    }

    /// Returns the outcome of the last attempt that ended, and the furthest delivery so far.
    #[must_use]
    pub fn last(&self) -> Option<(Outcome, Delivery)> {
        self.course().last
    }

    /// Keeps the request in this process, in that phase, until the guard is dropped: the promise of
    /// the layer of that name that nothing of this request is handed down before.
    ///
    /// For layers that wait: a call that is given up meanwhile is known not to have been sent. Such a
    /// layer holds *every* request that passes it, also those that need not wait; a second request of
    /// the same attempt (a hedge, a replay) is recognised by that, and proves nothing. Who only
    /// [enters](Self::enter) a phase promises nothing.
    pub fn hold(&self, layer: &'static str, phase: Phase) -> Hold {
        self.enter(phase);
        let mut course = self.course();
        course.ended = false;
        course.held = course.held.saturating_add(1);
        let again = course.passed.iter().any(|passed| *passed == layer);
        course.several |= again;
        drop(course);
        Hold {
            context: self.clone(),
            layer,
            is_held: true,
        }
    }

    /// Notes that the request is handed to the transport, and who knows how much of it is taken.
    ///
    /// If the call was given up meanwhile, the body is sealed at once.
    pub fn watch(&self, witness: &AttemptWitness) {
        self.enter(Phase::Connecting);
        let mut course = self.course();
        course.ended = false;
        if course.given_up {
            // The transport may still be handed the request, and shall not get all of it.
            let _ = witness.give_up();
        }
        course.watched.push(witness.clone());
    }

    /// Notes that a response head is here.
    pub fn answered(&self) {
        self.enter(Phase::ReadingBody);
        self.course().answered = true;
    }

    /// Gives the call up, and returns how far it got.
    ///
    /// To be asked *before* the call's future is dropped. A body that the transport has not taken to
    /// its end is sealed, so what is returned stays true. Where no layer below tells how far the
    /// request got, it may have been sent.
    #[must_use]
    pub fn give_up(&self) -> GivenUp {
        self.give_up_with(true)
    }

    /// Gives the attempt up that is under way, as [`give_up`](Self::give_up) does, and lets others
    /// follow: for a layer that has found the context of another above.
    #[must_use]
    pub fn give_up_attempt(&self) -> GivenUp {
        self.give_up_with(false)
    }

    fn give_up_with(&self, for_good: bool) -> GivenUp {
        let phase = self.phase();
        let mut course = self.course();
        course.given_up |= for_good;
        let before = course.last;
        let now = match before {
            // It has ended, and nothing is under way.
            Some((_, delivery)) if course.ended => delivery,
            _ => course.under_way(),
        };
        let delivery = before.map_or(now, |(_, before)| before.furthest(now));
        // Only between two attempts does the call end with what became of the last: an answer that
        // was there already has not reached the caller.
        let is_between = course.ended && !course.tangled && phase == Phase::BackingOff;
        GivenUp {
            phase,
            delivery: if course.tangled {
                delivery.furthest(Delivery::MaybeSent)
            } else {
                delivery
            },
            last: before
                .map(|(outcome, _)| outcome)
                .filter(|outcome| is_between && !outcome.is_success()),
        }
    }

    /// Notes whether the request may be repeated, on the word of a layer that classifies. Of several
    /// requests that a call is made of, one that must not be repeated decides.
    pub fn note_repeatable(&self, repeatable: Repeatable) {
        self.course().note_repeatable(repeatable);
    }

    /// Returns whether the request may be repeated, if a layer below has said so.
    #[must_use]
    pub fn repeatable(&self) -> Option<Repeatable> {
        self.course().repeatable
    }

    /// Notes the idempotency key that a layer has made for the call.
    pub fn note_idempotency_key(&self, key: HeaderValue) {
        self.course().idempotency_key = Some(key);
    }

    /// Returns the idempotency key that a layer has made for the call.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<HeaderValue> {
        self.course().idempotency_key.clone()
    }

    /// Notes until when a signature of this call is valid. The latest of all attempts is kept: only
    /// after it can none of them start any more.
    pub fn note_valid_until(&self, end: ValidUntil) {
        let mut course = self.course();
        course.valid_until = course.valid_until.max(Some(end));
    }

    /// Returns the instant after which no attempt of this call can start any more, as far as its
    /// signatures say.
    #[must_use]
    pub fn valid_until(&self) -> Option<ValidUntil> {
        self.course().valid_until
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.0.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Course ===

impl Course {
    fn note_repeatable(&mut self, repeatable: Repeatable) {
        if self.repeatable != Some(Repeatable::No) {
            self.repeatable = Some(repeatable);
        }
    }

    fn next_attempt(&mut self) {
        self.ended = false;
        self.watched.clear();
        self.answered = false;
        self.passed.clear();
        self.several = false;
    }

    /// Gives the attempt under way up, and returns how far it got.
    fn under_way(&self) -> Delivery {
        // A witness below is told of every request. Without one, only a single request that is held
        // is known to be here.
        let is_here = self.held > 0 && !self.several;
        let unwatched = if is_here || !self.watched.is_empty() {
            Delivery::NotSent
        } else {
            Delivery::MaybeSent
        };
        let answered = if self.answered {
            Delivery::Answered
        } else {
            Delivery::NotSent
        };
        self.watched
            .iter()
            .map(AttemptWitness::give_up)
            .fold(unwatched.furthest(answered), Delivery::furthest)
    }
}

// === impl Hold ===

impl Hold {
    /// Returns the context of the call.
    #[must_use]
    pub const fn context(&self) -> &CallContext {
        &self.context
    }

    /// Lets go of the request, which is handed down right after.
    ///
    /// # Errors
    ///
    /// If the call has been given up meanwhile: it was said then that nothing was sent, and so nothing
    /// must be. The error is a [`Failure`] that says so to whoever still listens.
    pub fn let_go(mut self) -> Result<(), BoxError> {
        if self.release() {
            return Ok(());
        }
        let why = format!("the call was given up while {} kept it", self.layer);
        Err(Failure::not_sent(Reason::LocalLimit, why).into())
    }

    fn release(&mut self) -> bool {
        self.context.enter(Phase::Connecting);
        // One lock for both, so that the call is given up before or after, and not in between.
        let mut course = self.context.course();
        if !self.is_held {
            return false;
        }
        self.is_held = false;
        course.held = course.held.saturating_sub(1);
        course.passed.push(self.layer);
        !course.given_up
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.is_held {
            let _ = self.release();
        }
    }
}

// === impl GivenUp ===

impl GivenUp {
    /// Returns what that amounts to: between two attempts what became of the last, else what is
    /// known of the one under way, with the reason why it was given up.
    #[must_use]
    pub fn outcome(self, reason: Reason, repeatable: Repeatable) -> Outcome {
        if let Some(last) = self.last {
            return last;
        }
        let answer = if self.delivery.proves_not_applied() {
            Answer::NotApplied {
                reason,
                after: None,
            }
        } else {
            Answer::Unclear {
                reason,
                after: None,
                transient: true,
            }
        };
        answer.outcome(repeatable, Attempt::FIRST)
    }
}

// === impl Phase ===

impl Phase {
    const fn of(number: u8) -> Self {
        match number {
            1 => Self::AwaitingToken,
            2 => Self::BackingOff,
            3 => Self::Connecting,
            4 => Self::Sending,
            5 => Self::AwaitingHead,
            6 => Self::ReadingBody,
            _ => Self::Queued,
        }
    }

    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::AwaitingToken => "awaiting_token",
            Self::BackingOff => "backing_off",
            Self::Connecting => "connecting",
            Self::Sending => "sending",
            Self::AwaitingHead => "awaiting_head",
            Self::ReadingBody => "reading_body",
        }
    }
}
