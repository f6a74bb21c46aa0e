//! The layer and its configuration.

use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;
use tower_outcome_core::{
    Clock, ConfigError, HttpClassifier, Origin, Random, SplitMix64, SystemClock,
};

use crate::{
    AsyncSign, ClockOffset, Needs, Nonces, SignService, origin::Origins, secret::Redacted,
};

/// Signs each request last, after everything above has waited.
///
/// See the [crate docs](crate) for an example.
pub struct SignLayer<A, C = HttpClassifier> {
    config: Arc<Config<A, C>>,
}

/// Builds a [`SignLayer`]; start with [`SignLayer::builder`].
///
/// | setting | default | why |
/// |---|---|---|
/// | [`origin`](Self::origin) | none, and one is needed | a signature is not for everybody |
/// | [`body_limit`](Self::body_limit) | 1 MiB | an order is a few hundred bytes, a batch a few dozen KiB |
/// | [`margin`](Self::margin) | 500 ms | a request is on its way for a while |
/// | [`nonces`](Self::nonces) | none | |
/// | [`clock_offset`](Self::clock_offset) | none | |
/// | [`classifier`](Self::classifier) | none: no answer is looked at | |
/// | [`skew_evidence`](Self::skew_evidence) | zero | the error of the measurement counts in any case |
/// | [`publishes_validity`](Self::publishes_validity) | `false` | a `CallContext` is told in any case, and costs less |
/// | [`clock`](Self::clock) | the system's | |
/// | [`random`](Self::random) | seeded by the system | |
#[must_use]
pub struct SignLayerBuilder<A, C = HttpClassifier> {
    signer: A,
    origins: Vec<String>,
    any_origin: bool,
    body_limit: usize,
    margin: Duration,
    nonces: Option<Nonces>,
    offset: Option<ClockOffset>,
    classifier: Option<C>,
    skew_evidence: Duration,
    publishes: bool,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

pub(crate) struct Config<A, C> {
    pub(crate) signer: A,
    pub(crate) origins: Origins,
    /// Whether bodies are read before signing.
    pub(crate) collects: bool,
    /// Whether there may be something to wait for once the body is there.
    pub(crate) waits: bool,
    /// Whether anything is read in or put into an answer.
    pub(crate) listens: bool,
    pub(crate) needs: Needs,
    pub(crate) body_limit: usize,
    pub(crate) margin: Duration,
    pub(crate) nonces: Option<Nonces>,
    pub(crate) offset: Option<ClockOffset>,
    pub(crate) classifier: Option<C>,
    pub(crate) skew_evidence: Duration,
    pub(crate) publishes: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

// === impl SignLayer ===

impl<A: AsyncSign> SignLayer<A> {
    /// Creates the layer for a signer and the one origin to which it signs, such as
    /// `https://venue.example`, with the defaults of the [builder](SignLayerBuilder).
    ///
    /// # Errors
    ///
    /// If the origin is none, or the signer needs a nonce.
    pub fn new(signer: A, origin: &str) -> Result<Self, ConfigError> {
        Self::builder(signer).origin(origin).build()
    }

    /// Starts with a signer.
    pub fn builder(signer: A) -> SignLayerBuilder<A> {
        SignLayerBuilder {
            signer,
            origins: Vec::new(),
            any_origin: false,
            body_limit: 1024 * 1024,
            margin: Duration::from_millis(500),
            nonces: None,
            offset: None,
            classifier: None,
            skew_evidence: Duration::ZERO,
            publishes: false,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SplitMix64::unseeded()),
        }
    }
}

impl<A, C> Clone for SignLayer<A, C> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, A, C> Layer<S> for SignLayer<A, C> {
    type Service = SignService<S, A, C>;

    fn layer(&self, inner: S) -> Self::Service {
        SignService::new(inner, Arc::clone(&self.config))
    }
}

/// Prints nothing of the signer.
impl<A, C> fmt::Debug for SignLayer<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignLayer")
            .field("config", &self.config)
            .finish()
    }
}

// === impl SignLayerBuilder ===

impl<A, C> SignLayerBuilder<A, C> {
    /// Adds an origin for which requests are signed: `https://venue.example`, or a host with or
    /// without a port for both schemes. A request for any other is refused.
    ///
    /// This is what keeps a signed request from following a redirect elsewhere: the redirected request is
    /// a request like any other. Do not follow redirects of requests that act, though; see the
    /// [crate docs](crate#redirects-and-rewriting).
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Signs for whatever origin a request names. Then a redirect can take a valid signature, and
    /// with it the right to act, to a stranger: see to it that nothing above follows redirects.
    pub const fn any_origin(mut self) -> Self {
        self.any_origin = true;
        self
    }

    /// Sets how much of a body is read to be signed, in bytes. A larger body is refused.
    pub const fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Sets how much longer a signature must be valid when its request is handed down; at most half of
    /// the time for which it was made valid, so that a window that is shorter is no mistake.
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// Sets the nonces of the key.
    pub fn nonces(mut self, nonces: Nonces) -> Self {
        self.nonces = Some(nonces);
        self
    }

    /// Has the server's clock learned from the `Date` of its answers, and signs with it.
    pub fn clock_offset(mut self, offset: ClockOffset) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Sets the classifier that tells answers which refuse the time
    /// ([`ClockSkew`](tower_outcome_core::Reason::ClockSkew)) or the nonce
    /// ([`InvalidNonce`](tower_outcome_core::Reason::InvalidNonce)) of a request, by a rule of its
    /// own: no status says that in general.
    ///
    /// Such a request is signed and sent once more, whatever its method, because the refusal proves
    /// that nothing was done. For a time, the `Date` of the answer has to prove that it was wrong,
    /// which needs [`clock_offset`](Self::clock_offset); for a nonce, [`nonces`](Self::nonces). Bodies are
    /// then read, and heads copied, even where the signer does not ask for them, and a body over
    /// [`body_limit`](Self::body_limit) is refused: a request that cannot be sent twice would be lost
    /// halfway. Give uploads a layer without a classifier.
    ///
    /// A rule for an API that answers 400 with a code in its body:
    ///
    /// ```
    /// use tower_outcome_core::{Answer, HttpClassifier, Judged, Reason};
    ///
    /// let classifier = HttpClassifier::builder()
    ///     .body_rule(|seen: Judged<'_>| {
    ///         if seen.head.status != http::StatusCode::BAD_REQUEST {
    ///             return None;
    ///         }
    ///         let reason = match seen.body {
    ///             br#"{"error":"timestamp"}"# => Reason::ClockSkew,
    ///             br#"{"error":"nonce"}"# => Reason::InvalidNonce,
    ///             _ => return None,
    ///         };
    ///         Some(Answer::Rejected { reason })
    ///     })
    ///     .build()?;
    /// # let _ = classifier;
    /// # Ok::<(), tower_outcome_core::ConfigError>(())
    /// ```
    pub fn classifier<D>(self, classifier: D) -> SignLayerBuilder<A, D> {
        self.with_classifier(Some(classifier))
    }

    /// Takes over the classifier that all layers of a stack share, if there is one and it is of use:
    /// with [nonces](Self::nonces) or a [clock offset](Self::clock_offset), by which to sign better the
    /// second time.
    ///
    /// # Errors
    ///
    /// If one was [set](Self::classifier) for this layer alone.
    pub fn shared_classifier<D>(
        self,
        shared: Option<D>,
    ) -> Result<SignLayerBuilder<A, D>, ConfigError> {
        if self.classifier.is_some() {
            return Err(ConfigError::classifier_of_one_layer());
        }
        let useful = self.nonces.is_some() || self.offset.is_some();
        Ok(self.with_classifier(shared.filter(|_| useful)))
    }

    fn with_classifier<D>(self, classifier: Option<D>) -> SignLayerBuilder<A, D> {
        let Self {
            signer,
            origins,
            any_origin,
            body_limit,
            margin,
            nonces,
            offset,
            classifier: _,
            skew_evidence,
            publishes,
            clock,
            random,
        } = self;
        SignLayerBuilder {
            signer,
            origins,
            any_origin,
            body_limit,
            margin,
            nonces,
            offset,
            classifier,
            skew_evidence,
            publishes,
            clock,
            random,
        }
    }

    /// Sets how far the time of a refused request must have been from the server's, at least, for the
    /// request to be sent again. Use it where the rule of the classifier is wider than clocks: AWS
    /// refuses wrong times and wrong credentials with the same code, and a difference of less than
    /// four minutes explains neither.
    pub const fn skew_evidence(mut self, skew: Duration) -> Self {
        self.skew_evidence = skew;
        self
    }

    /// Sets whether the end of validity ([`ValidUntil`](tower_outcome_core::ValidUntil)) is put into
    /// the extensions of each request for those below, and of its response for those above.
    pub const fn publishes_validity(mut self, publishes: bool) -> Self {
        self.publishes = publishes;
        self
    }

    /// Sets the wall clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of random bits for tokens.
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.random = random;
        self
    }
}

impl<A: AsyncSign, C> SignLayerBuilder<A, C> {
    /// Builds the layer.
    ///
    /// # Errors
    ///
    /// If there is no origin, or one that is none; if the signer needs a nonce and there are none, or has only a
    /// public key; if there is a classifier and neither nonces nor a clock offset, with which nothing can be
    /// sent once more.
    pub fn build(self) -> Result<SignLayer<A, C>, ConfigError> {
        let needs = self.signer.needs_async();
        if needs.verifies() {
            let expected = "a key that signs";
            return Err(ConfigError::new("key", Redacted("public"), expected));
        }
        if needs.nonce() && self.nonces.is_none() {
            let expected = "nonces, which this signer needs";
            return Err(ConfigError::new("nonces", Redacted("none"), expected));
        }
        if self.classifier.is_some() && self.nonces.is_none() && self.offset.is_none() {
            let expected = "nonces or a clock_offset, by which to sign better the second time";
            return Err(ConfigError::new("classifier", Redacted("some"), expected));
        }
        let origins = self.origins.iter().map(|origin| Origin::parse(origin));
        let origins = origins.collect::<Result<Box<[_]>, _>>()?;
        let origins = match (self.any_origin, origins.is_empty()) {
            (true, true) => Origins::Any,
            (false, false) => Origins::These(origins),
            (true, false) => {
                return Err(ConfigError::new("any_origin", true, "no origin besides"));
            }
            (false, true) => {
                let expected = "one to sign for, or any_origin()";
                return Err(ConfigError::new("origin", Redacted("none"), expected));
            }
        };
        Ok(SignLayer {
            config: Arc::new(Config {
                origins,
                collects: needs.body() || self.classifier.is_some(),
                waits: self.offset.is_some() || self.nonces.is_some(),
                listens: self.offset.is_some() || self.classifier.is_some() || self.publishes,
                needs,
                signer: self.signer,
                body_limit: self.body_limit,
                margin: self.margin,
                nonces: self.nonces,
                offset: self.offset,
                classifier: self.classifier,
                skew_evidence: self.skew_evidence,
                publishes: self.publishes,
                clock: self.clock,
                random: self.random,
            }),
        })
    }
}

/// Prints nothing of the signer.
impl<A, C> fmt::Debug for SignLayerBuilder<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origins: Vec<_> = self
            .origins
            .iter()
            .map(|origin| Origin::shown(origin))
            .collect();
        f.debug_struct("SignLayerBuilder")
            .field("origins", &origins)
            .field("body_limit", &self.body_limit)
            .field("margin", &self.margin)
            .finish_non_exhaustive()
    }
}

// === impl Config ===

impl<A, C> fmt::Debug for Config<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("origins", &self.origins)
            .field("body_limit", &self.body_limit)
            .field("margin", &self.margin)
            .field("nonces", &self.nonces)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
