//! The table, and what to see in it.

use std::iter;
use std::time::Duration;

use crate::args::Args;
use crate::run::Run;
use crate::scenario::ORDERS;
use crate::strategy::Belief;
use crate::tally::Tally;

/// What each row says, and how it is read off a tally.
type Row = (&'static str, fn(&Tally) -> String);

const ROWS: [Row; 13] = [
    ("requests", |tally| tally.requests.to_string()),
    ("of these answered 429", |tally| {
        tally.rate_limited.to_string()
    }),
    ("of these with a stale signature", |tally| {
        tally.stale.to_string()
    }),
    ("log-ins", |tally| tally.log_ins.to_string()),
    ("bans", |tally| tally.banned.to_string()),
    ("orders placed", |tally| {
        format!("{} of {ORDERS}", tally.orders_applied)
    }),
    ("orders placed TWICE", |tally| {
        tally.applied_twice.to_string()
    }),
    ("orders LOST from view", |tally| tally.lost.to_string()),
    ("orders asked about", |tally| {
        or_dash(tally.asked_about.map(|asked| asked.to_string()))
    }),
    ("orders left unknown", |tally| tally.unknown.to_string()),
    ("last order placed after", |tally| {
        let last = Duration::from_millis(tally.last_order_ms);
        format!("{:.1} s", last.as_secs_f64())
    }),
    ("longest wait of an order", |tally| {
        or_dash(tally.order_longest_wait_ms.map(|wait| format!("{wait} ms")))
    }),
    ("limit used while sweep waits", |tally| {
        or_dash(
            tally
                .limit_used_percent
                .map(|percent| format!("{percent:.1} %")),
        )
    }),
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
        "\nnaive and tower-retry send an order again whenever no good answer comes back\n\
         in time. Where the venue had acted, that placed it twice ({} and {} orders). Placed\n\
         orders that they gave up on are lost from view ({} and {}). Calling on while refused\n\
         got them banned ({} and {} times). They sign a request once, and {} and {} came too\n\
         late for their signature. When the session died, they logged in {} and {} times.",
        naive.applied_twice,
        tower_retry.applied_twice,
        naive.lost,
        tower_retry.lost,
        naive.banned,
        tower_retry.banned,
        naive.stale,
        tower_retry.stale,
        naive.log_ins.saturating_sub(1),
        tower_retry.log_ins.saturating_sub(1),
    );
    println!(
        "\ntower-outcome stays within the limit: the sweep waits for it, orders do not. It\n\
         signs each attempt when it goes out, however long it has waited, and sends an order\n\
         again only if the venue provably did not act on it, however long no answer comes.\n\
         {} times nobody on this side could know what had become of an order. It asked the venue,\n\
         until that was certain; {} orders are left unknown.",
        ours.asked_about.unwrap_or_default(),
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
    let names = line("", tallies.iter().map(|tally| tally.name.to_owned()));
    let rows = ROWS.iter();
    let rows = rows.map(|(label, read)| line(label, tallies.iter().map(read)));
    iter::once(names).chain(rows)
}

/// The label to the left, the values to the right under the names.
fn line(label: &str, values: impl Iterator<Item = String>) -> String {
    let mut line = format!("{label:<31}");
    for value in values {
        line.push_str(&format!("{value:>15}"));
    }
    line
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}
