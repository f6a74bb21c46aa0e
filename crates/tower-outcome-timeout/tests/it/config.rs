//! Bounds that cannot work are refused when they are built.

use std::time::Duration;

use tower_outcome_core::ConfigError;
use tower_outcome_timeout::{AttemptBounds, ConnectionLimitLayer, Timeouts};

use crate::support::secs;

fn refused<T>(built: Result<T, ConfigError>) -> ConfigError {
    match built {
        Ok(_) => panic!("accepted"),
        Err(error) => error,
    }
}

#[test]
fn a_bound_of_zero_is_refused_by_name() {
    let zero = Duration::ZERO;
    for (field, built) in [
        ("call", Timeouts::builder().call(zero).build()),
        ("attempt", Timeouts::builder().attempt(zero).build()),
        ("connect", Timeouts::builder().connect(zero).build()),
        ("head", Timeouts::builder().head(zero).build()),
        ("write_idle", Timeouts::builder().write_idle(zero).build()),
        ("read_idle", Timeouts::builder().read_idle(zero).build()),
        ("acquire", Timeouts::builder().acquire(zero).build()),
    ] {
        let error = refused(built);
        assert_eq!((error.field(), error.value()), (field, "0ns"));
    }
    for (field, built) in [
        ("attempt", AttemptBounds::builder().attempt(zero).build()),
        ("head", AttemptBounds::builder().head(zero).build()),
        (
            "write_idle",
            AttemptBounds::builder().write_idle(zero).build(),
        ),
        (
            "read_idle",
            AttemptBounds::builder().read_idle(zero).build(),
        ),
    ] {
        assert_eq!(refused(built).field(), field);
    }
}

#[test]
fn a_bound_above_the_one_around_it_is_refused_and_both_are_named() {
    let start = Timeouts::builder;
    for (text, built) in [
        (
            "attempt is 31s (call is 30s), expected at most `call`",
            start().attempt(secs(31)).build(),
        ),
        (
            "attempt is 10s (call is 5s), expected at most `call`",
            start().call(secs(5)).attempt(secs(10)).build(),
        ),
        (
            "connect is 11s (attempt is 10s), expected at most `attempt`",
            start().connect(secs(11)).build(),
        ),
        (
            "connect is 31s (call is 30s), expected at most `call`",
            start().attempt(None).connect(secs(31)).build(),
        ),
        (
            "head is 11s (attempt is 10s), expected at most `attempt`",
            start().head(secs(11)).build(),
        ),
        (
            "write_idle is 11s (attempt is 10s), expected at most `attempt`",
            start().write_idle(secs(11)).build(),
        ),
    ] {
        assert_eq!(refused(built).to_string(), text);
    }
    let bounds = AttemptBounds::builder().attempt(secs(1)).head(secs(2));
    let text = "head is 2s (attempt is 1s), expected at most `attempt`";
    assert_eq!(refused(bounds.build()).to_string(), text);
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let error = refused(ConnectionLimitLayer::builder(0).build());
    assert_eq!((error.field(), error.value()), ("limit", "0"));
    let error = refused(ConnectionLimitLayer::builder(usize::MAX).build());
    assert_eq!(error.field(), "limit");
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let timeouts = Timeouts::builder().build().unwrap();
    assert_eq!(timeouts, Timeouts::new());
    assert_eq!(timeouts.call(), Some(secs(30)));
    assert_eq!(timeouts.attempt(), Some(secs(10)));
    assert_eq!(timeouts.connect(), Some(Duration::from_millis(3_100)));
    assert_eq!(timeouts.read_idle(), Some(secs(20)));
    assert_eq!(timeouts.acquire(), Some(secs(5)));
    assert_eq!((timeouts.head(), timeouts.write_idle()), (None, None));
}

#[test]
fn a_default_gives_way_to_a_shorter_bound_around_it() {
    let timeouts = Timeouts::builder().call(secs(2)).build().unwrap();
    for bound in [
        timeouts.attempt(),
        timeouts.connect(),
        timeouts.read_idle(),
        timeouts.acquire(),
    ] {
        assert_eq!(bound, Some(secs(2)));
    }
    let all_off = Timeouts::builder()
        .call(None)
        .attempt(None)
        .build()
        .unwrap();
    assert_eq!((all_off.call(), all_off.attempt()), (None, None));
    assert_eq!(all_off.connect(), Some(Duration::from_millis(3_100)));
}
