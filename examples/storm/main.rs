//! A market opens: the same storm of requests, weathered in three ways.
//!
//! Forty symbols are swept while orders are placed, against a venue that limits, bans, hangs and
//! sometimes acts on a request without a word. It takes the loop that everybody writes first, tower's own
//! `Retry`, and tower-outcome through it, one after the other, and shows what became of the orders.
//!
//! ```sh
//! cargo run --release --example storm
//! ```

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use self::args::Args;
use self::run::Run;
use self::strategy::{Naive, TowerOutcome, TowerRetry};
use self::tally::Tally;

mod args;
mod limiter;
mod picture;
mod progress;
mod road;
mod run;
mod scenario;
mod session;
mod signing;
mod strategy;
mod summary;
mod tally;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match storm(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("storm: {}", with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn storm(args: &Args) -> Result<(), Box<dyn Error>> {
    // Before the storm, not fifteen seconds later.
    picture::check(&args.picture)?;

    let runs = [
        Run::of(Naive::new, args.seed).await?,
        Run::of(TowerRetry::new, args.seed).await?,
        Run::of(TowerOutcome::new, args.seed).await?,
    ];
    let tallies = runs.each_ref().map(Tally::of);

    picture::draw(&args.picture, args.seed, &runs)?;
    if args.json {
        println!("{}", tally::json(args.seed, &tallies)?);
    } else {
        summary::print(args, &runs, &tallies);
    }
    Ok(())
}

fn with_causes(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    let words: Vec<String> = chain.map(ToString::to_string).collect();
    words.join(": ")
}
