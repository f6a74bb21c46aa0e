//! The timeline: every request, one panel for each strategy.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::run::{Run, Sent};
use crate::scenario::{Kind, MINUTE, ORDERS, REQUESTS_A_MINUTE, SWEEP};
use crate::tally::Tally;

mod mark;

use self::mark::{Mark, marks};

/// The picture cannot be written.
#[derive(Debug)]
pub(crate) struct PictureError {
    path: PathBuf,
    source: io::Error,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

const SIZE: (u32, u32) = (1200, 1020);
const HEAD: u32 = 140;
const FOOT: u32 = 34;
const LEFT: u32 = 96;
const RIGHT: u32 = 24;
const INK: RGBColor = RGBColor(0x33, 0x3a, 0x40);
const FAINT: RGBColor = RGBColor(0xe3, 0xe6, 0xe8);
/// The way of a call from when it was due to its last request.
const ORDER_TRAIL: RGBColor = RGBColor(0xb4, 0xba, 0xbf);
const QUERY_TRAIL: RGBColor = RGBColor(0xd9, 0xe4, 0xee);

/// Rows of queries are this many units apart, those of orders further, with a gap between.
const QUERY_STEP: f64 = 1.0;
const ORDER_STEP: f64 = 7.0;
const GAP: f64 = 14.0;

/// Finds out whether the picture can be written, and makes its directory.
pub(crate) fn check(path: &Path) -> Result<(), PictureError> {
    let parent = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(parent)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(path))
        .map(drop)
        .map_err(|source| PictureError::new(path, source))
}

/// Draws the picture and writes it.
pub(crate) fn draw(path: &Path, seed: u64, runs: &[Run]) -> Drawn {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, rest) = root.split_vertically(HEAD);
        let (body, foot) = rest.split_vertically(SIZE.1 - HEAD - FOOT);
        draw_head(&head, seed)?;
        let last = runs.iter().flat_map(|run| &run.sent).map(seconds);
        let end = last.fold(1.0, f64::max) * 1.02;
        for (panel, run) in body.split_evenly((runs.len(), 1)).iter().zip(runs) {
            draw_panel(panel, run, end)?;
        }
        draw_foot(&foot)?;
        root.present()?;
    }
    fs::write(path, svg).map_err(|source| PictureError::new(path, source))?;
    Ok(())
}

fn draw_head(area: &Area<'_>, seed: u64) -> Drawn {
    let title = "A market opens: every request, as the venue saw it";
    area.draw_text(title, &bold(24), (24, 14))?;
    let note =
        format!("one row for each query and each order, with a line while it waits; seed {seed}");
    area.draw_text(&note, &text(15), (650, 21))?;
    for ((name, marks), y) in Mark::LEGEND.into_iter().zip([54, 80, 106]) {
        area.draw_text(name, &bold(15), (24, y))?;
        let mut x = i32::try_from(LEFT)?;
        for mark in marks {
            area.draw(&mark.at((x + 6, y + 8)))?;
            area.draw_text(mark.meaning(), &text(15), (x + 18, y))?;
            let (width, _) = area.estimate_text_size(mark.meaning(), &text(15))?;
            x += i32::try_from(width)? + 40;
        }
    }
    Ok(())
}

fn draw_foot(area: &Area<'_>) -> Drawn {
    let label = format!(
        "seconds since the market opened (the venue allows {REQUESTS_A_MINUTE} requests in any {} s)",
        MINUTE.as_secs()
    );
    let centred = text(15).pos(Pos::new(HPos::Center, VPos::Top));
    let middle = i32::try_from((LEFT + SIZE.0 - RIGHT) / 2)?;
    area.draw_text(&label, &centred, (middle, 2))?;
    Ok(())
}

fn draw_panel(area: &Area<'_>, run: &Run, end: f64) -> Drawn {
    let tally = Tally::of(run);
    let verdict = format!(
        "{} of {ORDERS} orders placed, {} of them twice; {} unknown, {} lost from view",
        tally.orders_applied, tally.applied_twice, tally.unknown, tally.lost,
    );
    area.draw_text(run.strategy, &bold(18), (24, 4))?;
    area.draw_text(&verdict, &text(15), (170, 6))?;

    let mut chart = ChartBuilder::on(area)
        .margin_top(28)
        .margin_right(RIGHT)
        .set_label_area_size(LabelAreaPosition::Left, LEFT)
        .set_label_area_size(LabelAreaPosition::Bottom, 24)
        .build_cartesian_2d(0.0..end, -GAP / 2.0..top() + GAP / 2.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT)
        .axis_style(INK)
        .x_label_formatter(&|x| format!("{x:.1}"))
        .label_style(text(14))
        .draw()?;

    let plot = chart.plotting_area();
    let side = text(15).pos(Pos::new(HPos::Right, VPos::Center));
    for (name, from, to) in [
        (format!("{SWEEP} queries"), 0.0, row(Kind::Query, SWEEP)),
        (format!("{ORDERS} orders"), row(Kind::Order, 0), top()),
    ] {
        let (x, y) = plot.map_coordinate(&(0.0, f64::midpoint(from, to)));
        area.draw_text(&name, &side, (x - 12, y - area.get_pixel_range().1.start))?;
    }
    // The last of a call replaces those before it.
    let last: HashMap<_, _> = run.sent.iter().map(|sent| (&sent.call, sent)).collect();
    let mut last: Vec<_> = last.into_values().collect();
    last.sort_by_key(|sent| (sent.at, &sent.call));
    for sent in last {
        let trail = match sent.kind {
            Kind::Query => QUERY_TRAIL,
            Kind::Order => ORDER_TRAIL,
            Kind::Question | Kind::LogIn => continue,
        };
        let y = row(sent.kind, sent.row);
        let way = [(sent.due.as_secs_f64(), y), (seconds(sent), y)];
        plot.draw(&PathElement::new(way, trail))?;
    }
    for (mark, sent) in marks(run) {
        plot.draw(&mark.at((seconds(sent), row(sent.kind, sent.row))))?;
    }
    Ok(())
}

/// Where a row lies: queries below, orders above.
fn row(kind: Kind, number: usize) -> f64 {
    let number = u32::try_from(number).map_or(0.0, f64::from);
    match kind {
        Kind::Query => number * QUERY_STEP,
        Kind::Order | Kind::Question | Kind::LogIn => {
            row(Kind::Query, SWEEP) + GAP + number * ORDER_STEP
        }
    }
}

fn top() -> f64 {
    row(Kind::Order, ORDERS)
}

fn seconds(sent: &Sent) -> f64 {
    sent.at.as_secs_f64()
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&SIZE).color(&INK)
}

fn bold(size: u32) -> TextStyle<'static> {
    ("sans-serif", size, FontStyle::Bold)
        .into_text_style(&SIZE)
        .color(&INK)
}

// === impl PictureError ===

impl PictureError {
    fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self { path, source }
    }
}

impl fmt::Display for PictureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the picture to {}", self.path.display())
    }
}

impl Error for PictureError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
