//! The layer and its configuration.

use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;
use tower_outcome_core::{Clock, ConfigError, HttpClassifier, SystemClock};

use crate::{Budget, RateLimit, Scope, scope::Bound};

/// Lets requests through as a budget allows, in the order of their classes.
///
/// See the [crate docs](crate) for an example.
#[derive(Debug)]
pub struct RateLimitLayer<C = HttpClassifier> {
    config: Arc<Config<C>>,
}

/// Builds a [`RateLimitLayer`]; start with [`RateLimitLayer::builder`].
///
/// | setting | default | why |
/// |---|---|---|
/// | [`within`](Self::within) | none | |
/// | [`classifier`](Self::classifier) | [`HttpClassifier::new`] | 429 and 418 are refusals whatever the API |
/// | [`closes_gate`](Self::closes_gate) | `true` | who is told to wait and goes on gets banned |
/// | [`clock`](Self::clock) | the system's | |
#[must_use]
pub struct RateLimitLayerBuilder<C = HttpClassifier> {
    scopes: Vec<Scope>,
    classifier: C,
    closes_gate: bool,
    clock: Arc<dyn Clock>,
    /// Whether somebody chose the classifier.
    chosen: bool,
}

pub(crate) struct Config<C> {
    /// The narrowest first. There is one at least.
    pub(crate) scopes: Box<[Bound]>,
    pub(crate) classifier: C,
    pub(crate) closes_gate: bool,
    /// Whether anything is learned from responses that are no refusals.
    pub(crate) learns: bool,
    /// For resets that are given as points in time.
    pub(crate) clock: Arc<dyn Clock>,
}

// === impl RateLimitLayer ===

impl RateLimitLayer {
    /// Creates the layer for a budget of which every request costs one unit of each limit, in the
    /// class of the [`Priority`](tower_outcome_core::Priority) in its extensions.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        let bound = Bound::from(budget);
        Self {
            config: Arc::new(Config {
                learns: false,
                scopes: Box::new([bound]),
                classifier: HttpClassifier::new(),
                closes_gate: true,
                clock: Arc::new(SystemClock::new()),
            }),
        }
    }

    /// Starts with a budget, or with the [`Scope`] of one.
    pub fn builder(scope: impl Into<Scope>) -> RateLimitLayerBuilder {
        RateLimitLayerBuilder {
            scopes: vec![scope.into()],
            classifier: HttpClassifier::new(),
            closes_gate: true,
            clock: Arc::new(SystemClock::new()),
            chosen: false,
        }
    }
}

impl<C> RateLimitLayer<C> {
    /// Returns the longest time for which a request may wait here: what its budgets allow together, each
    /// in the class that waits longest.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        let waits = self.config.scopes.iter().map(Bound::longest_wait);
        waits.fold(Duration::ZERO, Duration::saturating_add)
    }
}

impl<C> Clone for RateLimitLayer<C> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, C> Layer<S> for RateLimitLayer<C> {
    type Service = RateLimit<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit::new(inner, Arc::clone(&self.config))
    }
}

// === impl RateLimitLayerBuilder ===

impl<C> RateLimitLayerBuilder<C> {
    /// Adds a wider scope: a request waits for those that were added before, and while it holds what
    /// they granted for this one. Should it never be sent, it gives everything back.
    ///
    /// So what waits for a wide budget spends a narrow one meanwhile, sweeps included. What protects
    /// orders from that is the share that lower classes [leave](crate::Class::leave_percent) them in
    /// *each* of the budgets.
    ///
    /// Go from narrow to wide (symbol, account, address), the same way everywhere: what is held
    /// while waiting is then what fewest others want. Two layers that go opposite ways wait for each
    /// other until one of them gives up.
    pub fn within(mut self, wider: impl Into<Scope>) -> Self {
        self.scopes.push(wider.into());
        self
    }

    /// Sets the classifier, which tells refusals for having sent too much from everything else:
    /// share the one of the other layers.
    ///
    /// Whatever it gives the reason [`RateLimited`](tower_outcome_core::Reason::RateLimited) closes
    /// the gate; with rules of its own that may be a 200 with an error in its body.
    pub fn classifier<D>(self, classifier: D) -> RateLimitLayerBuilder<D> {
        RateLimitLayerBuilder {
            chosen: true,
            ..self.with_classifier(classifier)
        }
    }

    /// Takes over the classifier that all layers of a stack share.
    ///
    /// # Errors
    ///
    /// If one was [set](Self::classifier) for this layer alone.
    pub fn shared_classifier<D>(self, shared: D) -> Result<RateLimitLayerBuilder<D>, ConfigError> {
        if self.chosen {
            return Err(ConfigError::classifier_of_one_layer());
        }
        Ok(self.with_classifier(shared))
    }

    fn with_classifier<D>(self, classifier: D) -> RateLimitLayerBuilder<D> {
        let Self {
            scopes,
            classifier: _,
            closes_gate,
            clock,
            chosen,
        } = self;
        RateLimitLayerBuilder {
            scopes,
            classifier,
            closes_gate,
            clock,
            chosen,
        }
    }

    /// Sets whether a refusal closes the gate of the budget for everybody. Without it the response
    /// concerns only its own caller, and the others go on.
    pub const fn closes_gate(mut self, closes: bool) -> Self {
        self.closes_gate = closes;
        self
    }

    /// Sets the wall clock against which points in time are measured, such as an
    /// `X-RateLimit-Reset`, where a response has no `Date` of its own.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    ///
    /// If a scope names a limit that its budget does not have; if a ticket that is
    /// [known beforehand](crate::Tickets::known) can never fit; or if two scopes are the same budget,
    /// of which a request would hold a part while it waits for the rest.
    pub fn build(self) -> Result<RateLimitLayer<C>, ConfigError> {
        let Self {
            scopes,
            classifier,
            closes_gate,
            clock,
            chosen: _,
        } = self;
        let scopes = scopes.into_iter().map(Scope::bind);
        let scopes = scopes.collect::<Result<Box<[Bound]>, _>>()?;
        for (place, scope) in scopes.iter().enumerate() {
            if scopes[..place]
                .iter()
                .any(|narrower| narrower.is_same(scope))
            {
                return Err(ConfigError::new("scope", scope, "each budget once"));
            }
        }
        let learns = scopes.iter().any(|scope| !scope.usage.is_empty());
        Ok(RateLimitLayer {
            config: Arc::new(Config {
                scopes,
                classifier,
                closes_gate,
                learns,
                clock,
            }),
        })
    }
}

impl<C: fmt::Debug> fmt::Debug for RateLimitLayerBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayerBuilder")
            .field("scopes", &self.scopes)
            .field("classifier", &self.classifier)
            .field("closes_gate", &self.closes_gate)
            .finish_non_exhaustive()
    }
}

// === impl Config ===

impl<C: fmt::Debug> fmt::Debug for Config<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("scopes", &self.scopes)
            .field("classifier", &self.classifier)
            .field("closes_gate", &self.closes_gate)
            .finish_non_exhaustive()
    }
}
