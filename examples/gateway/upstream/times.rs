//! The bounds of calls and attempts.

use std::time::Duration;

use tower_outcome::{ConfigError, Timeouts, timeout::TimeoutsBuilder};

use super::Section;

/// Sets one bound.
type Set = fn(TimeoutsBuilder, Option<Duration>) -> TimeoutsBuilder;

/// The bounds within those of the call and the attempt. A file may set them, or switch them off.
const BOUNDS: [(&str, Set); 5] = [
    ("connect", |bounds, bound| bounds.connect(bound)),
    ("head", |bounds, bound| bounds.head(bound)),
    ("write_idle", |bounds, bound| bounds.write_idle(bound)),
    ("read_idle", |bounds, bound| bounds.read_idle(bound)),
    ("acquire", |bounds, bound| bounds.acquire(bound)),
];

/// Reads `[upstream.timeouts]`. What it leaves out has the layers' defaults.
pub(super) fn read(section: Option<&Section<'_>>) -> Result<Timeouts, ConfigError> {
    let Some(section) = section else {
        return Ok(Timeouts::new());
    };
    // Whoever asks for more gets as much, so it cannot be off.
    let call = section.span("call").filter(|call| {
        if call.is_zero() {
            section.wrong("call", "0s, expected more than zero");
        }
        !call.is_zero()
    });
    let attempt = section.span_or_off("attempt");
    let mut within = Timeouts::builder();
    if let Some(call) = call {
        within = within.call(call);
    }
    // Each by itself, so that one that is wrong does not hide the next.
    if let Some(attempt) = attempt {
        match within.attempt(attempt).build() {
            Ok(_) => within = within.attempt(attempt),
            Err(error) => section.refused(&error),
        }
    }
    let mut all = within;
    for (name, set) in BOUNDS {
        let Some(bound) = section.span_or_off(name) else {
            continue;
        };
        if let Err(error) = set(within, bound).build() {
            section.refused(&error);
        }
        all = set(all, bound);
    }
    all.build()
}
