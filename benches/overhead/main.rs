//! What a layer costs a call that does not fail, beside its peers, in the same run.
//!
//! ```text
//! cargo bench --bench overhead                 a table
//! cargo bench --bench overhead -- --json       an array of objects, for programs
//! cargo bench --bench overhead -- outcome      only the cases with that in their names
//! ```
//!
//! Each case builds a POST with 5 headers and a shared body of 96 bytes, makes the service ready,
//! calls it and drops the response. `bare` is the same loop around a service that does nothing, and
//! all figures are over it, except for the time, which is a multiple of it:
//!
//! - instructions per call, counted by callgrind: this program runs itself under `valgrind`. The
//!   count repeats to within a dozen on one machine and compiler; it is `null` without valgrind.
//! - allocations and bytes per call, counted by the global allocator. Its counters are a few of the
//!   instructions of each allocation, for all cases alike.
//! - the time, as the median of many short bursts that take turns. Use it for what the instructions
//!   do not show, such as a contended cache line; it is the least exact of the three.
//!
//! # Stacks
//!
//! What peers stack is a time-out over everything, Retry, and a limiter below it: `hand_three` and
//! `tower_resilience_three`. Here the time-out over everything is Deadline, so `outcome_three` is
//! Deadline > Retry > RateLimit. It does more than theirs: it tells the layers below how much time is left,
//! and the caller what had become of the request when it struck, for which something has to travel with the
//! request. `outcome_three_attempt` is Retry > RateLimit > Timeout, where each attempt has its bound and the
//! call has none. With `_off` nothing may be sent again, and no copy is made.
//!
//! `outcome_five` is Retry > AuthRefresh > RateLimit > Sign > Timeout with a token that is good and a signer
//! that only sets a header. aws-smithy-runtime is no stack of layers; what is measured of it is said in
//! `smithy.rs`.
//!
//! The figures are for the profile `bench` of the workspace: release with thin link-time optimisation
//! and the default of 16 codegen units. Another profile or compiler inlines otherwise, and a dozen
//! instructions come and go with that.

use std::process::ExitCode;

use clap::Parser;

mod allocations;
mod call;
mod callgrind;
mod cases;
mod measure;
mod peers;
mod report;
mod signer;
mod smithy;
mod stacks;
mod time;

use crate::{cases::Case, measure::Effort};

/// Measures what layers cost a call that does not fail.
#[derive(Debug, Parser)]
#[command(name = "overhead", bin_name = "cargo bench --bench overhead --")]
struct Arguments {
    /// Measure only cases whose name contains this; all by default.
    cases: Vec<String>,

    /// Print a JSON array and nothing else.
    #[arg(long)]
    json: bool,

    /// Measure with fewer repetitions.
    #[arg(long)]
    quick: bool,

    /// Make that many calls of the one case named, and print nothing: what callgrind looks at.
    #[arg(long, hide = true, value_name = "N")]
    calls: Option<u32>,

    /// Make the calls of its bare loop instead.
    #[arg(long, hide = true, requires = "calls")]
    bare: bool,

    /// Passed by `cargo bench`. Without it this is a test run, which only tries every case.
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
            println!("overhead: benchmark");
        }
        return ExitCode::SUCCESS;
    }
    // tower's Timeout asks for tokio's timer whenever it is called; nothing here ever waits for it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let Ok(runtime) = runtime else {
        return refuse("no runtime can be started");
    };
    let _entered = runtime.enter();
    if let Some(calls) = arguments.calls {
        let Some(case) = arguments.cases.first().and_then(|name| cases::named(name)) else {
            return refuse("--calls needs the name of one case");
        };
        let mut burst = if arguments.bare {
            cases::start_bare(case.sent)
        } else {
            case.start()
        };
        burst.run(calls);
        return ExitCode::SUCCESS;
    }
    if arguments.test || !(arguments.bench || arguments.json || arguments.quick) {
        // A test run: its filters are names of tests.
        for case in cases::ALL {
            case.start().run(3);
        }
        println!("overhead: every case was tried; `cargo bench` measures them");
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<&Case> = cases::ALL
        .iter()
        .filter(|case| {
            let mut names = arguments.cases.iter();
            arguments.cases.is_empty() || names.any(|name| case.name.contains(name.as_str()))
        })
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = cases::ALL.iter().map(|case| case.name).collect();
        return refuse(&format!(
            "no case has {} in its name; there are {}",
            arguments.cases.join(" or "),
            names.join(", "),
        ));
    }
    let effort = if arguments.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    let results = measure::all(&chosen, effort);
    if arguments.json {
        report::json(&results);
    } else {
        report::table(&results);
    }
    ExitCode::SUCCESS
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}
