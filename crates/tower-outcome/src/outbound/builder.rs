//! Building a stack.

use tower_outcome_core::{Classify, HttpClassifier, WitnessLayer};

use super::{
    Outbound, OutboundError, Steps,
    step::{
        AuthRefresh, ConnectionLimit, Custom, EachAttempt, EachRequest, ExpiryGuard, Facts,
        IdempotencyKey, Left, RateLimit, Reconcile, Replay, Retry, Seal, Shared, Sign, Step, Time,
        TimeStep, Witness,
    },
    steps::{Finish, Put},
};

/// Builds an [`Outbound`]; start with [`Outbound::builder`].
///
/// The methods may be called in any order, each once; see the [module docs](super) for what each takes.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct OutboundBuilder<S, C = HttpClassifier> {
    steps: S,
    shared: Shared<C>,
}

// === impl OutboundBuilder ===

impl OutboundBuilder<Steps<Left>> {
    pub(super) fn new() -> Self {
        Self {
            steps: Steps::none(),
            shared: Shared::of_default(HttpClassifier::new()),
        }
    }
}

impl<S, C> OutboundBuilder<S, C> {
    /// Sets the classifier of all steps: by default [`HttpClassifier::new`]. For gRPC set a
    /// [`GrpcClassifier`](crate::GrpcClassifier).
    ///
    /// A signer that has nonces or a clock offset signs again what this one says was refused for them.
    pub fn classifier<D: Classify + Clone>(self, classifier: D) -> OutboundBuilder<S, D> {
        OutboundBuilder {
            steps: self.steps,
            shared: Shared::chosen(classifier),
        }
    }

    /// Makes bodies replayable that are not `Clone`, such as streams: the client then takes any body.
    pub fn replay<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<Replay, T>,
        T: Step<Replay, C>,
    {
        self.put(step)
    }

    /// Bounds the time of a call and of each attempt.
    ///
    /// The bound of connecting is kept for [`hyper_client`](Outbound::hyper_client); a client of your own
    /// gets a [`ConnectTimeoutLayer`](crate::ConnectTimeoutLayer) around its connector.
    pub fn timeouts<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<Time, T>,
        T: TimeStep,
    {
        self.put(step)
    }

    /// Puts the same idempotency key on all attempts of a call.
    pub fn idempotency_key<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<IdempotencyKey, T>,
        T: Step<IdempotencyKey, C>,
    {
        self.put(step)
    }

    /// Decides after each attempt what became of it, and whether to send it again.
    pub fn retry<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<Retry, T>,
        T: Step<Retry, C>,
    {
        self.put(step)
    }

    /// Puts a layer of your own around each attempt, directly below Retry: for spans and counters of attempts.
    ///
    /// It sees requests without credential and signature, and must not send anything twice. A layer of this
    /// family that cannot stand here is refused on the first request.
    pub fn each_attempt<L>(self, layer: L) -> OutboundBuilder<S::With, C>
    where
        S: Put<EachAttempt, Custom<L>>,
    {
        self.put(Custom(layer))
    }

    /// Puts a layer of your own around each request on the wire, below all that waits and above Sign: for
    /// headers that belong to a request and are to be signed, such as that of a trace.
    ///
    /// It must not wait, nor send anything twice.
    pub fn each_request<L>(self, layer: L) -> OutboundBuilder<S::With, C>
    where
        S: Put<EachRequest, Custom<L>>,
    {
        self.put(Custom(layer))
    }

    /// Asks the server what became of an attempt whose outcome is unknown, through the steps below.
    ///
    /// A [`ByQuery`](crate::ByQuery) judges the answers to its questions by a classifier of its own, since a
    /// question need not speak the protocol of the request: where the API has rules, give it
    /// [the same](crate::ByQuery::classifier).
    pub fn reconcile<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<Reconcile, T>,
        T: Step<Reconcile, C>,
    {
        self.put(step)
    }

    /// Attaches a credential, and sends once more what was rejected for it.
    pub fn auth_refresh<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<AuthRefresh, T>,
        T: Step<AuthRefresh, C>,
    {
        self.put(step)
    }

    /// Lets requests through as fast as the server allows.
    pub fn rate_limit<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<RateLimit, T>,
        T: Step<RateLimit, C>,
    {
        self.put(step)
    }

    /// Keeps so many requests in flight, and no more.
    pub fn connection_limit<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<ConnectionLimit, T>,
        T: Step<ConnectionLimit, C>,
    {
        self.put(step)
    }

    /// Looks at the credential again when all waits are over. The credentials have to be
    /// [handed down](crate::auth_refresh::AuthRefreshLayerBuilder::hands_down).
    pub fn expiry_guard<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<ExpiryGuard, T>,
        T: Step<ExpiryGuard, C>,
    {
        self.put(step)
    }

    /// Signs each attempt when there is nothing left to wait for.
    pub fn sign<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<Sign, T>,
        T: Step<Sign, C>,
    {
        self.put(step)
    }

    /// Finds, in debug builds, who below has changed what was signed.
    pub fn seal<T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<Seal, T>,
        T: Step<Seal, C>,
    {
        self.put(step)
    }

    /// Sets the witness, for a server that [acts on parts](crate::WitnessLayer::acts_on_parts) of a request.
    pub fn witness(self, witness: WitnessLayer) -> OutboundBuilder<S::With, C>
    where
        S: Put<Witness, WitnessLayer>,
    {
        self.put(witness)
    }

    /// Leaves out the [`WitnessLayer`](crate::WitnessLayer): what the transport saw of an attempt proves
    /// nothing then, and fewer requests can be sent again.
    pub fn without_witness(self) -> OutboundBuilder<S::With, C>
    where
        S: Put<Witness, Left>,
    {
        self.put(Left)
    }

    fn put<K, T>(self, step: T) -> OutboundBuilder<S::With, C>
    where
        S: Put<K, T>,
    {
        OutboundBuilder {
            steps: self.steps.put(step),
            shared: self.shared,
        }
    }
}

impl<S, C> OutboundBuilder<S, C> {
    /// Builds all steps, and checks them together.
    ///
    /// # Errors
    ///
    /// All that is wrong, with the names of the steps.
    pub fn build(self) -> Result<Outbound<S::Layers>, OutboundError>
    where
        S: Finish<C>,
    {
        let mut facts = Facts::default();
        let layers = self.steps.finish(&self.shared, &mut facts)?;
        Ok(Outbound { layers, facts })
    }
}
