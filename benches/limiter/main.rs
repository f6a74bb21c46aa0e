//! What the rate limiter costs, beside its peers, in the same run.
//!
//! ```text
//! cargo bench --bench limiter                 tables, in about a minute
//! cargo bench --bench limiter -- --json       an array of objects, for programs
//! cargo bench --bench limiter -- --quick      fewer waiters, in a few seconds
//! cargo bench --bench limiter -- drain        only the parts with that in their names
//! ```
//!
//! Each part is a question:
//!
//! - `uncontended`: what does it cost to ask while nobody waits? Times are the shortest of many short
//!   bursts in which the cases take turns, and multiples of governor's in the same run. Instructions
//!   are counted by callgrind, for which this program runs itself under `valgrind`, and allocations
//!   by the global allocator, both once every table has grown to its size.
//! - `two_threads`: and on two threads that share one limiter? The time is the processor's, of both
//!   threads together, in the rounds in which they ran side by side most. Where it is no more than
//!   that on the wall, they took turns on one processor, because the machine has other work, and
//!   the figure says nothing.
//! - `real_clock`: thousands of tasks arrive at once and leave at 1000 a second. What does the
//!   processor do all the while, and does the first to come leave first?
//! - `queue`: what does a waiter weigh, with the future it waits in, and what does it cost to come
//!   and to give up?
//! - `high_class`: is who may go at once held up by those who wait?
//! - `drain`: as many tasks leave at 1000 a second of a paused clock. What does that cost, without
//!   the time in which nothing happens?
//!
//! A bound belongs to the figure named with it, and is `kept` or `EXCEEDED`. Ratios are within one
//! run. The figures are for the profile `bench` of the workspace.

use std::process::ExitCode;

use clap::Parser;

mod callgrind;
mod cases;
mod drain;
mod effort;
mod heap;
mod high_class;
mod ours;
mod peers;
mod queue;
mod real_clock;
mod report;
mod time;
mod two_threads;
mod uncontended;

use crate::{effort::Effort, report::Table};

/// One question and the way to its answer.
struct Part {
    name: &'static str,
    measure: fn(&Effort) -> Table,
}

/// In the order of the output. A clock that was paused once is slower to read for as long as the
/// program runs, so parts with a paused clock come last.
const PARTS: &[Part] = &[
    Part {
        name: "uncontended",
        measure: uncontended::measure,
    },
    Part {
        name: "two_threads",
        measure: two_threads::measure,
    },
    Part {
        name: "real_clock",
        measure: real_clock::measure,
    },
    Part {
        name: "queue",
        measure: queue::measure,
    },
    Part {
        name: "high_class",
        measure: high_class::measure,
    },
    Part {
        name: "drain",
        measure: drain::measure,
    },
];

/// Measures what the rate limiter costs, beside its peers.
#[derive(Debug, Parser)]
#[command(name = "limiter", bin_name = "cargo bench --bench limiter --")]
struct Arguments {
    /// Measure only parts whose name contains this; all by default.
    parts: Vec<String>,

    /// Print a JSON array and nothing else.
    #[arg(long)]
    json: bool,

    /// Measure with fewer waiters and repetitions.
    #[arg(long)]
    quick: bool,

    /// Make that many calls of the one case named, and print nothing: what callgrind looks at.
    #[arg(long, hide = true, value_name = "N")]
    calls: Option<u32>,

    /// Passed by `cargo bench`. Without it this is a test run, which only tries every part.
    #[arg(long, hide = true)]
    bench: bool,

    /// Passed by test runners, which ask what there is before they run it.
    #[arg(long, hide = true)]
    list: bool,

    // What else test runners pass; none of it changes anything here.
    #[arg(long, hide = true)]
    test: bool,
    #[arg(long, hide = true)]
    exact: bool,
    #[arg(long, hide = true)]
    ignored: bool,
    #[arg(long, hide = true)]
    include_ignored: bool,
    #[arg(long, hide = true, alias = "no-capture")]
    nocapture: bool,
    #[arg(long, hide = true)]
    show_output: bool,
    #[arg(long, hide = true)]
    format: Option<String>,
    #[arg(long, hide = true)]
    color: Option<String>,
    #[arg(long, hide = true)]
    test_threads: Option<u32>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        if !arguments.ignored {
            println!("limiter: benchmark");
        }
        return ExitCode::SUCCESS;
    }
    if let Some(calls) = arguments.calls {
        let Some(case) = arguments.parts.first().and_then(|name| cases::named(name)) else {
            return refuse("--calls needs the name of one case");
        };
        callgrind::run(&*(case.start)(), calls);
        return ExitCode::SUCCESS;
    }
    if arguments.test || !(arguments.bench || arguments.json || arguments.quick) {
        // A test run: its filters are names of tests.
        for part in PARTS {
            (part.measure)(&Effort::TRIAL);
        }
        println!("limiter: every part was tried; `cargo bench` measures them");
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<&Part> = PARTS
        .iter()
        .filter(|part| {
            let mut names = arguments.parts.iter();
            arguments.parts.is_empty() || names.any(|name| part.name.contains(name.as_str()))
        })
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        return refuse(&format!(
            "no part has {} in its name; there are {}",
            arguments.parts.join(" or "),
            names.join(", "),
        ));
    }
    let effort = if arguments.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    let mut tables = Vec::new();
    for part in chosen {
        let table = (part.measure)(&effort);
        if !arguments.json {
            report::table(part.name, &table);
        }
        tables.push((part.name, table));
    }
    if arguments.json {
        report::json(&tables);
    }
    ExitCode::SUCCESS
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}
