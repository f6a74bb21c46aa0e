//! What may be a step of a stack.
//!
//! Nothing of this has to be named: the methods of [`OutboundBuilder`](super::OutboundBuilder) take
//! whatever is listed at [`Step`].

use tower_layer::Identity;
use tower_outcome_core::ConfigError;

use super::optional::OptionalLayer;

mod facts;
mod layers;

pub use self::facts::Facts;

/// What may be the step of kind `K` in a stack whose classifier is a `C`.
///
/// | kind | implemented by |
/// |---|---|
/// | [`Replay`] | [`ReplayLayer`](crate::ReplayLayer) |
/// | [`IdempotencyKey`] | [`IdempotencyKeyLayer`](crate::IdempotencyKeyLayer) |
/// | [`Retry`] | [`RetryLayer`](crate::RetryLayer) and its builder |
/// | [`Reconcile`] | [`ReconcileLayer`](crate::ReconcileLayer) and its builder |
/// | [`AuthRefresh`] | [`AuthRefreshLayer`](crate::AuthRefreshLayer) and its builder, [`Credentials`](crate::Credentials) and their builder |
/// | [`RateLimit`] | [`RateLimitLayer`](crate::RateLimitLayer) and its builder, [`RateBudget`](crate::RateBudget) and its builder |
/// | [`ConnectionLimit`] | [`ConnectionLimitLayer`](crate::ConnectionLimitLayer) and its builder |
/// | [`ExpiryGuard`] | [`ExpiryGuardLayer`](crate::auth_refresh::ExpiryGuardLayer) |
/// | [`Sign`] | `SignLayer` and its builder |
/// | [`Seal`] | `SealLayer` |
/// | all | a `Result` of one; [`Left`], for none |
/// | those that leave the request body alone ([`Skippable`]) | an `Option` of one |
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the step `{K}` of a stack",
    note = "give it the layer or the builder of that step"
)]
pub trait Step<K, C> {
    /// The layer.
    type Layer;

    /// Builds the layer, with the classifier of the stack, and notes what others have to know of it.
    ///
    /// # Errors
    ///
    /// What is wrong with the step alone.
    fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError>;
}

/// What may be the step of a stack that bounds its time: a layer around the call, and one around each
/// attempt.
///
/// | implemented by | bounds |
/// |---|---|
/// | [`Timeouts`](crate::Timeouts) and their builder | both |
/// | ([`Timeouts`](crate::Timeouts), [`DeadlineLayer`](crate::DeadlineLayer)) | both, for instance with [`on_abandoned`](crate::timeout::DeadlineLayerBuilder::on_abandoned) |
/// | ([`DeadlineLayer`](crate::DeadlineLayer), [`TimeoutLayer`](crate::TimeoutLayer)) | both, and connecting not at all |
/// | [`DeadlineLayer`](crate::DeadlineLayer) | the call |
/// | [`TimeoutLayer`](crate::TimeoutLayer) | each attempt |
/// | a `Result` of one; [`Left`], for none | |
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot bound the time of a stack",
    note = "give it `Timeouts::builder()`, or the layers"
)]
pub trait TimeStep {
    /// The layer around the call.
    type Call;
    /// The layer around each attempt.
    type Attempt;

    /// Builds the layers, and notes what others have to know of them.
    ///
    /// # Errors
    ///
    /// What is wrong with the bounds.
    fn finish(self, facts: &mut Facts) -> Result<(Self::Call, Self::Attempt), ConfigError>;
}

/// The kinds of steps that leave the type of the request body alone, so that they may be there or not.
pub trait Skippable {}

/// No step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left;

/// A layer of the caller's, as a step.
#[derive(Clone, Copy, Debug)]
pub struct Custom<L>(pub(super) L);

/// The classifier of a stack.
#[derive(Clone, Copy, Debug)]
pub struct Shared<C> {
    classifier: C,
    chosen: bool,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $(: $skippable:ident)?),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[expect(clippy::exhaustive_enums, reason = "a name for a type, without values")]
        pub enum $kind {}

        $(impl $skippable for $kind {})?
    )+};
}

kinds! {
    /// Makes a streaming body replayable.
    Replay,
    /// Bounds the call and each attempt; see [`TimeStep`].
    Time,
    /// One idempotency key for all attempts of a call.
    IdempotencyKey: Skippable,
    /// Decides after each attempt.
    Retry: Skippable,
    /// A layer of the caller's around each attempt.
    EachAttempt,
    /// Asks the server what became of a call.
    Reconcile: Skippable,
    /// Attaches the credential, and replays once after a rejection.
    AuthRefresh: Skippable,
    /// One permit for each request on the wire.
    RateLimit: Skippable,
    /// So many requests in flight.
    ConnectionLimit: Skippable,
    /// Looks at a credential again after the waits.
    ExpiryGuard: Skippable,
    /// A layer of the caller's around each request on the wire.
    EachRequest,
    /// The last change to the request.
    Sign,
    /// Watches how far one attempt gets.
    Witness,
    /// Finds, in debug builds, who has changed what was signed.
    Seal,
}

// === impl Left ===

impl<K, C> Step<K, C> for Left {
    type Layer = Identity;

    fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<Identity, ConfigError> {
        Ok(Identity::new())
    }
}

impl TimeStep for Left {
    type Call = Identity;
    type Attempt = Identity;

    fn finish(self, _: &mut Facts) -> Result<(Identity, Identity), ConfigError> {
        Ok((Identity::new(), Identity::new()))
    }
}

// === impl Custom ===

impl<L, C> Step<EachAttempt, C> for Custom<L> {
    type Layer = L;

    fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<L, ConfigError> {
        Ok(self.0)
    }
}

impl<L, C> Step<EachRequest, C> for Custom<L> {
    type Layer = L;

    fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<L, ConfigError> {
        Ok(self.0)
    }
}

// === impl Step for wrappers ===

impl<K: Skippable, C, T: Step<K, C>> Step<K, C> for Option<T> {
    type Layer = OptionalLayer<T::Layer>;

    fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
        let layer = self.map(|step| step.finish(shared, facts)).transpose()?;
        Ok(OptionalLayer::new(layer))
    }
}

impl<K, C, T: Step<K, C>> Step<K, C> for Result<T, ConfigError> {
    type Layer = T::Layer;

    fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
        self?.finish(shared, facts)
    }
}

impl<T: TimeStep> TimeStep for Result<T, ConfigError> {
    type Call = T::Call;
    type Attempt = T::Attempt;

    fn finish(self, facts: &mut Facts) -> Result<(T::Call, T::Attempt), ConfigError> {
        self?.finish(facts)
    }
}

// === impl Shared ===

impl<C> Shared<C> {
    /// Returns the classifier.
    pub const fn classifier(&self) -> &C {
        &self.classifier
    }

    /// Whether it is one that somebody chose, and not the default.
    pub const fn is_chosen(&self) -> bool {
        self.chosen
    }

    pub(super) const fn of_default(classifier: C) -> Self {
        Self {
            classifier,
            chosen: false,
        }
    }

    pub(super) const fn chosen(classifier: C) -> Self {
        Self {
            classifier,
            chosen: true,
        }
    }
}
