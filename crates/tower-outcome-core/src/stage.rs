//! Where each layer of a stack stands, and whether that can work.

use std::{
    error::Error,
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use http::Extensions;

use crate::{
    BoxError, Delivery, Failure, Outcome, Reason,
    carried::{Carried, Stamp},
};

/// A layer's place in a stack, in the order that works: the first is the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Makes a streaming body replayable.
    Replay,
    /// One instant for the whole call.
    Deadline,
    /// One idempotency key for all attempts of a call.
    IdempotencyKey,
    /// Decides after each attempt.
    Retry,
    /// Asks the server what became of a call.
    Reconcile,
    /// Attaches the credential, and replays once after a rejection.
    AuthRefresh,
    /// One permit for each request on the wire.
    RateLimit,
    /// So many requests in flight.
    ConnectionLimit,
    /// The last change to the request.
    Sign,
    /// Bounds one attempt.
    Timeout,
    /// Watches how far one attempt gets.
    Witness,
}

/// Says that two layers stand the wrong way round, or twice, in a stack that cannot work.
///
/// It is the cause of a [`Failure`]: permanent, with [`Reason::WrongOrder`], and nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongOrder {
    above: Stage,
    below: Stage,
    why: &'static str,
}

/// The mark that a layer leaves on each request that passes it, by which layers below see what
/// stands above them.
///
/// A stack in the wrong order compiles, since the types of the layers fit in any. So it is refused
/// when the first request goes down, before anything of it is sent:
///
/// ```
/// use http::Extensions;
/// use tower_outcome_core::{Failure, Stage, StageStamp, WrongOrder};
///
/// let (sign, retry) = (StageStamp::new(Stage::Sign), StageStamp::new(Stage::Retry));
/// let mut request = Extensions::new();
/// let _ = sign.pass(&mut request).unwrap();
/// let refused = retry.pass(&mut request).unwrap_err();
///
/// let order = WrongOrder::of(&*refused).unwrap();
/// assert_eq!((order.above(), order.below()), (Stage::Sign, Stage::Retry));
/// assert!(Failure::of(&*refused).unwrap().delivery().proves_not_applied());
/// ```
///
/// # Cost
///
/// Requests are marked until [`ANSWERS`](Self::ANSWERS) of them were answered: an order does not change.
/// After that a request costs one load, and one look at its extensions where it has any. What is refused,
/// dropped or fails does not count, so that a stack in a wrong order is refused for good. Only a branch
/// below that is first taken after that many answers by another one goes unseen.
///
/// Each service has a stamp of its own, so that a layer may be put into several stacks. Clones share the
/// count.
#[derive(Clone, Debug)]
pub struct StageStamp {
    stage: Stage,
    left: Arc<AtomicU32>,
}

/// What a layer keeps of the mark it left, until there is an [answer](Self::answered).
#[derive(Debug, Default)]
#[must_use = "marks are left as long as no answers are counted"]
pub struct Stamped(Option<Arc<AtomicU32>>);

// === impl Stage ===

impl Stage {
    const RIGHT_ORDER: &'static str = "ReplayLayer > DeadlineLayer > IdempotencyKeyLayer > RetryLayer > \
         ReconcileLayer > AuthRefreshLayer > RateLimitLayer > ConnectionLimitLayer > SignLayer > \
         TimeoutLayer > WitnessLayer";

    /// Returns the name of the layer.
    #[must_use]
    pub const fn layer(self) -> &'static str {
        match self {
            Self::Replay => "ReplayLayer",
            Self::Deadline => "DeadlineLayer",
            Self::IdempotencyKey => "IdempotencyKeyLayer",
            Self::Retry => "RetryLayer",
            Self::Reconcile => "ReconcileLayer",
            Self::AuthRefresh => "AuthRefreshLayer",
            Self::RateLimit => "RateLimitLayer",
            Self::ConnectionLimit => "ConnectionLimitLayer",
            Self::Sign => "SignLayer",
            Self::Timeout => "TimeoutLayer",
            Self::Witness => "WitnessLayer",
        }
    }

    /// Checks that a layer of this stage may stand below all whose marks the request carries, for a
    /// layer that nobody has to be warned of.
    ///
    /// # Errors
    ///
    /// If it may not: a [`Failure`] with [`WrongOrder`] as its cause.
    #[inline]
    pub fn check(self, extensions: &Extensions) -> Result<(), BoxError> {
        match Carried::of(extensions) {
            Some(Carried {
                stamp: Some(stamp), ..
            }) => self.check_below(stamp),
            _ => Ok(()),
        }
    }

    /// Takes all marks off a request, for a service that makes a request of its own out of one that it
    /// was given, such as one that fails over between two whole stacks.
    pub fn forget_all(extensions: &mut Extensions) {
        if let Some(carried) = extensions.get_mut::<Carried>() {
            carried.stamp = None;
        }
    }

    #[cold]
    fn check_below(self, lowest: &Arc<Stamp>) -> Result<(), BoxError> {
        let mut next = Some(lowest);
        while let Some(stamp) = next {
            if let Some(why) = stamp.stage.cannot_stand_above(self) {
                let order = WrongOrder {
                    above: stamp.stage,
                    below: self,
                    why,
                };
                let outcome = Outcome::Permanent {
                    reason: Reason::WrongOrder,
                };
                return Err(Failure::new(outcome, Delivery::NotSent, order).into());
            }
            next = stamp.above.as_ref();
        }
        Ok(())
    }

    /// Why a layer of this stage cannot do its work above one of the other, if so.
    ///
    /// What merely is less useful in another order is left alone.
    const fn cannot_stand_above(self, below: Self) -> Option<&'static str> {
        use Stage::{
            AuthRefresh, ConnectionLimit, IdempotencyKey, RateLimit, Reconcile, Retry, Sign,
            Timeout, Witness,
        };
        Some(match (self, below) {
            (Retry, IdempotencyKey) => {
                "each attempt would get a key of its own, and the server would apply each"
            }
            (Retry, Retry) => "three times three attempts would be nine",
            (AuthRefresh, IdempotencyKey) => {
                "the replay would get a key of its own, and the server would apply both"
            }
            (Reconcile, IdempotencyKey) => "it would not know the key by which to ask",
            (Reconcile, Reconcile) => {
                "what the lower one could not find out would be asked once more"
            }
            (AuthRefresh, Reconcile) => "the inquiries would go without the credential",
            (RateLimit, Reconcile) => {
                "the inquiries would not wait their turn, and the request would keep its own meanwhile"
            }
            (Sign, Reconcile) => "the inquiries would go unsigned",
            (Timeout, Reconcile) => "the bound of one attempt would strike the inquiries after it",
            (Witness, Reconcile) => "it would say of an inquiry how far the attempt got",
            (RateLimit, Retry | AuthRefresh) => {
                "what is sent again would not wait its turn, nor be paid for"
            }
            (Sign, Retry) => {
                "every attempt would carry the time, the nonce and the signature of the first"
            }
            (Sign, AuthRefresh) => {
                "the credential would be attached to a request that is signed already, and the replay \
                 would carry the signature of the first"
            }
            (Sign, IdempotencyKey) => "the key would be added to a request that is signed already",
            (Sign, RateLimit | ConnectionLimit) => "the signature would age in the queue",
            (Timeout, Retry | AuthRefresh) => {
                "the bound of one attempt would strike several, and say of all how far the last one got"
            }
            (Witness, Retry | AuthRefresh | Sign) => {
                "it would say of a whole call how far its last attempt got"
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.layer())
    }
}

// === impl StageStamp ===

impl StageStamp {
    /// How many requests have to be answered before no more are marked.
    ///
    /// One would do if each answer came all the way up; some layers answer themselves.
    pub const ANSWERS: u32 = 256;

    /// Creates the mark of a service.
    #[must_use]
    pub fn new(stage: Stage) -> Self {
        Self {
            stage,
            left: Arc::new(AtomicU32::new(Self::ANSWERS)),
        }
    }

    /// Checks that the layer may stand below all whose marks the request carries, and leaves its own.
    ///
    /// To be called before the request is handed down or copied.
    ///
    /// # Errors
    ///
    /// If it may not stand there: a [`Failure`] with [`WrongOrder`] as its cause.
    #[inline]
    pub fn pass(&self, extensions: &mut Extensions) -> Result<Stamped, BoxError> {
        self.stage.check(extensions)?;
        Ok(self.leave(extensions))
    }

    /// Leaves the mark of a layer that may stand below all others.
    #[inline]
    pub fn leave(&self, extensions: &mut Extensions) -> Stamped {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Stamped(None);
        }
        // By value, so that a request that is not marked need not be in memory for it.
        *extensions = self.mark(mem::take(extensions));
        Stamped(Some(Arc::clone(&self.left)))
    }

    #[cold]
    fn mark(&self, mut extensions: Extensions) -> Extensions {
        let carried = extensions.get_or_insert_default::<Carried>();
        carried.stamp = Some(Arc::new(Stamp {
            stage: self.stage,
            above: carried.stamp.take(),
        }));
        extensions
    }
}

// === impl Stamped ===

impl Stamped {
    /// Counts an answer, once.
    #[inline]
    pub fn answered(&mut self) {
        if let Some(left) = self.0.take() {
            // Two at once may both take the same one.
            let count = left.load(Ordering::Relaxed);
            left.store(count.saturating_sub(1), Ordering::Relaxed);
        }
    }
}

// === impl WrongOrder ===

impl WrongOrder {
    /// Finds it in an error's chain of causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(order) = error.downcast_ref() {
                return Some(order);
            }
            next = error.source();
        }
        None
    }

    /// Returns the layer that stands above.
    #[must_use]
    pub const fn above(&self) -> Stage {
        self.above
    }

    /// Returns the layer that stands below.
    #[must_use]
    pub const fn below(&self) -> Stage {
        self.below
    }
}

impl fmt::Display for WrongOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { above, below, why } = self;
        let order = Stage::RIGHT_ORDER;
        write!(
            f,
            "{above} stands above {below}, and {why}; the order that works is {order}"
        )
    }
}

impl Error for WrongOrder {}
