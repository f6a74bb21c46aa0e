//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// A market opens: one storm of requests, weathered in three ways.
///
/// Forty symbols are swept twice while 24 orders are placed, over real sockets, against a venue that
/// allows 200 requests a minute (scaled down to 3 seconds), bans clients that keep calling, loses
/// some answers and sits on others; one connection in twelve gets lost. A naive loop, tower's Retry
/// and tower-outcome go through the same storm one after the other. It takes about ten seconds;
/// everything runs on this machine.
///
/// Progress goes to stderr, the result to stdout.
#[derive(Debug, Parser)]
#[command(name = "storm", verbatim_doc_comment)]
pub(crate) struct Args {
    /// Fixes what the venue does to each request: the same seed, the same fates.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Prints one JSON object instead of the table.
    #[arg(long)]
    pub(crate) json: bool,

    /// Where the timeline goes, an SVG with every request.
    #[arg(long, value_name = "FILE", default_value = "target/storm.svg")]
    pub(crate) picture: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn a_seed_that_is_no_number_is_a_usage_error() {
        let error = Args::try_parse_from(["storm", "--seed", "many"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn without_arguments_the_seed_is_fixed_and_the_picture_under_target() {
        let args = Args::try_parse_from(["storm"]).unwrap();
        assert_eq!((args.seed, args.json), (1, false));
        assert!(args.picture.starts_with("target"));
    }
}
