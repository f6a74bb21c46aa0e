//! The command line.

use clap::Parser;

/// Sends random calls against a venue that fails in every way it knows, and checks every claim
/// against the venue's ledger.
#[derive(Debug, Parser)]
#[command(name = "soak")]
pub(crate) struct Args {
    /// How many calls to make.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) calls: u64,
    /// Fixes the calls and the venue's faults.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many calls are under way at once, while some of them stall.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) callers: u32,
    /// Prints one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

// === impl Args ===

impl Args {
    /// Reads the command line; explains and exits with 2 where it is wrong.
    pub(crate) fn from_command_line() -> Self {
        Self::parse()
    }
}
