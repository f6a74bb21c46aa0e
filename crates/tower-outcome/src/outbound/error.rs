//! What is wrong with a stack.

use std::{error::Error, fmt};

use tower_outcome_core::ConfigError;

/// Says everything that is wrong with the configuration of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundError {
    wrong: Vec<(&'static str, ConfigError)>,
}

// === impl OutboundError ===

impl OutboundError {
    /// Returns the names of steps, each with what is wrong with it, in the order of the stack.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ConfigError)> {
        self.wrong.iter().map(|(step, error)| (*step, error))
    }

    pub(super) const fn new(wrong: Vec<(&'static str, ConfigError)>) -> Self {
        Self { wrong }
    }
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (step, error)) in self.wrong.iter().enumerate() {
            let between = if place == 0 { "" } else { "; " };
            write!(f, "{between}{step}: {error}")?;
        }
        Ok(())
    }
}

impl Error for OutboundError {}
