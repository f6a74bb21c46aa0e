//! Settings that cannot work are refused when the layer is built.

use std::time::Duration;

use tower_outcome_reconcile::{ReconcileLayerBuilder, Schedule};

use crate::support::*;

fn refused(
    change: impl FnOnce(ReconcileLayerBuilder<Script>) -> ReconcileLayerBuilder<Script>,
) -> (String, String) {
    let error = change(builder(Script::new([]))).build().unwrap_err();
    (error.field().to_owned(), error.value().to_owned())
}

fn schedule(schedule: Schedule) -> (String, String) {
    refused(|builder| builder.schedule(schedule))
}

#[test]
fn each_names_its_field_and_value() {
    let of = |field: &str, value: &str| (field.to_owned(), value.to_owned());
    assert_eq!(refused(|b| b.misses(0)), of("misses", "0"));
    assert_eq!(refused(|b| b.min_age(60 * SECOND)), of("min_age", "60s"));
    assert_eq!(
        refused(|b| b.retention(10 * SECOND)),
        of("retention", "10s")
    );
    let new = Schedule::new;
    assert_eq!(
        schedule(new().first(Duration::ZERO)),
        of("schedule.first", "0ns")
    );
    assert_eq!(
        schedule(new().each(Duration::ZERO)),
        of("schedule.each", "0ns")
    );
    assert_eq!(
        schedule(new().deadline(Duration::ZERO)),
        of("schedule.deadline", "0ns")
    );
    assert_eq!(schedule(new().factor(0)), of("schedule.factor", "0"));
    assert_eq!(schedule(new().cap(SECOND / 4)), of("schedule.cap", "250ms"));
    assert_eq!(
        schedule(new().deadline(SECOND / 4)),
        of("schedule.deadline", "250ms")
    );
}

#[test]
fn the_defaults_are_valid() {
    assert!(builder(Script::new([])).build().is_ok());
}
