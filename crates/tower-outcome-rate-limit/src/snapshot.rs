//! How a budget stands.

use std::time::Duration;

/// How a budget stood when it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Each limit, in the order in which the budget was given them.
    pub limits: Vec<LimitUsage>,
    /// Each class, the highest first.
    pub classes: Vec<ClassQueue>,
    /// How many wait, of all classes.
    pub queued: u32,
    /// How long the gate stays closed to all; zero if it is open.
    pub paused_for: Duration,
}

/// How much of a limit is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitUsage {
    /// Its name.
    pub name: String,
    /// How much there is in all; 0 for a spacing, which counts nothing.
    pub capacity: u32,
    /// What this side has used and still counts.
    pub used: u32,
    /// What is on its way.
    pub held: u32,
    /// What others have used, as the venue says.
    pub phantom: u32,
    /// How long the gate stays closed to those who use this limit; zero if it is open.
    pub closed_for: Duration,
}

/// How many of a class wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassQueue {
    /// Its name.
    pub name: String,
    /// How many wait.
    pub queued: u32,
    /// How long the first of them has waited; zero if none does.
    pub oldest_wait: Duration,
    /// How many were let through since the budget was built.
    pub granted: u64,
    /// How many were refused since the budget was built.
    pub refused: u64,
}

// === impl Snapshot ===

impl Snapshot {
    /// Returns a limit by name.
    #[must_use]
    pub fn limit(&self, name: &str) -> Option<&LimitUsage> {
        self.limits.iter().find(|limit| limit.name == name)
    }

    /// Returns a class by name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&ClassQueue> {
        self.classes.iter().find(|class| class.name == name)
    }
}
