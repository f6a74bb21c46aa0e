//! Everything that is wrong with a file.

use std::{cell::RefCell, fmt};

/// Everything that is wrong with a file, each with its line and field.
#[derive(Debug)]
pub(crate) struct Problems {
    file: String,
    /// Where each line begins.
    lines: Vec<usize>,
    found: RefCell<Vec<Problem>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    line: usize,
    column: usize,
    field: String,
    what: String,
}

// === impl Problems ===

impl Problems {
    pub(super) fn new(file: &str, text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            file: file.to_owned(),
            lines: std::iter::once(0).chain(ends).collect(),
            found: RefCell::default(),
        }
    }

    /// Adds one, at an offset in bytes.
    pub(super) fn add(&self, at: usize, field: &str, what: impl fmt::Display) {
        let line = self.lines.partition_point(|begin| *begin <= at).max(1);
        self.found.borrow_mut().push(Problem {
            line,
            column: at.saturating_sub(self.lines[line - 1]) + 1,
            field: field.to_owned(),
            what: what.to_string(),
        });
    }

    /// Returns those that were found, if any were.
    pub(super) fn check(&self) -> Result<(), Self> {
        let mut found = self.found.borrow().clone();
        if found.is_empty() {
            return Ok(());
        }
        found.sort();
        found.dedup();
        Err(Self {
            file: self.file.clone(),
            lines: Vec::new(),
            found: RefCell::new(found),
        })
    }
}

/// One line each: `FILE:LINE:COLUMN: FIELD: what is wrong`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &*self.found.borrow() {
            let Problem {
                line,
                column,
                field,
                what,
            } = problem;
            write!(f, "{}:{line}:{column}: ", self.file)?;
            if !field.is_empty() {
                write!(f, "{field}: ")?;
            }
            writeln!(f, "{what}")?;
        }
        Ok(())
    }
}
