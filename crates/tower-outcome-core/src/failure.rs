//! The one error that every layer raises or wraps.

use std::{error::Error, fmt, io};

use http::HeaderValue;

use crate::{CallReport, Delivery, Outcome, Reason, Witnessed};

/// A boxed error, as the services of this family return it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The one error that every layer raises or wraps: what became of the call, how far it got, and
/// the cause.
///
/// Layers are stacked in any number, so the failure is found by walking the chain of causes, and
/// the order of layers never changes a type:
///
/// ```
/// use tower_outcome_core::{BoxError, Delivery, Failure, Outcome, Reason};
///
/// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// let error: BoxError = Failure::new(
///     Outcome::Retryable { reason: Reason::Transport, after: None },
///     Delivery::NotSent,
///     refused,
/// )
/// .into();
///
/// let failure = Failure::of(&*error).unwrap();
/// assert_eq!(failure.delivery(), Delivery::NotSent);
/// assert!(failure.outcome().is_retryable());
/// assert!(failure.source_ref().unwrap().is::<std::io::Error>());
/// // One line for a log, with all causes.
/// assert!(format!("{error:#}").ends_with(": connection refused"));
/// ```
#[derive(Debug)]
pub struct Failure {
    outcome: Outcome,
    delivery: Delivery,
    proven_by: Option<Witnessed>,
    report: Option<CallReport>,
    idempotency_key: Option<HeaderValue>,
    source: Option<BoxError>,
}

// === impl Failure ===

impl Failure {
    /// Creates a failure from what became of the call, how far it got, and the cause.
    pub fn new(outcome: Outcome, delivery: Delivery, source: impl Into<BoxError>) -> Self {
        Self {
            outcome,
            delivery,
            proven_by: None,
            report: None,
            idempotency_key: None,
            source: Some(source.into()),
        }
    }

    /// Creates the failure of a layer that gave up before anything was sent: a full queue, a spent
    /// budget, an authorization server that is down.
    ///
    /// Nothing of it looks like an answer of the API. The outcome is retryable, because a request
    /// that was never sent cannot have been applied; [`with_outcome`](Self::with_outcome) changes
    /// it where trying again cannot help.
    pub fn not_sent(reason: Reason, source: impl Into<BoxError>) -> Self {
        Self::new(
            Outcome::Retryable {
                reason,
                after: None,
            },
            Delivery::NotSent,
            source,
        )
    }

    /// Creates the failure of a call that was answered, as its report has it; the answer is the cause.
    #[cfg(feature = "tonic")]
    pub(crate) fn of_report(report: CallReport) -> Self {
        Self {
            outcome: report.outcome(),
            delivery: report.delivery(),
            proven_by: None,
            report: Some(report),
            idempotency_key: None,
            source: None,
        }
    }

    /// Finds the outermost failure in an error's chain of causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        chain(error).find_map(<dyn Error>::downcast_ref)
    }

    /// Wraps an error, unless it already is a failure.
    #[must_use]
    pub fn wrap(
        error: BoxError,
        describe: impl FnOnce(&(dyn Error + 'static)) -> (Outcome, Delivery),
    ) -> Self {
        match error.downcast::<Self>() {
            Ok(failure) => *failure,
            Err(error) => {
                let (outcome, delivery) = describe(&*error);
                Self::new(outcome, delivery, error)
            }
        }
    }

    /// Returns what became of the call.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns how far the call got: the furthest of all its attempts.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Returns what proves that the request was not acted on, where a witness or the transport's
    /// error does.
    #[must_use]
    pub const fn proven_by(&self) -> Option<Witnessed> {
        self.proven_by
    }

    /// Returns the report of the layer that made the attempts, if one did.
    #[must_use]
    pub const fn report(&self) -> Option<&CallReport> {
        self.report.as_ref()
    }

    /// Returns the idempotency key under which the request was sent, where a layer made it: needed
    /// to send the same operation again later.
    #[must_use]
    pub const fn idempotency_key(&self) -> Option<&HeaderValue> {
        self.idempotency_key.as_ref()
    }

    /// Returns the cause.
    #[must_use]
    pub fn source_ref(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// Returns the cause, by value.
    #[must_use]
    pub fn into_source(self) -> Option<BoxError> {
        self.source
    }

    /// Changes what became of the call.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// Changes how far the call got.
    #[must_use]
    pub fn with_delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Adds what proves that the request was not acted on.
    #[must_use]
    pub fn with_proven_by(mut self, by: Option<Witnessed>) -> Self {
        self.proven_by = by;
        self
    }

    /// Adds a report.
    #[must_use]
    pub fn with_report(mut self, report: CallReport) -> Self {
        self.report = Some(report);
        self
    }

    /// Adds the idempotency key under which the request was sent.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: HeaderValue) -> Self {
        self.idempotency_key = Some(key);
        self
    }
}

/// Says what became of the call; in the alternate form, `{failure:#}`, also why: the chain of causes.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            outcome, delivery, ..
        } = self;
        write!(f, "outcome {outcome}: {}", delivery.sentence())?;
        if f.alternate() {
            for error in chain(self).skip(1) {
                write!(f, ": {error}")?;
            }
        }
        Ok(())
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Walks an error and its causes, outermost first.
///
/// The walk ends after 64 errors, so a chain that bites its own tail ends too.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| cause(error)).take(64)
}

/// The error below this one.
///
/// An I/O error made of another error names the cause of that one as its own, and so would hide it.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}
