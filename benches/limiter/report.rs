//! Printing the figures.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The answer of one part.
pub(crate) struct Table {
    /// What is counted, in a few words.
    pub(crate) about: String,
    pub(crate) rows: Vec<Row>,
}

/// What was measured of one case. The rows of a table have the same figures.
pub(crate) struct Row {
    pub(crate) case: &'static str,
    /// What it stands for, in a few words.
    pub(crate) about: &'static str,
    pub(crate) figures: Vec<Figure>,
}

/// One number.
pub(crate) struct Figure {
    name: &'static str,
    /// `None` where it cannot be measured, or means nothing.
    value: Option<f64>,
    /// What it may be at most.
    bound: Option<f64>,
}

/// One object of the array.
#[derive(Serialize)]
struct Object<'a> {
    part: &'a str,
    case: &'a str,
    #[serde(flatten)]
    figures: Map<String, Value>,
    bounds: Map<String, Value>,
    kept: Option<bool>,
}

/// Prints a JSON array with an object for each row.
pub(crate) fn json(tables: &[(&str, Table)]) {
    let mut objects = Vec::new();
    for (part, table) in tables {
        for row in &table.rows {
            let mut figures = Map::new();
            let mut bounds = Map::new();
            for figure in &row.figures {
                figures.insert(figure.name.to_owned(), json!(figure.value.map(rounded)));
                if let Some(bound) = figure.bound {
                    bounds.insert(figure.name.to_owned(), json!(bound));
                }
            }
            objects.push(Object {
                part,
                case: row.case,
                figures,
                bounds,
                kept: row.kept(),
            });
        }
    }
    let array = serde_json::to_string_pretty(&objects).expect("numbers and names");
    println!("{array}");
}

/// Prints a table for people.
pub(crate) fn table(part: &str, table: &Table) {
    println!("{part}: {}", table.about);
    println!();
    let Some(first) = table.rows.first() else {
        return;
    };
    print!("{:26}", "case");
    for figure in &first.figures {
        print!("{:>width$}", figure.title(), width = figure.width());
    }
    println!("  {:44}", "bound");
    for row in &table.rows {
        print!("{:26}", row.case);
        for figure in &row.figures {
            let value = figure.value.map_or_else(|| "-".to_owned(), text);
            print!("{value:>width$}", width = figure.width());
        }
        println!("  {:44}{}", row.verdict(), row.about);
    }
    println!();
}

/// As many digits as mean something.
fn rounded(value: f64) -> f64 {
    let scale = 10_f64.powi(digits(value));
    // Adding zero turns a negative zero into zero.
    (value * scale).round() / scale + 0.0
}

fn text(value: f64) -> String {
    let value = rounded(value);
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    format!("{value:.*}", usize::try_from(digits(value)).unwrap_or(0))
}

fn digits(value: f64) -> i32 {
    match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        1.0.. => 2,
        _ => 4,
    }
}

// === impl Row ===

impl Row {
    /// Whether every bound is kept; `None` without any bound.
    fn kept(&self) -> Option<bool> {
        let mut bounded = self.figures.iter().filter_map(Figure::kept).peekable();
        bounded.peek()?;
        Some(bounded.all(|kept| kept))
    }

    fn verdict(&self) -> String {
        let bounds: Vec<String> = self
            .figures
            .iter()
            .filter_map(|figure| Some(format!("{} {}", figure.title(), figure.bound?)))
            .collect();
        match self.kept() {
            None => String::new(),
            Some(kept) => format!(
                "{}: {}",
                bounds.join(", "),
                if kept { "kept" } else { "EXCEEDED" },
            ),
        }
    }
}

// === impl Figure ===

impl Figure {
    pub(crate) fn new(name: &'static str, value: impl Into<Option<f64>>) -> Self {
        Self {
            name,
            value: value.into(),
            bound: None,
        }
    }

    pub(crate) fn at_most(mut self, bound: impl Into<Option<f64>>) -> Self {
        self.bound = bound.into();
        self
    }

    /// `None` without a bound, or without a value to hold against it.
    fn kept(&self) -> Option<bool> {
        Some(self.value? <= self.bound?)
    }

    fn title(&self) -> String {
        self.name.replace('_', " ")
    }

    fn width(&self) -> usize {
        self.name.len().max(7) + 3
    }
}
