//! Configuration that is refused, naming the field and the value.

use std::time::Duration;

use tower_outcome_core::HttpClassifier;
use tower_outcome_retry::{Backoff, Hints, RetryLayer, RetryLayerBuilder};

fn refused(builder: RetryLayerBuilder<HttpClassifier>) -> (String, String) {
    let error = builder.build().unwrap_err();
    assert!(error.to_string().contains(error.value()));
    (error.field().into(), error.value().into())
}

#[test]
fn no_attempts_at_all() {
    assert_eq!(
        refused(RetryLayer::builder().max_attempts(0)),
        ("max_attempts".into(), "0".into())
    );
}

#[test]
fn a_cap_below_the_base() {
    let backoff = Backoff::new().cap(Duration::from_millis(49));
    assert_eq!(
        refused(RetryLayer::builder().backoff(backoff)),
        ("backoff.cap".into(), "49ms".into())
    );
    let backoff = Backoff::new().cap(Duration::from_millis(999));
    assert_eq!(
        refused(RetryLayer::builder().backoff(backoff)),
        ("backoff.cap".into(), "999ms".into())
    );
}

#[test]
fn a_backoff_that_shrinks_to_nothing() {
    assert_eq!(
        refused(RetryLayer::builder().backoff(Backoff::new().factor(0))),
        ("backoff.factor".into(), "0".into())
    );
}

#[test]
fn no_time_for_any_attempt() {
    assert_eq!(
        refused(RetryLayer::builder().elapsed(Duration::ZERO)),
        ("elapsed".into(), "0ns".into())
    );
}

#[test]
fn a_floor_above_the_longest_wait() {
    let hints = Hints::new()
        .longest(Duration::from_millis(1))
        .throttled_floor(Duration::from_millis(2));
    assert_eq!(
        refused(RetryLayer::builder().hints(hints)),
        ("hints.longest".into(), "1ms".into())
    );
}
