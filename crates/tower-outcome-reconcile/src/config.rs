//! What a Reconcile layer goes by, shared by all its services.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderName, request};
use tower_outcome_core::{Clock, Priority};

use crate::{Keep, Observer, OperationId, Resolutions, Schedule};

/// What a Reconcile layer goes by.
pub(crate) struct Config<R, C> {
    pub(crate) reconciler: R,
    pub(crate) classifier: C,
    pub(crate) identify: Identify,
    pub(crate) schedule: Schedule,
    pub(crate) misses: u32,
    pub(crate) min_age: Duration,
    pub(crate) processing_limit: Duration,
    pub(crate) retention: Option<Duration>,
    pub(crate) keep: Keep,
    pub(crate) signed: bool,
    pub(crate) priority: Priority,
    pub(crate) resolutions: Option<Resolutions>,
    pub(crate) observer: Box<dyn Observer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) drain_limit: usize,
}

/// How the name of an operation is found.
pub(crate) enum Identify {
    ByHeader(HeaderName),
    By(Box<Find>),
}

pub(crate) type Find = dyn Fn(&request::Parts) -> Option<OperationId> + Send + Sync;

// === impl Config ===

impl<R, C> Config<R, C> {
    /// How long after the end of an attempt nothing is asked, at least.
    pub(crate) fn first_wait(&self) -> Duration {
        self.schedule.delay(0).min(self.min_age)
    }

    pub(crate) fn with_classifier<D>(self, classifier: D) -> Config<R, D> {
        Config {
            reconciler: self.reconciler,
            classifier,
            identify: self.identify,
            schedule: self.schedule,
            misses: self.misses,
            min_age: self.min_age,
            processing_limit: self.processing_limit,
            retention: self.retention,
            keep: self.keep,
            signed: self.signed,
            priority: self.priority,
            resolutions: self.resolutions,
            observer: self.observer,
            clock: self.clock,
            drain_limit: self.drain_limit,
        }
    }
}

impl<R, C: fmt::Debug> fmt::Debug for Config<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("classifier", &self.classifier)
            .field("identify", &self.identify)
            .field("schedule", &self.schedule)
            .field("misses", &self.misses)
            .field("min_age", &self.min_age)
            .field("processing_limit", &self.processing_limit)
            .field("retention", &self.retention)
            .field("keep", &self.keep)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

// === impl Identify ===

impl Identify {
    pub(crate) fn find(&self, head: &request::Parts) -> Option<OperationId> {
        self.look(head).filter(|id| !id.is_empty())
    }

    fn look(&self, head: &request::Parts) -> Option<OperationId> {
        match self {
            Self::By(find) => find(head),
            Self::ByHeader(name) => {
                // Mostly there are none, and then nothing is looked up.
                if !head.extensions.is_empty() {
                    if let Some(id) = OperationId::of(&head.extensions) {
                        return Some(id.clone());
                    }
                }
                let mut headers = head.headers.iter();
                let (_, value) = headers.find(|&(candidate, _)| candidate == name)?;
                Some(OperationId::from(value.clone()))
            }
        }
    }
}

impl fmt::Debug for Identify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByHeader(name) => name.fmt(f),
            Self::By(_) => f.write_str("by request"),
        }
    }
}
