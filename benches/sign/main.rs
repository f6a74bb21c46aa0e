//! What signing costs: the layer without any cryptography, and a template beside the crypto crate
//! called by hand.
//!
//! ```text
//! cargo bench --bench sign             a table
//! cargo bench --bench sign -- --json   an array of objects, for programs
//! ```
//!
//! A bound is `kept` or `EXCEEDED`, and a case BROKEN that does not do what it is measured for. Only
//! that makes the run fail.
//!
//! Figures are instructions per call, counted by callgrind, over a bare loop that makes the same
//! requests; they are `null` without valgrind, which has no SHA extensions, so hashes count in full.

use std::{panic, process::ExitCode};

use clap::Parser;
use serde::Serialize;

#[path = "../overhead/callgrind.rs"]
mod callgrind;
mod cases;

use crate::{callgrind::Callgrind, cases::Case};

/// Measures what signing costs.
#[derive(Debug, Parser)]
#[command(name = "sign", bin_name = "cargo bench --bench sign --")]
struct Arguments {
    /// The case for `--calls`; the filters of test runners.
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

/// One object of the array.
#[derive(Serialize)]
struct Row {
    case: &'static str,
    instructions: Option<f64>,
    /// Of the case that it is compared with.
    ratio: Option<f64>,
    /// Whether it does not do what it is measured for; why was said by the panic.
    broken: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        if !arguments.ignored {
            println!("sign: benchmark");
        }
        return ExitCode::SUCCESS;
    }
    if let Some(calls) = arguments.calls {
        let named = arguments.cases.first();
        let Some(case) = named.and_then(|name| cases::named(name)) else {
            eprintln!("error: --calls needs the name of one case");
            return ExitCode::from(2);
        };
        case.run(calls, arguments.bare);
        return ExitCode::SUCCESS;
    }
    if arguments.test || !(arguments.bench || arguments.json || arguments.quick) {
        for case in cases::ALL {
            case.run(3, false);
            case.run(3, true);
        }
        println!("sign: every case was tried; `cargo bench` measures them");
        return ExitCode::SUCCESS;
    }
    let rows = measure(if arguments.quick { 200 } else { 2000 });
    if arguments.json {
        let array = serde_json::to_string_pretty(&rows).expect("numbers and names");
        println!("{array}");
    } else {
        table(&rows);
    }
    let broken: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.broken.then_some(row.case))
        .collect();
    if broken.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: BROKEN: {}", broken.join(", "));
    ExitCode::FAILURE
}

fn measure(calls: u32) -> Vec<Row> {
    let callgrind = Callgrind::find(calls);
    let mut rows: Vec<Row> = Vec::new();
    for case in cases::ALL {
        let broken = panic::catch_unwind(|| case.run(3, false)).is_err();
        let measured = callgrind.as_ref().filter(|_| !broken);
        let instructions = measured.and_then(|callgrind| {
            let whole = callgrind.per_call(case.name, false)?;
            let bare = callgrind.per_call(case.name, true)?;
            Some((whole - bare).round())
        });
        let beside = case
            .beside
            .and_then(|name| rows.iter().find(|row| row.case == name));
        let ratio = beside
            .and_then(|beside| Some(instructions? / beside.instructions?))
            .map(|ratio| (ratio * 1000.0).round() / 1000.0);
        rows.push(Row {
            case: case.name,
            instructions,
            ratio,
            broken,
        });
    }
    rows
}

fn table(rows: &[Row]) {
    println!("instructions per call, over bare");
    println!();
    println!(
        "{:22}{:>13}{:>8}  {:24}",
        "case", "instructions", "ratio", "bound"
    );
    for (row, case) in rows.iter().zip(cases::ALL) {
        let shown =
            |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
        let Case { bound, about, .. } = case;
        let bound = match bound {
            _ if row.broken => "BROKEN".to_owned(),
            Some(bound) => bound.verdict(row.instructions, row.ratio),
            None => String::new(),
        };
        println!(
            "{:22}{:>13}{:>8}  {bound:24}{about}",
            row.case,
            shown(row.instructions),
            row.ratio
                .map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        );
    }
}
