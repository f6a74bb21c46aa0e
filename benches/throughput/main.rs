//! What the whole stack leaves of a client's throughput: hyper over loopback, HTTP/1 and HTTP/2.
//!
//! ```text
//! cargo bench --bench throughput              a table
//! cargo bench --bench throughput -- --json    an array of objects, for programs
//! cargo bench --bench throughput -- --quick   fewer rounds
//! ```
//!
//! One client is hyper-util's by itself, and one is the same below Deadline > Retry > AuthRefresh >
//! RateLimit > Sign > Timeout > Witness, with a limit far away, a token that is good and a signer that only
//! sets a header. Both send the same bytes, 16 requests at a time, on one thread with all that their
//! connections need, and a plain hyper server answers on another. They take turns in rounds; the ratio is
//! that of a round, and what is printed is the median and the half of the rounds in the middle.
//!
//! By the clock, the ratio is noisy on a machine that others use, and says nothing where the server is the
//! slower of the two; by the processor time of the client's thread it is neither. A bound is `kept` or
//! `MISSED`, by the clock; neither makes the run fail.

use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

mod client;
mod measure;
mod server;
#[path = "../overhead/signer.rs"]
mod signer;

use crate::measure::{Effort, Figures, Spread};

/// Measures what the whole stack leaves of a client's throughput.
#[derive(Debug, Parser)]
#[command(name = "throughput", bin_name = "cargo bench --bench throughput --")]
struct Arguments {
    /// The filters of test runners.
    #[arg(hide = true)]
    filters: Vec<String>,

    /// Print a JSON array and nothing else.
    #[arg(long)]
    json: bool,

    /// Measure with fewer repetitions.
    #[arg(long)]
    quick: bool,

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

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// One object of the array.
#[derive(Serialize)]
struct Row {
    protocol: &'static str,
    bare_per_second: f64,
    full_per_second: f64,
    ratio: f64,
    ratio_low: f64,
    ratio_high: f64,
    ratio_by_processor: f64,
}

/// What has to be left of the throughput.
const BOUND: f64 = 0.97;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        if !arguments.ignored {
            println!("throughput: benchmark");
        }
        return ExitCode::SUCCESS;
    }
    let is_test = arguments.test || !(arguments.bench || arguments.json || arguments.quick);
    let effort = match (is_test, arguments.quick) {
        (true, _) => Effort::TRY,
        (false, true) => Effort::QUICK,
        (false, false) => Effort::FULL,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no runtime can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut results = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        match measure::measure(&runtime, protocol, effort) {
            Ok(figures) => results.push(figures),
            Err(error) => {
                eprintln!("error: {}: {error}", protocol.name());
                return ExitCode::FAILURE;
            }
        }
    }
    if is_test {
        println!("throughput: both clients were tried; `cargo bench` measures them");
    } else if arguments.json {
        json(&results);
    } else {
        table(&results);
    }
    ExitCode::SUCCESS
}

fn json(results: &[Figures]) {
    let rows: Vec<Row> = results.iter().map(Row::of).collect();
    let array = serde_json::to_string_pretty(&rows).expect("numbers and names");
    println!("{array}");
}

fn table(results: &[Figures]) {
    println!("requests in a second; full by bare: the median, and half of the rounds");
    println!();
    println!(
        "{:10}{:>10}{:>10}  {:22}{:22}bound",
        "protocol", "bare", "full", "by the clock", "by processor time",
    );
    for figures in results {
        let verdict = if figures.by_clock.median >= BOUND {
            "kept"
        } else {
            "MISSED"
        };
        println!(
            "{:10}{:>10.0}{:>10.0}  {:22}{:22}{BOUND}: {verdict}",
            figures.protocol.name(),
            figures.bare,
            figures.full,
            shown(figures.by_clock),
            shown(figures.by_processor),
        );
    }
}

fn shown(spread: Spread) -> String {
    let Spread { low, median, high } = spread;
    format!("{median:.3} ({low:.3}-{high:.3})")
}

// === impl Protocol ===

impl Protocol {
    const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1",
            Self::Http2 => "HTTP/2",
        }
    }
}

// === impl Row ===

impl Row {
    fn of(figures: &Figures) -> Self {
        let to = |digits: i32, value: f64| {
            let scale = 10_f64.powi(digits);
            (value * scale).round() / scale
        };
        Self {
            protocol: figures.protocol.name(),
            bare_per_second: to(0, figures.bare),
            full_per_second: to(0, figures.full),
            ratio: to(3, figures.by_clock.median),
            ratio_low: to(3, figures.by_clock.low),
            ratio_high: to(3, figures.by_clock.high),
            ratio_by_processor: to(3, figures.by_processor.median),
        }
    }
}
