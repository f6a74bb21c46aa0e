//! Configuring the table.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, StatusCode};

use super::{HttpClassifier, RepeatableMethods, status_set::StatusSet};
use crate::{
    Clock, ConfigError, HintDialects, RetryAfter, SystemClock,
    classify::rule::{BodyRule, HeadRule, Rules},
};

/// Bodies of errors are small; 64 KiB holds a page of HTML that a proxy put in its place.
const BODY_LIMIT: usize = 64 * 1024;

/// Builds an [`HttpClassifier`]; start with [`HttpClassifier::builder`].
#[derive(Debug, Default)]
#[must_use]
pub struct HttpClassifierBuilder {
    table: Table,
    error: Option<ConfigError>,
}

/// What the classifier goes by.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) transient: StatusSet,
    pub(super) refuses: StatusSet,
    pub(super) auth_rejected: StatusSet,
    pub(super) methods: RepeatableMethods,
    /// `None` where no key proves anything.
    pub(super) key_header: Option<HeaderName>,
    pub(super) should_retry_header: Option<HeaderName>,
    pub(super) head_rules: Rules<dyn HeadRule>,
    pub(super) body_rules: Rules<dyn BodyRule>,
    pub(super) body_limit: usize,
    dialects: HintDialects,
    clock: Arc<dyn Clock>,
}

// === impl HttpClassifierBuilder ===

impl HttpClassifierBuilder {
    /// Sets the statuses after which asking again may help: by default 408, 429, 500, 502, 503 and
    /// 504.
    ///
    /// They prove nothing about a request that is not repeatable.
    pub fn transient(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.table.transient = self.set("transient", statuses);
        self
    }

    /// Sets the statuses that this API promises to send before it acts: by default none.
    ///
    /// Then a request with such an answer may be sent again whatever its method. 425 always counts
    /// (RFC 8470, section 5.2).
    pub fn refuses_before_acting(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.table.refuses = self.set("refuses_before_acting", statuses);
        self
    }

    /// Sets the statuses by which the API rejects a credential: by default 401.
    pub fn auth_rejected(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.table.auth_rejected = self.set("auth_rejected", statuses);
        self
    }

    /// Sets which methods make a request repeatable: by default the idempotent ones.
    pub fn repeatable_methods(mut self, methods: RepeatableMethods) -> Self {
        self.table.methods = methods;
        self
    }

    /// Sets the header whose presence makes a request repeatable: by default `idempotency-key`.
    ///
    /// An empty value does not count.
    pub fn idempotency_key_header(mut self, name: HeaderName) -> Self {
        self.table.key_header = Some(name);
        self
    }

    /// Says that this API does not deduplicate: no header makes a request repeatable, whoever put it
    /// there.
    ///
    /// For whoever passes on the requests of others, who may set a key that the API ignores.
    pub fn without_idempotency_key(mut self) -> Self {
        self.table.key_header = None;
        self
    }

    /// Sets a header by which the API says whether asking again may help, as `true` or `false`
    /// (`stripe-should-retry`, `transient-error`): by default none.
    ///
    /// It speaks of usefulness and not of safety: a request that is not repeatable stays Unknown.
    pub fn should_retry_header(mut self, name: HeaderName) -> Self {
        self.table.should_retry_header = Some(name);
        self
    }

    /// Adds a rule that judges by the head alone. Rules are asked in the order in which they were
    /// added, before any body rule and the table.
    pub fn head_rule(mut self, rule: impl HeadRule + 'static) -> Self {
        self.table.head_rules.0.push(Box::new(rule));
        self
    }

    /// Adds a rule that needs the body. Rules are asked in the order in which they were added,
    /// before the table.
    pub fn body_rule(mut self, rule: impl BodyRule + 'static) -> Self {
        self.table.body_rules.0.push(Box::new(rule));
        self
    }

    /// Sets the largest body that is read for body rules, in bytes: by default 64 KiB.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.table.body_limit = bytes;
        self
    }

    /// Sets which of the unstandardised reset headers are believed beside `Retry-After` and
    /// `RateLimit`: by default none.
    pub fn hint_dialects(mut self, dialects: HintDialects) -> Self {
        self.table.dialects = dialects;
        self
    }

    /// Sets the clock against which dates are measured when a response has no `Date`: by default
    /// the operating system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.table.clock = clock;
        self
    }

    /// Builds the classifier.
    ///
    /// # Errors
    ///
    /// If a set of statuses is empty or has a member below 400 or above 655, or if there are body
    /// rules and `body_limit` is 0.
    pub fn build(self) -> Result<HttpClassifier, ConfigError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.table.body_limit == 0 && !self.table.body_rules.0.is_empty() {
            return Err(ConfigError::new(
                "body_limit",
                0,
                "at least 1 byte, because a body rule has to read something",
            ));
        }
        Ok(HttpClassifier(Arc::new(self.table)))
    }

    /// The first error is kept for `build`, so that the calls chain.
    fn set(
        &mut self,
        field: &'static str,
        statuses: impl IntoIterator<Item = StatusCode>,
    ) -> StatusSet {
        let mut set = StatusSet::default();
        for status in statuses {
            if let Err(status) = set.insert(status) {
                self.error.get_or_insert_with(|| {
                    ConfigError::new(field, status.as_u16(), "statuses from 400 to 655")
                });
            }
        }
        if set.is_empty() {
            self.error
                .get_or_insert_with(|| ConfigError::new(field, set, "at least one status"));
        }
        set
    }
}

// === impl Table ===

impl Default for Table {
    fn default() -> Self {
        Self {
            transient: StatusSet::from_iter([
                StatusCode::REQUEST_TIMEOUT,
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::INTERNAL_SERVER_ERROR,
                StatusCode::BAD_GATEWAY,
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::GATEWAY_TIMEOUT,
            ]),
            refuses: StatusSet::default(),
            auth_rejected: StatusSet::from_iter([StatusCode::UNAUTHORIZED]),
            methods: RepeatableMethods::default(),
            key_header: Some(HeaderName::from_static("idempotency-key")),
            should_retry_header: None,
            head_rules: Rules::default(),
            body_rules: Rules::default(),
            body_limit: BODY_LIMIT,
            dialects: HintDialects::default(),
            clock: Arc::new(SystemClock::new()),
        }
    }
}

impl Table {
    /// How long the server asked to be left alone.
    pub(super) fn hint(&self, headers: &HeaderMap) -> Option<RetryAfter> {
        self.dialects.parse(headers, self.clock.now())
    }
}
