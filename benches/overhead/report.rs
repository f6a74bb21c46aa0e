//! Printing the figures.

use serde::Serialize;

use crate::{cases::Bound, measure::Figures};

/// One object of the array.
#[derive(Serialize)]
struct Row<'a> {
    case: &'a str,
    instructions: Option<i64>,
    allocations: f64,
    bytes: i64,
    ns_ratio: f64,
}

/// Prints a JSON array.
pub(crate) fn json(results: &[Figures<'_>]) {
    let rows: Vec<Row<'_>> = results
        .iter()
        .map(|figures| Row {
            case: figures.case.name,
            instructions: figures.instructions.map(whole),
            allocations: to(2, figures.allocations),
            bytes: whole(figures.bytes),
            ns_ratio: to(3, figures.ns_ratio),
        })
        .collect();
    let array = serde_json::to_string_pretty(&rows).expect("numbers and names");
    println!("{array}");
}

/// Prints a table for people.
pub(crate) fn table(results: &[Figures<'_>]) {
    println!("per call, over bare; ns as a multiple of bare");
    println!();
    println!(
        "{:26}{:>13}{:>13}{:>8}{:>7}  {:22}",
        "case", "instructions", "allocations", "bytes", "ns x", "bound",
    );
    for figures in results {
        let instructions = figures
            .instructions
            .map_or_else(|| "?".to_owned(), |count| format!("{:.0}", to(0, count)));
        println!(
            "{:26}{instructions:>13}{:>13}{:>8.0}{:>7.2}  {:22}{}",
            figures.case.name,
            to(2, figures.allocations),
            figures.bytes,
            figures.ns_ratio,
            figures
                .case
                .bound
                .map_or_else(String::new, |bound| bound.verdict(figures)),
            figures.case.about,
        );
    }
}

fn whole(value: f64) -> i64 {
    value.round() as i64
}

fn to(digits: i32, value: f64) -> f64 {
    let scale = 10_f64.powi(digits);
    // Adding zero turns a negative zero into zero.
    (value * scale).round() / scale + 0.0
}

// === impl Bound ===

impl Bound {
    fn verdict(self, figures: &Figures<'_>) -> String {
        let kept = figures.allocations <= f64::from(self.allocations)
            && figures
                .instructions
                .is_none_or(|count| count <= f64::from(self.instructions));
        format!(
            "{} and {}: {}",
            self.instructions,
            self.allocations,
            if kept { "kept" } else { "EXCEEDED" },
        )
    }
}
