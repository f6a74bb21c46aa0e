//! Configuration that cannot work.

use std::{error::Error, fmt};

/// Says that a configuration cannot work, when the thing is built and not later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    value: String,
    expected: &'static str,
}

// === impl ConfigError ===

impl ConfigError {
    /// Creates the error from the name of the field, the value it was given and what would do.
    pub fn new(field: &'static str, value: impl fmt::Debug, expected: &'static str) -> Self {
        Self {
            field,
            value: format!("{value:?}"),
            expected,
        }
    }

    /// Creates the error of a layer that has a classifier of its own in a stack that has one for all.
    ///
    /// Layers that disagree on what an answer means undo each other's work: a limiter that takes for a
    /// refusal what Retry takes for a success, say.
    #[must_use]
    pub fn classifier_of_one_layer() -> Self {
        Self {
            field: "classifier",
            value: "set for one layer".to_owned(),
            expected: "one for the whole stack",
        }
    }

    /// Returns the name of the field.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the value it was given, as `Debug` prints it.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns what would do.
    #[must_use]
    pub const fn expected(&self) -> &'static str {
        self.expected
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            value,
            expected,
        } = self;
        write!(f, "{field} is {value}, expected {expected}")
    }
}

impl Error for ConfigError {}
