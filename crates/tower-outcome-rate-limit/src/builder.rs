//! How a budget is made.

use std::{fmt, sync::Arc, time::Duration};

use tower_outcome_core::ConfigError;

use crate::{
    Budget, Class, Guard, Limit, Observer,
    budget::{MAX_CLASSES, MAX_LIMITS},
    limit::Kind,
    rule::{Margin, Rule},
    shared::{Counted, Shared, Watch},
};

/// Builds a [`Budget`]; start with [`Budget::builder`].
///
/// | setting | default | why |
/// |---|---|---|
/// | [`limit`](Self::limit) | none, and one at least is needed | a budget without limits would limit nothing |
/// | [`class`](Self::class) | `order`, which owes nothing, `query` leaving 10 %, `sweep` leaving 30 % with a floor of 2 % | what must not wait, what may, and what always may |
/// | [`guard`](Self::guard) | [`Guard::UntilResponse`], `late` 1 s | the only one that needs no assumption about the network |
/// | [`max_queue`](Self::max_queue) | 10,000 | who stands further back waits longer than anybody wants |
/// | [`max_wait`](Self::max_wait) | 30 s | a call lasts no longer by default |
/// | [`clock_tolerance`](Self::clock_tolerance) | 500 ppm and 1 ms | the worst clock that is still in order, and a venue that counts milliseconds |
/// | [`longest_pause`](Self::longest_pause) | 1 hour | the longest window that is common beside days |
/// | [`longest_ban`](Self::longest_ban) | 3 days | the longest ban that a large venue documents |
#[must_use]
#[derive(Clone)]
pub struct BudgetBuilder {
    name: String,
    limits: Vec<Limit>,
    classes: Vec<Class>,
    guard: Guard,
    ppm: u32,
    granularity: Duration,
    max_queue: usize,
    max_wait: Duration,
    longest_pause: Duration,
    longest_ban: Duration,
    observer: Option<Watch>,
}

/// What has been checked.
pub(crate) struct Config {
    pub(crate) limits: Vec<Limit>,
    pub(crate) classes: Vec<Class>,
    pub(crate) guard: Guard,
    pub(crate) margin: Margin,
    pub(crate) max_queue: u32,
    pub(crate) max_wait: Duration,
    pub(crate) longest_pause: Duration,
    pub(crate) longest_ban: Duration,
}

// === impl BudgetBuilder ===

impl BudgetBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            limits: Vec::new(),
            classes: Vec::new(),
            guard: Guard::default(),
            ppm: 500,
            granularity: Duration::from_millis(1),
            max_queue: 10_000,
            max_wait: Duration::from_secs(30),
            longest_pause: Duration::from_secs(60 * 60),
            longest_ban: Duration::from_secs(3 * 24 * 60 * 60),
            observer: None,
        }
    }

    /// Adds a limit; there may be 8. A request has to fit all that it costs something of, and takes
    /// from all of them or from none.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limits.push(limit);
        self
    }

    /// Adds a class below those that were added before; there may be 8. The first one replaces the
    /// default classes.
    pub fn class(mut self, class: Class) -> Self {
        self.classes.push(class);
        self
    }

    /// Sets how it is made up for that requests travel.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// Sets how many requests may wait. When it is full, the newest of the lowest class makes way
    /// for a higher one, or is refused itself. 0: nobody waits.
    pub fn max_queue(mut self, requests: usize) -> Self {
        self.max_queue = requests;
        self
    }

    /// Sets how long a request waits at most, where its class or ticket does not say. A request that
    /// could not make it is refused before it waits.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets how much longer every window is made: in parts per million, for clocks that do not run
    /// equally fast, and by a fixed time, for a venue that counts in coarse units.
    pub fn clock_tolerance(mut self, ppm: u32, granularity: Duration) -> Self {
        self.ppm = ppm;
        self.granularity = granularity;
        self
    }

    /// Sets the longest time for which anything a venue says closes the gate. A pause that is longer
    /// than a caller waits refuses the caller, so nobody is kept waiting by it.
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// Sets the same for a [ban](Budget::banned), which may last longer.
    pub fn longest_ban(mut self, ban: Duration) -> Self {
        self.longest_ban = ban;
        self
    }

    /// Sets who watches.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Builds the budget.
    ///
    /// # Errors
    ///
    /// If there is no limit, or more than 8 limits or classes; if two limits or two classes have the
    /// same name, or one has none; if a capacity is 0 or above [`Limit::MAX_CAPACITY`]; if a window,
    /// gap or pause is zero or longer than [`Limit::MAX_WINDOW`]; if a class leaves 100 % or more, or
    /// less than a class above it; if a guard leaves nothing of a burst.
    pub fn build(self) -> Result<Budget, ConfigError> {
        let config = self.check()?;
        let shared = Shared::new(self.name.into(), &config, self.observer);
        Ok(Budget(Counted::new(shared)))
    }

    pub(crate) fn into_name_and_watch(self) -> (Arc<str>, Option<Watch>) {
        (self.name.into(), self.observer)
    }

    pub(crate) fn check(&self) -> Result<Config, ConfigError> {
        /// A clock that is off by a tenth is broken.
        const MOST_PPM: u32 = 100_000;
        if self.name.is_empty() {
            return Err(ConfigError::new("budget.name", "", "a name"));
        }
        if self.limits.is_empty() || self.limits.len() > MAX_LIMITS {
            return Err(ConfigError::new("limits", self.limits.len(), "1 to 8"));
        }
        if self.classes.len() > MAX_CLASSES {
            return Err(ConfigError::new("classes", self.classes.len(), "at most 8"));
        }
        self.guard.check()?;
        if self.ppm > MOST_PPM {
            return Err(ConfigError::new(
                "clock_tolerance.ppm",
                self.ppm,
                "at most 100000",
            ));
        }
        let spans = [
            ("clock_tolerance.granularity", self.granularity),
            ("max_wait", self.max_wait),
            ("longest_pause", self.longest_pause),
            ("longest_ban", self.longest_ban),
        ];
        for (field, span) in spans {
            if span > Limit::MAX_WINDOW {
                return Err(ConfigError::new(field, span, "at most 400 days"));
            }
        }
        if self.longest_pause.is_zero() {
            return Err(ConfigError::new(
                "longest_pause",
                self.longest_pause,
                "more than zero",
            ));
        }
        let margin = Margin::new(self.guard, self.ppm, self.granularity);
        for (i, limit) in self.limits.iter().enumerate() {
            limit.check()?;
            check_burst(limit, margin)?;
            if self.limits[..i]
                .iter()
                .any(|other| other.name == limit.name)
            {
                return Err(ConfigError::new(
                    "limit.name",
                    &limit.name,
                    "a name of its own",
                ));
            }
        }
        let classes = if self.classes.is_empty() {
            vec![
                Class::new("order").owes_nothing(),
                Class::new("query").leave_percent(10),
                Class::new("sweep").leave_percent(30).floor_percent(2),
            ]
        } else {
            self.classes.clone()
        };
        let mut above = 0;
        for (i, class) in classes.iter().enumerate() {
            class.check()?;
            if classes[..i].iter().any(|other| other.name == class.name) {
                return Err(ConfigError::new(
                    "class.name",
                    &class.name,
                    "a name of its own",
                ));
            }
            if class.leave_percent < above {
                return Err(ConfigError::new(
                    "class.leave_percent",
                    format_args!("{} of {:?}", class.leave_percent, class.name),
                    "no less than that of the classes above it",
                ));
            }
            above = class.leave_percent;
            if class.max_wait.is_some_and(|wait| wait > Limit::MAX_WINDOW) {
                return Err(ConfigError::new(
                    "class.max_wait",
                    class.max_wait,
                    "at most 400 days",
                ));
            }
        }
        Ok(Config {
            limits: self.limits.clone(),
            classes,
            guard: self.guard,
            margin,
            max_queue: u32::try_from(self.max_queue)
                .unwrap_or(u32::MAX - 1)
                .min(u32::MAX - 1),
            max_wait: self.max_wait,
            longest_pause: self.longest_pause,
            longest_ban: self.longest_ban,
        })
    }
}

/// What leaks during the spread of a guard is taken off the burst; something has to be left.
pub(crate) fn check_burst(limit: &Limit, margin: Margin) -> Result<(), ConfigError> {
    if let Kind::TokenBucket { burst, .. } = limit.kind {
        if Rule::new(limit.kind, margin).capacity() == Some(0) {
            return Err(ConfigError::new(
                "limit.burst",
                format_args!("{burst} of {:?}", limit.name),
                "more than what comes back during the guard's time",
            ));
        }
    }
    Ok(())
}

impl fmt::Debug for BudgetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetBuilder")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .field("classes", &self.classes)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
