//! The layer and its configuration.

use std::{fmt, sync::Arc, time::Duration};

use http::request;
use tower_layer::Layer;
use tower_outcome_core::{ConfigError, HttpClassifier, Random, SplitMix64};

use crate::{
    Backoff, Budget, Hints, Retry,
    config::{BudgetSource, Config},
};

/// Sends a request again when its outcome says that this is safe and may help.
///
/// See the [crate docs](crate) for an example.
#[derive(Debug)]
pub struct RetryLayer<C = HttpClassifier> {
    config: Arc<Config<C>>,
}

/// Builds a [`RetryLayer`]; start with [`RetryLayer::builder`].
///
/// | setting | default | why |
/// |---|---|---|
/// | [`max_attempts`](Self::max_attempts) | 3 | what three attempts cannot do, more seldom can |
/// | [`backoff`](Self::backoff) | [`Backoff::new`] | |
/// | [`hints`](Self::hints) | [`Hints::new`] | |
/// | [`budget`](Self::budget) | [`Budget::new`], one for all clones | no retry without a budget |
/// | [`elapsed`](Self::elapsed) | none | a deadline over everything is the better bound |
/// | [`drain_limit`](Self::drain_limit) | 16 KiB | an error page; a longer one is not worth a connection |
#[must_use]
pub struct RetryLayerBuilder<C> {
    config: Config<C>,
    /// Whether somebody chose the classifier.
    chosen: bool,
}

// === impl RetryLayer ===

impl RetryLayer {
    /// Creates the layer with all defaults, for HTTP.
    #[must_use]
    pub fn new() -> Self {
        Self {
            config: Arc::new(RetryLayerBuilder::new(HttpClassifier::new()).config),
        }
    }

    /// Starts with the defaults, to change some.
    pub fn builder() -> RetryLayerBuilder<HttpClassifier> {
        RetryLayerBuilder::new(HttpClassifier::new())
    }
}

impl Default for RetryLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Clone for RetryLayer<C> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, C> Layer<S> for RetryLayer<C> {
    type Service = Retry<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(inner, Arc::clone(&self.config))
    }
}

// === impl RetryLayerBuilder ===

impl<C> RetryLayerBuilder<C> {
    fn new(classifier: C) -> Self {
        Self {
            config: Config {
                classifier,
                max_attempts: 3,
                backoff: Backoff::new(),
                hints: Hints::new(),
                elapsed: None,
                budget: BudgetSource::Shared(Budget::new()),
                resend_if: None,
                drain_limit: 16 * 1024,
                random: Arc::new(SplitMix64::unseeded()),
            },
            chosen: false,
        }
    }

    /// Sets the classifier that decides what became of each attempt.
    pub fn classifier<D>(self, classifier: D) -> RetryLayerBuilder<D> {
        RetryLayerBuilder {
            chosen: true,
            ..self.with_classifier(classifier)
        }
    }

    /// Takes over the classifier that all layers of a stack share.
    ///
    /// # Errors
    ///
    /// If one was [set](Self::classifier) for this layer alone.
    pub fn shared_classifier<D>(self, shared: D) -> Result<RetryLayerBuilder<D>, ConfigError> {
        if self.chosen {
            return Err(ConfigError::classifier_of_one_layer());
        }
        Ok(self.with_classifier(shared))
    }

    fn with_classifier<D>(self, classifier: D) -> RetryLayerBuilder<D> {
        let Config {
            classifier: _,
            max_attempts,
            backoff,
            hints,
            elapsed,
            budget,
            resend_if,
            drain_limit,
            random,
        } = self.config;
        RetryLayerBuilder {
            config: Config {
                classifier,
                max_attempts,
                backoff,
                hints,
                elapsed,
                budget,
                resend_if,
                drain_limit,
                random,
            },
            chosen: self.chosen,
        }
    }

    /// Sets how many times a request is sent in all, the first included: by default 3. 1 turns
    /// resends off; outcomes are decided and reported all the same.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.config.max_attempts = attempts;
        self
    }

    /// Sets how long to wait before an attempt, if the server does not say.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.config.backoff = backoff;
        self
    }

    /// Sets what to make of a wait that the server asked for.
    pub fn hints(mut self, hints: Hints) -> Self {
        self.config.hints = hints;
        self
    }

    /// Sets the time allowed from the start of the first attempt to the start of the last. A wait
    /// that would end later is not slept.
    pub fn elapsed(mut self, limit: Duration) -> Self {
        self.config.elapsed = Some(limit);
        self
    }

    /// Sets the budget that all calls through this layer draw on.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.config.budget = BudgetSource::Shared(budget);
        self
    }

    /// Chooses the budget by request, such as one per host or API key. The closure returns a handle
    /// that it keeps; a new budget for each request would limit nothing.
    pub fn budget_by(
        mut self,
        choose: impl Fn(&request::Parts) -> Budget + Send + Sync + 'static,
    ) -> Self {
        self.config.budget = BudgetSource::ByRequest(Box::new(choose));
        self
    }

    /// Sends only those requests again that the closure says `true` to; of others nothing is copied.
    /// The mark [`NoResend`](crate::NoResend) does the same for one request.
    ///
    /// It can only forbid: a request that is not repeatable is sent again on proof alone.
    pub fn resend_if(
        mut self,
        allow: impl Fn(&request::Parts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.config.resend_if = Some(Box::new(allow));
        self
    }

    /// Sets how much of a response that is about to be discarded is read during the backoff, in
    /// bytes, so that its connection can be used again: by default 16 KiB.
    pub fn drain_limit(mut self, bytes: usize) -> Self {
        self.config.drain_limit = bytes;
        self
    }

    /// Sets the source of jitter, which is seeded for tests: by default one that differs from
    /// process to process.
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.config.random = random;
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    ///
    /// If `max_attempts` is 0, if `backoff.cap` is below one of its bases, if `backoff.factor` is 0,
    /// if `hints.longest` is below `hints.throttled_floor`, or if `elapsed` is zero.
    pub fn build(self) -> Result<RetryLayer<C>, ConfigError> {
        let config = self.config;
        if config.max_attempts == 0 {
            return Err(ConfigError::new("max_attempts", 0, "at least 1"));
        }
        config.backoff.check()?;
        config.hints.check()?;
        if config.elapsed == Some(Duration::ZERO) {
            return Err(ConfigError::new(
                "elapsed",
                Duration::ZERO,
                "more than zero; max_attempts(1) turns resends off",
            ));
        }
        Ok(RetryLayer {
            config: Arc::new(config),
        })
    }
}

impl<C: fmt::Debug> fmt::Debug for RetryLayerBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
