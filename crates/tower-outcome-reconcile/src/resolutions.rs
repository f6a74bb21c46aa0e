//! What somebody else knows of calls that are under way.

use std::{
    collections::HashMap,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
};

use tower_outcome_core::Settling;

use crate::{OperationId, Resolution};

/// Tells calls under way what has become of them, such as from a stream of the server's events.
///
/// A layer that is [built with](crate::ReconcileLayerBuilder::resolutions) it registers each call that
/// may have to ask, from before it is sent to when its outcome is known. So a resolution ends an attempt that
/// is still under way, and asking, at once, and cancels a resend that is scheduled above. A result that may
/// be repeated stays registered only while a layer above waits to do so.
/// One for a call that is not under way is nobody's: nothing is kept for later, and memory is bounded by
/// the calls.
///
/// Clones share the calls.
///
/// ```
/// use tower_outcome_reconcile::{OperationId, Resolution, Resolutions};
///
/// let resolutions = Resolutions::new();
/// // In the task that reads the user stream; the layer has a clone.
/// let was_awaited = resolutions.resolve(&OperationId::from_static("order-17"), Resolution::applied());
/// assert!(!was_awaited);
/// ```
#[derive(Clone, Default)]
pub struct Resolutions(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    by_id: HashMap<OperationId, Entry>,
    /// Numbers calls of the same operation.
    next: u64,
}

/// The calls of one operation: one, unless it is hedged or sent again.
#[derive(Default)]
struct Entry {
    waiting: Vec<Waiting>,
    /// What is known for good: that it was applied, or rejected.
    resolution: Option<Resolution>,
}

struct Waiting {
    number: u64,
    waker: Option<Waker>,
    /// Whether its attempt has ended. Before that it may not have been sent yet.
    has_ended: bool,
    /// Whether it was told since then that what was sent was not applied.
    is_denied: bool,
}

/// The registration of one call, which ends when it is dropped.
pub(crate) struct Registration {
    resolutions: Resolutions,
    id: OperationId,
    number: u64,
}

/// Watches for what a call that is about to be sent again is told meanwhile.
///
/// It registers the call when it is first asked. So the name of a result that no Retry looks at, and that
/// its caller keeps, is nobody's any more.
pub(crate) struct Watched {
    resolutions: Resolutions,
    id: OperationId,
    registration: OnceLock<Registration>,
}

// === impl Resolutions ===

impl Resolutions {
    /// Creates one that knows of no call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells all calls of that operation what became of it, and returns whether there are any.
    ///
    /// The first word stands. It answers the calls that are under way, whose outcome is unknown or that are
    /// about to be sent again; one that the server has answered by then keeps its answer. An attempt that is
    /// under way is dropped: what of it was sent was sent, and the rest is not.
    ///
    /// [`NotApplied`](Resolution::NotApplied) is about what was sent so far, and counts only for the calls whose
    /// attempt has ended by then: one that is under way may still wait in a queue of this process, so the
    /// word cannot be about it. A word that is repeated, or that comes so late that it was meant for an
    /// earlier attempt, cannot be told from one that is meant for the last: a stream that may do so should
    /// leave it to the questions, and tell only what is known for good.
    pub fn resolve(&self, id: &OperationId, resolution: Resolution) -> bool {
        let mut calls = self.lock();
        let Some(entry) = calls.by_id.get_mut(id) else {
            return false;
        };
        let is_denied = matches!(resolution, Resolution::NotApplied);
        if !is_denied {
            entry.resolution.get_or_insert(resolution);
        }
        let wakers: Vec<_> = entry
            .waiting
            .iter_mut()
            .filter_map(|waiting| {
                waiting.is_denied |= is_denied && waiting.has_ended;
                waiting.waker.take()
            })
            .collect();
        drop(calls);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    /// Returns how many operations are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.lock().by_id.len()
    }

    pub(crate) fn register(&self, id: &OperationId) -> Registration {
        let mut calls = self.lock();
        let number = calls.next;
        calls.next = calls.next.wrapping_add(1);
        let entry = calls.by_id.entry(id.clone()).or_default();
        entry.waiting.push(Waiting {
            number,
            waker: None,
            has_ended: false,
            is_denied: false,
        });
        drop(calls);
        Registration {
            resolutions: self.clone(),
            id: id.clone(),
            number,
        }
    }

    // Held for a look, never across an await.
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Resolutions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolutions")
            .field("under_way", &self.under_way())
            .finish()
    }
}

// === impl Registration ===

impl Registration {
    /// Takes the word, if there is one.
    pub(crate) fn take(&self) -> Option<Resolution> {
        self.look(|known, waiting| waiting.word(known))
    }

    /// Notes that the attempt has ended: from now on a denial may be about it.
    pub(crate) fn end_attempt(&self) {
        self.look(|_, waiting| {
            waiting.has_ended = true;
            Some(())
        });
    }

    /// Ends it, and returns what goes on with it as soon as somebody waits.
    pub(crate) fn into_watched(self) -> Watched {
        Watched {
            resolutions: self.resolutions.clone(),
            id: self.id.clone(),
            registration: OnceLock::new(),
        }
    }

    /// Waits for the word, and takes it.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Resolution> {
        let word = self.look(|known, waiting| {
            let word = waiting.word(known);
            if word.is_none() {
                waiting.wake_later(cx);
            }
            word
        });
        word.map_or(Poll::Pending, Poll::Ready)
    }

    fn look<T>(
        &self,
        look: impl FnOnce(&Option<Resolution>, &mut Waiting) -> Option<T>,
    ) -> Option<T> {
        let mut calls = self.resolutions.lock();
        let Entry {
            waiting,
            resolution,
        } = calls.by_id.get_mut(&self.id)?;
        let mut waiting = waiting.iter_mut();
        let waiting = waiting.find(|waiting| waiting.number == self.number)?;
        look(resolution, waiting)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut calls = self.resolutions.lock();
        if let Some(entry) = calls.by_id.get_mut(&self.id) {
            entry
                .waiting
                .retain(|waiting| waiting.number != self.number);
            if entry.waiting.is_empty() {
                calls.by_id.remove(&self.id);
            }
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.id).finish()
    }
}

// === impl Watched ===

/// Only what is known for good settles anything. What was not applied is sent again when its time comes.
impl Settling for Watched {
    fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let registration = self
            .registration
            .get_or_init(|| self.resolutions.register(&self.id));
        let settled = registration.look(|entry, waiting| {
            if entry.is_none() {
                waiting.wake_later(cx);
            }
            entry.as_ref().map(|_| ())
        });
        settled.map_or(Poll::Pending, Poll::Ready)
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.id).finish()
    }
}

// === impl Waiting ===

impl Waiting {
    /// What this call is told. That it was not applied is told once.
    fn word(&mut self, known: &Option<Resolution>) -> Option<Resolution> {
        let denied = mem::take(&mut self.is_denied).then_some(Resolution::NotApplied);
        known.clone().or(denied)
    }

    fn wake_later(&mut self, cx: &mut Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }
}
