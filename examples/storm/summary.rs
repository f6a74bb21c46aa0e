//! The table, and what to see in it.

use std::time::Duration;

use crate::args::Args;
use crate::run::Run;
use crate::scenario::ORDERS;
use crate::strategy::Belief;
use crate::tally::Tally;

/// Two lines, so that a terminal of 80 columns shows the table.
const HEADINGS: [[&str; 9]; 2] = [
    ["", "", "", "", "orders", "APPLIED", "", "lost from", "last"],
    [
        "strategy", "requests", "429s", "bans", "applied", "TWICE", "unknown", "view", "order",
    ],
];

/// Prints the table, what to see in it, and where the picture is.
pub(crate) fn print(args: &Args, runs: &[Run; 3], tallies: &[Tally; 3]) {
    println!(
        "\nOne market opening, three ways to send its requests (seed {}):\n",
        args.seed
    );
    for row in table(tallies) {
        println!("{row}");
    }
    let [naive, tower_retry, ours] = tallies;
    println!(
        "\nnaive and tower-retry send an order again whenever no good answer comes back.\n\
         Where the venue had acted, that placed it twice ({} and {} orders). Placed orders\n\
         that they gave up on are lost from view ({} and {}). Calling on while refused got\n\
         them banned ({} and {} times).",
        naive.applied_twice,
        tower_retry.applied_twice,
        naive.lost,
        tower_retry.lost,
        naive.banned,
        tower_retry.banned,
    );
    println!(
        "\ntower-outcome waits as it is told, and sends an order again only if the venue\n\
         provably did not act on it. Of {} orders it says that nobody on this side can\n\
         know; the venue, asked what became of them, knows:",
        ours.unknown,
    );
    for (id, order) in runs.iter().flat_map(|run| &run.orders) {
        if order.belief == Belief::Unknown {
            println!("  {id}  {}", word(order.asked));
        }
    }
    println!("\nEvery request, drawn: {}", args.picture.display());
}

/// What the venue said of an order.
fn word(asked: Option<u32>) -> &'static str {
    match asked {
        Some(0) => "not placed; may be placed again",
        Some(1) => "placed",
        Some(_) => "placed more than once",
        None => "no answer yet; ask again",
    }
}

fn table(tallies: &[Tally]) -> impl Iterator<Item = String> {
    let headings = HEADINGS.map(|line| line.map(str::to_owned));
    headings
        .into_iter()
        .chain(tallies.iter().map(cells))
        .map(aligned)
}

fn cells(tally: &Tally) -> [String; 9] {
    let last_order = Duration::from_millis(tally.last_order_ms);
    [
        tally.name.to_owned(),
        tally.requests.to_string(),
        tally.rate_limited.to_string(),
        tally.banned.to_string(),
        format!("{}/{ORDERS}", tally.orders_applied),
        tally.applied_twice.to_string(),
        tally.unknown.to_string(),
        tally.lost.to_string(),
        format!("{:.1} s", last_order.as_secs_f64()),
    ]
}

/// The name to the left, the numbers to the right under their headings.
fn aligned([name, numbers @ ..]: [String; 9]) -> String {
    let mut line = format!("{name:<13}");
    for (column, number) in (1..).zip(&numbers) {
        let width = HEADINGS.map(|line| line[column].len());
        let width = width[0].max(width[1]) + 2;
        line.push_str(&format!("{number:>width$}"));
    }
    line
}
