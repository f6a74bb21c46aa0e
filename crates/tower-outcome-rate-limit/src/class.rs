//! Who goes first.

use std::time::Duration;

use tower_outcome_core::ConfigError;

/// A class of requests in a budget's queue.
///
/// Classes go in strict order, and inside a class who came first goes first. Order alone protects
/// nobody: a sweep that has spent the window makes an order wait for the next one. So a lower class
/// [leaves](Self::leave_percent) a share of every limit to those above it, and as much as that goes
/// out without any wait, whatever the sweep does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Class {
    pub(crate) name: Box<str>,
    pub(crate) leave_percent: u8,
    pub(crate) floor_percent: u8,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) owes_nothing: bool,
}

// === impl Class ===

impl Class {
    /// Creates a class that may use everything and is owed nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into().into_boxed_str(),
            leave_percent: 0,
            floor_percent: 0,
            max_wait: None,
            owes_nothing: false,
        }
    }

    /// Sets the share of every limit that this class does not touch, in percent, 0 to 99. It is
    /// rounded up to whole units, as long as one is left to the class.
    pub const fn leave_percent(mut self, percent: u8) -> Self {
        self.leave_percent = percent;
        self
    }

    /// Sets what this class is owed of what goes to higher classes while it waits, in percent, 0
    /// to 100: by default nothing. It keeps a class from starving under a load that never ends.
    ///
    /// What is owed is paid before anything else, and out of the share that is left to the higher
    /// classes too; [`owes_nothing`](Self::owes_nothing) takes a class out of that.
    pub const fn floor_percent(mut self, percent: u8) -> Self {
        self.floor_percent = percent;
        self
    }

    /// What this class uses gives the lower ones no claim, and they never go before it: for what must
    /// not wait whatever happens, at the price that it may starve them.
    pub const fn owes_nothing(mut self) -> Self {
        self.owes_nothing = true;
        self
    }

    /// Sets how long a request of this class waits at most: by default as long as
    /// [the budget says](crate::BudgetBuilder::max_wait). Zero: it goes at once or is refused.
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.name.is_empty() {
            return Err(ConfigError::new("class.name", "", "a name"));
        }
        if self.leave_percent > 99 {
            return Err(ConfigError::new(
                "class.leave_percent",
                format_args!("{} of {:?}", self.leave_percent, self.name),
                "0 to 99",
            ));
        }
        if self.floor_percent > 100 {
            return Err(ConfigError::new(
                "class.floor_percent",
                format_args!("{} of {:?}", self.floor_percent, self.name),
                "0 to 100",
            ));
        }
        Ok(())
    }

    /// What is left of a capacity to higher classes.
    pub(crate) fn leave(&self, capacity: u32) -> u32 {
        let units = (u64::from(capacity) * u64::from(self.leave_percent)).div_ceil(100);
        u32::try_from(units)
            .unwrap_or(u32::MAX)
            .min(capacity.saturating_sub(1))
    }
}
