//! The layer and its configuration.

use std::{fmt, sync::Arc};

use tower_layer::Layer;
use tower_outcome_core::{ConfigError, HttpClassifier};

use crate::{AuthRefresh, Credentials};

/// Attaches a credential to requests; when the server rejects it, refreshes it once for everybody and
/// sends each request once more.
///
/// See the [crate docs](crate) for an example.
#[derive(Debug)]
pub struct AuthRefreshLayer<C = HttpClassifier> {
    config: Arc<Config<C>>,
}

/// Builds an [`AuthRefreshLayer`]; start with [`AuthRefreshLayer::builder`].
///
/// | setting | default | why |
/// |---|---|---|
/// | [`classifier`](Self::classifier) | [`HttpClassifier::new`] | a 401 is a rejection whatever the API |
/// | [`replays`](Self::replays) | `true` | a session that dies is nobody's fault |
/// | [`hands_down`](Self::hands_down) | `false` | it costs an allocation, and few need it |
/// | [`drain_limit`](Self::drain_limit) | 16 KiB | an error page; a longer one is not worth a connection |
#[must_use]
pub struct AuthRefreshLayerBuilder<C = HttpClassifier> {
    config: Config<C>,
    /// Whether somebody chose the classifier.
    chosen: bool,
}

/// What an AuthRefresh layer goes by, shared by all its services.
pub(crate) struct Config<C> {
    pub(crate) credentials: Credentials,
    pub(crate) classifier: C,
    pub(crate) replays: bool,
    pub(crate) hands_down: bool,
    pub(crate) drain_limit: usize,
}

// === impl AuthRefreshLayer ===

impl AuthRefreshLayer {
    /// Creates the layer with all defaults, for HTTP.
    #[must_use]
    pub fn new(credentials: Credentials) -> Self {
        Self::builder(credentials).build()
    }

    /// Starts with the defaults, to change some.
    pub fn builder(credentials: Credentials) -> AuthRefreshLayerBuilder {
        AuthRefreshLayerBuilder {
            config: Config {
                credentials,
                classifier: HttpClassifier::new(),
                replays: true,
                hands_down: false,
                drain_limit: 16 * 1024,
            },
            chosen: false,
        }
    }
}

impl<C> AuthRefreshLayer<C> {
    /// Returns the credentials that it attaches.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.config.credentials
    }

    /// Whether they are [handed down](AuthRefreshLayerBuilder::hands_down) with each request.
    #[must_use]
    pub fn hands_down(&self) -> bool {
        self.config.hands_down
    }
}

impl<C> Clone for AuthRefreshLayer<C> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, C> Layer<S> for AuthRefreshLayer<C> {
    type Service = AuthRefresh<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        AuthRefresh::new(inner, Arc::clone(&self.config))
    }
}

// === impl AuthRefreshLayerBuilder ===

impl<C> AuthRefreshLayerBuilder<C> {
    /// Sets the classifier, which tells the rejection of a credential from everything else: share the
    /// one of the other layers.
    ///
    /// Whatever it gives the reason [`AuthRejected`](tower_outcome_core::Reason::AuthRejected) is a
    /// rejection; with rules of its own that may be an error code in the body of a 200. It has to prove
    /// that the request was not acted on: an
    /// [`Unclear`](tower_outcome_core::Answer::Unclear) answer is handed to the caller.
    pub fn classifier<D>(self, classifier: D) -> AuthRefreshLayerBuilder<D> {
        AuthRefreshLayerBuilder {
            chosen: true,
            ..self.with_classifier(classifier)
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
    ) -> Result<AuthRefreshLayerBuilder<D>, ConfigError> {
        if self.chosen {
            return Err(ConfigError::classifier_of_one_layer());
        }
        Ok(self.with_classifier(shared))
    }

    fn with_classifier<D>(self, classifier: D) -> AuthRefreshLayerBuilder<D> {
        let Config {
            credentials,
            classifier: _,
            replays,
            hands_down,
            drain_limit,
        } = self.config;
        AuthRefreshLayerBuilder {
            config: Config {
                credentials,
                classifier,
                replays,
                hands_down,
                drain_limit,
            },
            chosen: self.chosen,
        }
    }

    /// Sets whether a request whose credential was rejected is sent once more. Without that nothing of
    /// it is copied; a rejection starts a refresh for those that follow, and is the caller's answer.
    pub fn replays(mut self, replays: bool) -> Self {
        self.config.replays = replays;
        self
    }

    /// Sets whether a [`Snapshot`](crate::Snapshot) of the credential is put into the extensions of
    /// each request, for a signer below that needs its secret.
    pub fn hands_down(mut self, hands_down: bool) -> Self {
        self.config.hands_down = hands_down;
        self
    }

    /// Sets how much of a rejection is read while its credential is refreshed, in bytes, so that its
    /// connection can be used again.
    pub fn drain_limit(mut self, bytes: usize) -> Self {
        self.config.drain_limit = bytes;
        self
    }

    /// Builds the layer. There is nothing that could not work: what can is checked when the
    /// [credentials are built](crate::CredentialsBuilder::build).
    #[must_use]
    pub fn build(self) -> AuthRefreshLayer<C> {
        AuthRefreshLayer {
            config: Arc::new(self.config),
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for AuthRefreshLayerBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

// === impl Config ===

impl<C: fmt::Debug> fmt::Debug for Config<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("credentials", &self.credentials)
            .field("classifier", &self.classifier)
            .field("replays", &self.replays)
            .field("hands_down", &self.hands_down)
            .field("drain_limit", &self.drain_limit)
            .finish()
    }
}
