//! The layers and builders that may be steps.

use tower_outcome_core::{ConfigError, ReplayLayer, WitnessLayer};

use super::{Facts, Replay, Shared, Step, Witness};

impl<C> Step<Replay, C> for ReplayLayer {
    type Layer = Self;

    fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<Self, ConfigError> {
        Ok(self)
    }
}

impl<C> Step<Witness, C> for WitnessLayer {
    type Layer = Self;

    fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<Self, ConfigError> {
        Ok(self)
    }
}

#[cfg(feature = "retry")]
mod retry {
    use tower_outcome_core::{Classify, ConfigError};
    use tower_outcome_retry::{IdempotencyKeyLayer, RetryLayer, RetryLayerBuilder};

    use super::super::{Facts, IdempotencyKey, Retry, Shared, Step};

    impl<C> Step<IdempotencyKey, C> for IdempotencyKeyLayer {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<Self, ConfigError> {
            Ok(self)
        }
    }

    impl<C, D> Step<Retry, C> for RetryLayer<D> {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<Self, ConfigError> {
            Ok(self)
        }
    }

    impl<C: Classify + Clone, D> Step<Retry, C> for RetryLayerBuilder<D> {
        type Layer = RetryLayer<C>;

        fn finish(self, shared: &Shared<C>, _: &mut Facts) -> Result<Self::Layer, ConfigError> {
            self.shared_classifier(shared.classifier().clone())?.build()
        }
    }
}

#[cfg(feature = "reconcile")]
mod reconcile {
    use tower_outcome_core::{Classify, ConfigError};
    use tower_outcome_reconcile::{ReconcileLayer, ReconcileLayerBuilder};

    use super::super::{Facts, Reconcile, Shared, Step};

    impl<R, C, D> Step<Reconcile, C> for ReconcileLayer<R, D> {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, facts: &mut Facts) -> Result<Self, ConfigError> {
            facts.ask_until(self.min_age());
            Ok(self)
        }
    }

    impl<R, C: Classify + Clone, D> Step<Reconcile, C> for ReconcileLayerBuilder<R, D> {
        type Layer = ReconcileLayer<R, C>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            let layer = self
                .shared_classifier(shared.classifier().clone())?
                .build()?;
            Step::<Reconcile, C>::finish(layer, shared, facts)
        }
    }
}

#[cfg(feature = "auth-refresh")]
mod auth_refresh {
    use tower_outcome_auth_refresh::{
        AuthRefreshLayer, AuthRefreshLayerBuilder, Credentials, CredentialsBuilder,
        ExpiryGuardLayer,
    };
    use tower_outcome_core::{Classify, ConfigError};

    use super::super::{AuthRefresh, ExpiryGuard, Facts, Shared, Step};

    impl<C, D> Step<AuthRefresh, C> for AuthRefreshLayer<D> {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, facts: &mut Facts) -> Result<Self, ConfigError> {
            let windows = self.credentials().windows();
            facts.refresh_before_end(windows.longest_mandatory());
            if self.hands_down() {
                facts.hand_down();
            }
            Ok(self)
        }
    }

    impl<C: Classify + Clone, D> Step<AuthRefresh, C> for AuthRefreshLayerBuilder<D> {
        type Layer = AuthRefreshLayer<C>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            let layer = self.shared_classifier(shared.classifier().clone())?.build();
            Step::<AuthRefresh, C>::finish(layer, shared, facts)
        }
    }

    impl<C: Classify + Clone> Step<AuthRefresh, C> for Credentials {
        type Layer = AuthRefreshLayer<C>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            AuthRefreshLayer::builder(self).finish(shared, facts)
        }
    }

    impl<C: Classify + Clone> Step<AuthRefresh, C> for CredentialsBuilder {
        type Layer = AuthRefreshLayer<C>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            self.build()?.finish(shared, facts)
        }
    }

    impl<C> Step<ExpiryGuard, C> for ExpiryGuardLayer {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, facts: &mut Facts) -> Result<Self, ConfigError> {
            facts.guard();
            Ok(self)
        }
    }
}

#[cfg(feature = "rate-limit")]
mod rate_limit {
    use tower_outcome_core::{Classify, ConfigError};
    use tower_outcome_rate_limit::{Budget, BudgetBuilder, RateLimitLayer, RateLimitLayerBuilder};

    use super::super::{Facts, RateLimit, Shared, Step};

    impl<C, D> Step<RateLimit, C> for RateLimitLayer<D> {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, facts: &mut Facts) -> Result<Self, ConfigError> {
            facts.wait(self.longest_wait());
            Ok(self)
        }
    }

    impl<C: Classify + Clone, D> Step<RateLimit, C> for RateLimitLayerBuilder<D> {
        type Layer = RateLimitLayer<C>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            let layer = self
                .shared_classifier(shared.classifier().clone())?
                .build()?;
            Step::<RateLimit, C>::finish(layer, shared, facts)
        }
    }

    impl<C: Classify + Clone> Step<RateLimit, C> for Budget {
        type Layer = RateLimitLayer<C>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            RateLimitLayer::builder(self).finish(shared, facts)
        }
    }

    impl<C: Classify + Clone> Step<RateLimit, C> for BudgetBuilder {
        type Layer = RateLimitLayer<C>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            self.build()?.finish(shared, facts)
        }
    }
}

#[cfg(feature = "sign")]
mod sign {
    use tower_outcome_core::{Classify, ConfigError};
    use tower_outcome_sign::{AsyncSign, SealLayer, SignLayer, SignLayerBuilder};

    use super::super::{Facts, Seal, Shared, Sign, Step};

    impl<C> Step<Seal, C> for SealLayer {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<Self, ConfigError> {
            Ok(self)
        }
    }

    impl<A, C, D> Step<Sign, C> for SignLayer<A, D> {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, _: &mut Facts) -> Result<Self, ConfigError> {
            Ok(self)
        }
    }

    impl<A: AsyncSign, C: Classify + Clone, D> Step<Sign, C> for SignLayerBuilder<A, D> {
        type Layer = SignLayer<A, C>;

        fn finish(self, shared: &Shared<C>, _: &mut Facts) -> Result<Self::Layer, ConfigError> {
            let classifier = shared.is_chosen().then(|| shared.classifier().clone());
            self.shared_classifier(classifier)?.build()
        }
    }
}

#[cfg(feature = "timeout")]
mod timeout {
    use std::time::Duration;

    use tower_layer::Identity;
    use tower_outcome_core::ConfigError;
    use tower_outcome_timeout::{
        ConnectionLimitBuilder, ConnectionLimitLayer, DeadlineLayer, TimeoutLayer, Timeouts,
        TimeoutsBuilder,
    };

    use super::super::{ConnectionLimit, Facts, Shared, Step, TimeStep};

    impl TimeStep for Timeouts {
        type Call = DeadlineLayer;
        type Attempt = TimeoutLayer;

        fn finish(self, facts: &mut Facts) -> Result<(DeadlineLayer, TimeoutLayer), ConfigError> {
            facts.bound_connect(self.connect());
            (DeadlineLayer::new(&self), TimeoutLayer::new(&self)).finish(facts)
        }
    }

    impl TimeStep for (Timeouts, DeadlineLayer) {
        type Call = DeadlineLayer;
        type Attempt = TimeoutLayer;

        fn finish(self, facts: &mut Facts) -> Result<(DeadlineLayer, TimeoutLayer), ConfigError> {
            facts.bound_connect(self.0.connect());
            (self.1, TimeoutLayer::new(&self.0)).finish(facts)
        }
    }

    impl TimeStep for TimeoutsBuilder {
        type Call = DeadlineLayer;
        type Attempt = TimeoutLayer;

        fn finish(self, facts: &mut Facts) -> Result<(DeadlineLayer, TimeoutLayer), ConfigError> {
            self.build()?.finish(facts)
        }
    }

    impl TimeStep for (DeadlineLayer, TimeoutLayer) {
        type Call = DeadlineLayer;
        type Attempt = TimeoutLayer;

        fn finish(self, facts: &mut Facts) -> Result<Self, ConfigError> {
            facts.bound_call(self.0.call());
            facts.bound_attempt(self.1.attempt());
            Ok(self)
        }
    }

    impl TimeStep for DeadlineLayer {
        type Call = Self;
        type Attempt = Identity;

        fn finish(self, facts: &mut Facts) -> Result<(Self, Identity), ConfigError> {
            facts.bound_call(self.call());
            Ok((self, Identity::new()))
        }
    }

    impl TimeStep for TimeoutLayer {
        type Call = Identity;
        type Attempt = Self;

        fn finish(self, facts: &mut Facts) -> Result<(Identity, Self), ConfigError> {
            facts.bound_attempt(self.attempt());
            Ok((Identity::new(), self))
        }
    }

    impl<C, K> Step<ConnectionLimit, C> for ConnectionLimitLayer<K> {
        type Layer = Self;

        fn finish(self, _: &Shared<C>, facts: &mut Facts) -> Result<Self, ConfigError> {
            facts.wait(self.acquire().unwrap_or(Duration::MAX));
            Ok(self)
        }
    }

    impl<C, K> Step<ConnectionLimit, C> for ConnectionLimitBuilder<K> {
        type Layer = ConnectionLimitLayer<K>;

        fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layer, ConfigError> {
            self.build()?.finish(shared, facts)
        }
    }
}
