//! What is shown while a storm lasts.

use std::io::{IsTerminal, Write, stderr};

use tokio::time::Instant;

use crate::scenario::{self, Kind, ORDERS};
use crate::strategy::Belief;

/// A line about one strategy on stderr: kept up to date on a terminal, written once elsewhere.
pub(crate) struct Progress {
    strategy: &'static str,
    opening: Instant,
    queries: usize,
    queries_failed: usize,
    orders: usize,
    on_terminal: bool,
}

// === impl Progress ===

impl Progress {
    pub(crate) fn start(strategy: &'static str, opening: Instant) -> Self {
        let progress = Self {
            strategy,
            opening,
            queries: 0,
            queries_failed: 0,
            orders: 0,
            on_terminal: stderr().is_terminal(),
        };
        progress.update();
        progress
    }

    /// Notes that a call is over.
    pub(crate) fn note(&mut self, kind: Kind, belief: &Belief) {
        match kind {
            Kind::Query => {
                self.queries += 1;
                self.queries_failed += usize::from(!matches!(belief, Belief::Done(_)));
            }
            Kind::Order => self.orders += 1,
            Kind::Question | Kind::LogIn => {}
        }
        self.update();
    }

    pub(crate) fn finish(self) {
        let start = if self.on_terminal { "\r" } else { "" };
        // Nobody misses a line that cannot be written.
        let _ = writeln!(stderr(), "{start}{}", self.line());
    }

    fn update(&self) {
        if self.on_terminal {
            let _ = write!(stderr(), "\r{}", self.line());
        }
    }

    fn line(&self) -> String {
        format!(
            "{:<13} {:>3} of {} queries ({:>3} failed), {:>2} of {ORDERS} orders, {:.1} s",
            self.strategy,
            self.queries,
            scenario::QUERIES,
            self.queries_failed,
            self.orders,
            self.opening.elapsed().as_secs_f64(),
        )
    }
}
