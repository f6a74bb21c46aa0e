//! The layer and its configuration.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderName, request};
use tower_layer::Layer;
use tower_outcome_core::{Clock, ConfigError, HttpClassifier, Priority, SystemClock};

use crate::{
    Observer, OperationId, Reconcile, Resolutions, Schedule,
    config::{Config, Identify},
    observer::Nobody,
};

/// Asks the server what became of a request whose outcome is unknown.
///
/// See the [crate docs](crate) for an example.
pub struct ReconcileLayer<R, C = HttpClassifier> {
    config: Arc<Config<R, C>>,
}

/// Builds a [`ReconcileLayer`]; start with [`ReconcileLayer::builder`].
///
/// | setting | default | why |
/// |---|---|---|
/// | [`classifier`](Self::classifier) | [`HttpClassifier::new`] | |
/// | [`id_header`](Self::id_header) | `idempotency-key` | an [`OperationId`] in the extensions goes first |
/// | [`identify`](Self::identify) | by those two | what has no name cannot be asked about |
/// | [`schedule`](Self::schedule) | [`Schedule::new`] | |
/// | [`misses`](Self::misses) | 3 | one "not found" may come from a copy that lags |
/// | [`min_age`](Self::min_age) | 10 s | how long Binance works on a request before it gives up, the longest that a venue states |
/// | [`processing_limit`](Self::processing_limit) | 10 s | the same, after the end of a signature |
/// | [`retention`](Self::retention) | none | servers forget keys after a day, which no call outlives |
/// | [`keep`](Self::keep) | [`Keep::Head`] | most questions are made of the request |
/// | [`signed`](Self::signed) | `true` | a signature is what lets a lost request start late |
/// | [`priority`](Self::priority) | 64, between highest and normal | what may be in the market comes after what must leave it, and before the rest |
/// | [`resolutions`](Self::resolutions) | none | |
/// | [`observer`](Self::observer) | none | |
/// | [`drain_limit`](Self::drain_limit) | 16 KiB | an error page; a longer one is not worth a connection |
#[must_use]
pub struct ReconcileLayerBuilder<R, C = HttpClassifier> {
    config: Config<R, C>,
    /// Whether somebody chose the classifier.
    chosen: bool,
}

/// What is kept of a request that may end unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Keep {
    /// Its head, in one piece of memory, from which it is made again only if the server is asked.
    #[default]
    Head,
    /// Its id and nothing else: for a reconciler that needs no more.
    Id,
}

// === impl ReconcileLayer ===

impl<R> ReconcileLayer<R> {
    /// Creates the layer with all defaults, for HTTP.
    #[must_use]
    pub fn new(reconciler: R) -> Self {
        Self {
            config: Arc::new(Self::builder(reconciler).config),
        }
    }

    /// Starts with the defaults, to change some.
    pub fn builder(reconciler: R) -> ReconcileLayerBuilder<R> {
        ReconcileLayerBuilder {
            config: Config {
                reconciler,
                classifier: HttpClassifier::new(),
                identify: Identify::ByHeader(HeaderName::from_static("idempotency-key")),
                schedule: Schedule::new(),
                misses: 3,
                min_age: Duration::from_secs(10),
                processing_limit: Duration::from_secs(10),
                retention: None,
                keep: Keep::Head,
                signed: true,
                priority: Priority::new(64),
                resolutions: None,
                observer: Box::new(Nobody),
                clock: Arc::new(SystemClock::new()),
                drain_limit: 16 * 1024,
            },
            chosen: false,
        }
    }
}

impl<R, C> ReconcileLayer<R, C> {
    /// Returns how long after the end of an attempt "not found" proves nothing.
    #[must_use]
    pub fn min_age(&self) -> Duration {
        self.config.min_age
    }
}

impl<R, C> Clone for ReconcileLayer<R, C> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, R, C> Layer<S> for ReconcileLayer<R, C> {
    type Service = Reconcile<S, R, C>;

    fn layer(&self, inner: S) -> Self::Service {
        Reconcile::new(inner, Arc::clone(&self.config))
    }
}

impl<R, C: fmt::Debug> fmt::Debug for ReconcileLayer<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileLayer")
            .field("config", &self.config)
            .finish()
    }
}

// === impl ReconcileLayerBuilder ===

impl<R, C> ReconcileLayerBuilder<R, C> {
    /// Sets the classifier that decides what became of each attempt: the one of the Retry above, so that
    /// the two agree.
    pub fn classifier<D>(self, classifier: D) -> ReconcileLayerBuilder<R, D> {
        ReconcileLayerBuilder {
            config: self.config.with_classifier(classifier),
            chosen: true,
        }
    }

    /// Takes over the classifier that all layers of a stack share.
    ///
    /// # Errors
    ///
    /// If one was [set](Self::classifier) for this layer alone.
    pub fn shared_classifier<D>(
        self,
        shared: D,
    ) -> Result<ReconcileLayerBuilder<R, D>, ConfigError> {
        if self.chosen {
            return Err(ConfigError::classifier_of_one_layer());
        }
        Ok(ReconcileLayerBuilder {
            config: self.config.with_classifier(shared),
            chosen: false,
        })
    }

    /// Sets the header that names an operation, by which the server is asked about it.
    pub fn id_header(mut self, name: HeaderName) -> Self {
        self.config.identify = Identify::ByHeader(name);
        self
    }

    /// Finds the name of an operation in a request. Those for which the closure returns `None` are not
    /// asked about, and cost nothing.
    pub fn identify(
        mut self,
        find: impl Fn(&request::Parts) -> Option<OperationId> + Send + Sync + 'static,
    ) -> Self {
        self.config.identify = Identify::By(Box::new(find));
        self
    }

    /// Sets when the server is asked, and how long. A wait that the server has asked for, with the answer that
    /// leaves it open or when it was asked before, is kept: nothing is asked where it ends after the
    /// schedule's deadline.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.config.schedule = schedule;
        self
    }

    /// Sets how many times in a row the server must not know an operation before it counts as not
    /// applied.
    pub fn misses(mut self, times: u32) -> Self {
        self.config.misses = times;
        self
    }

    /// Sets how long after the end of an attempt "not found" proves nothing: the longest time that the
    /// request may be on its way and that the server may work on it.
    pub fn min_age(mut self, age: Duration) -> Self {
        self.config.min_age = age;
        self
    }

    /// Sets how long the server may work on a request that it has begun at the last moment at which its
    /// signature was valid. "Not found" proves nothing before the end of both.
    pub fn processing_limit(mut self, limit: Duration) -> Self {
        self.config.processing_limit = limit;
        self
    }

    /// Sets how long the server remembers operations. "Not found" proves nothing that long after the
    /// attempt was sent; and nothing at all where an earlier attempt of the same call may have been applied,
    /// since nobody here knows when that was sent.
    pub fn retention(mut self, span: Duration) -> Self {
        self.config.retention = Some(span);
        self
    }

    /// Sets what is kept of a request that may end unknown.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.config.keep = keep;
        self
    }

    /// Sets whether a layer below may sign requests with an end of validity. It leaves word of that in the
    /// [`CallContext`](tower_outcome_core::CallContext), and a call that has none is given one: four
    /// allocations for a request that may end unknown and that no Deadline stands above. `false` spares
    /// them where nothing is signed.
    pub fn signed(mut self, signed: bool) -> Self {
        self.config.signed = signed;
        self
    }

    /// Sets the priority of inquiries that go through the stack below.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.config.priority = priority;
        self
    }

    /// Has calls listen to what somebody else knows of them. A call that may have to ask costs an
    /// allocation or two more then.
    pub fn resolutions(mut self, resolutions: Resolutions) -> Self {
        self.config.resolutions = Some(resolutions);
        self
    }

    /// Has somebody watch.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.config.observer = Box::new(observer);
        self
    }

    /// Sets the wall clock, which tells a reconciler when the request was sent: by default the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.config.clock = clock;
        self
    }

    /// Sets how much is read of an answer that leaves it open, in bytes, so that its connection can be used
    /// again: by default 16 KiB. It is read until the first question, and dropped if it is longer, or has
    /// not ended by then, so that what it holds (a connection, a slot of a limit) is free for the question.
    /// If it stays unknown, the caller gets what was read, and after that an error.
    pub fn drain_limit(mut self, bytes: usize) -> Self {
        self.config.drain_limit = bytes;
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    ///
    /// If `misses` is 0; if a span of the schedule or its factor is zero; if `schedule.cap` or
    /// `schedule.deadline` is below `schedule.first`; if `min_age` is `schedule.deadline` or more, because
    /// nothing could be found absent; or if `retention` is `min_age` or less, for the same reason.
    pub fn build(self) -> Result<ReconcileLayer<R, C>, ConfigError> {
        let config = self.config;
        if config.misses == 0 {
            return Err(ConfigError::new("misses", 0, "at least 1"));
        }
        config.schedule.check()?;
        if config.min_age >= config.schedule.deadline {
            let expected = "below schedule.deadline";
            return Err(ConfigError::new("min_age", config.min_age, expected));
        }
        if let Some(retention) = config.retention {
            if retention <= config.min_age {
                let expected = "above min_age";
                return Err(ConfigError::new("retention", retention, expected));
            }
        }
        Ok(ReconcileLayer {
            config: Arc::new(config),
        })
    }
}

impl<R, C: fmt::Debug> fmt::Debug for ReconcileLayerBuilder<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
