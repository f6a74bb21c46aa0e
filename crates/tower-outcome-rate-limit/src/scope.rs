//! Which budget a request draws on, and what is learned for it from the response.

use std::{fmt, hash::Hash, ops::Deref, time::Duration};

use http::{request, response};
use tower_outcome_core::{ConfigError, Priority};

use crate::{
    Budget, KeyedBudget, Ticket, UsageHeaders,
    tickets::{Flat, Tickets},
};

/// Which budget a request draws on, what it asks, and what is learned for the budget from the
/// response.
///
/// A [`Budget`] is a scope by itself, in which every request costs one unit of each limit.
///
/// ```
/// use std::time::Duration;
/// use http::request;
/// use tower_outcome_rate_limit::{
///     Budget, Cost, KeyedBudget, Limit, RateLimitLayer, Scope, Ticket, UsageHeaders,
/// };
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let minute = Duration::from_secs(60);
/// // Orders count by account, and everything by address.
/// let accounts = KeyedBudget::<String>::try_new(
///     Budget::builder("account").limit(Limit::sliding("orders", 50, Duration::from_secs(10))),
/// )?;
/// let address = Budget::builder("address").limit(Limit::aligned("weight", 6000, minute)).build()?;
///
/// let by_account = Scope::keyed(accounts, |head: &request::Parts| {
///     let key = head.headers.get("x-account");
///     key.and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned()
/// })
/// .tickets(|head: &request::Parts| match head.uri.path() {
///     "/order" => Ticket::new(),
///     _ => Ticket::new().cost(Cost::NOTHING),
/// });
/// let by_address = Scope::of(address).usage("weight", UsageHeaders::mbx_used_weight("1m")?);
///
/// let layer = RateLimitLayer::builder(by_account).within(by_address).build()?;
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Scope {
    source: Source,
    tickets: Box<dyn Tickets>,
    usage: Vec<(String, UsageHeaders)>,
    closes: Option<Box<Closes>>,
}

enum Source {
    Shared(Budget),
    ByRequest {
        choose: Box<dyn Fn(&request::Parts) -> Budget + Send + Sync>,
        /// What all of them are like.
        sample: Budget,
    },
}

type Closes = dyn Fn(&response::Parts) -> bool + Send + Sync;

/// A scope whose names are numbers.
pub(crate) struct Bound {
    source: Source,
    tickets: Box<dyn Tickets>,
    pub(crate) usage: Box<[(usize, UsageHeaders)]>,
    closes: Option<Box<Closes>>,
}

/// The budget of a request, without a handle where there is one already.
pub(crate) enum Chosen<'a> {
    Shared(&'a Budget),
    Own(Budget),
}

// === impl Scope ===

impl Scope {
    /// All requests draw on this budget.
    pub fn of(budget: Budget) -> Self {
        Self::new(Source::Shared(budget))
    }

    /// A request draws on the budget of its key.
    pub fn keyed<K>(
        budgets: KeyedBudget<K>,
        key: impl Fn(&request::Parts) -> K + Send + Sync + 'static,
    ) -> Self
    where
        K: Hash + Eq + Clone + Send + 'static,
    {
        Self::new(Source::ByRequest {
            sample: budgets.sample(),
            choose: Box::new(move |head| budgets.get(&key(head))),
        })
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            tickets: Box::new(Flat),
            usage: Vec::new(),
            closes: None,
        }
    }

    /// Sets what requests ask of the budget: by default one unit of each limit, in the class of
    /// their priority.
    pub fn tickets(mut self, tickets: impl Tickets + 'static) -> Self {
        self.tickets = Box::new(tickets);
        self
    }

    /// Learns from these headers how much of a limit is used, by whomever. Only where they show that
    /// somebody else uses it too does that lower what is left here; see [`Budget::observe_used`].
    pub fn usage(mut self, limit: impl Into<String>, headers: UsageHeaders) -> Self {
        self.usage.push((limit.into(), headers));
        self
    }

    /// Sets which refusals close this budget's gate, of those that the classifier takes for
    /// throttling.
    ///
    /// By default a 418, which is a ban, closes those of all scopes, and everything else only that
    /// of the narrowest: which limit was exceeded is rarely said, and to close the wider one stops
    /// those who have nothing to do with it.
    pub fn closed_by(
        mut self,
        closes: impl Fn(&response::Parts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.closes = Some(Box::new(closes));
        self
    }

    pub(crate) fn bind(self) -> Result<Bound, ConfigError> {
        let Self {
            source,
            tickets,
            usage,
            closes,
        } = self;
        let (Source::Shared(budget) | Source::ByRequest { sample: budget, .. }) = &source;
        let limits = budget.limits();
        let usage = usage.into_iter().map(|(name, headers)| {
            match limits.iter().position(|limit| **limit == *name) {
                Some(limit) => Ok((limit, headers)),
                None => Err(ConfigError::new(
                    "scope.usage",
                    name,
                    "the name of a limit of the budget",
                )),
            }
        });
        let usage = usage.collect::<Result<_, _>>()?;
        for ticket in tickets.known() {
            budget.check(&ticket)?;
        }
        Ok(Bound {
            usage,
            source,
            tickets,
            closes,
        })
    }
}

impl From<Budget> for Scope {
    fn from(budget: Budget) -> Self {
        Self::of(budget)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("budget", &self.source)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

// === impl Bound ===

impl Bound {
    #[inline]
    pub(crate) fn budget(&self, head: &request::Parts) -> Chosen<'_> {
        match &self.source {
            Source::Shared(budget) => Chosen::Shared(budget),
            Source::ByRequest { choose, .. } => Chosen::Own(choose(head)),
        }
    }

    #[inline]
    pub(crate) fn ticket(&self, head: &request::Parts) -> Ticket {
        let ticket = self.tickets.ticket(head);
        if head.extensions.is_empty() {
            return ticket;
        }
        ticket
            .or_priority(Priority::of(&head.extensions))
            .no_later_than_deadline(&head.extensions)
    }

    pub(crate) fn longest_wait(&self) -> Duration {
        let (Source::Shared(budget) | Source::ByRequest { sample: budget, .. }) = &self.source;
        budget.longest_wait()
    }

    /// Whether both draw on one and the same budget.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.source, &other.source) {
            (Source::Shared(own), Source::Shared(other)) => own.is_same(other),
            _ => false,
        }
    }

    /// Whether a refusal closes the gate. The place of the narrowest scope is 0.
    pub(crate) fn is_closed_by(&self, head: &response::Parts, place: usize) -> bool {
        match &self.closes {
            Some(closes) => closes(head),
            None => place == 0 || head.status == http::StatusCode::IM_A_TEAPOT,
        }
    }
}

impl From<Budget> for Bound {
    fn from(budget: Budget) -> Self {
        Self {
            source: Source::Shared(budget),
            tickets: Box::new(Flat),
            usage: Box::new([]),
            closes: None,
        }
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("budget", &self.source)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

// === impl Chosen ===

impl Deref for Chosen<'_> {
    type Target = Budget;

    #[inline]
    fn deref(&self) -> &Budget {
        match self {
            Self::Shared(budget) => budget,
            Self::Own(budget) => budget,
        }
    }
}

// === impl Source ===

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(budget) => f.write_str(budget.name()),
            Self::ByRequest { .. } => f.write_str("by request"),
        }
    }
}
