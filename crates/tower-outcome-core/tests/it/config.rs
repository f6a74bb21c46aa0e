//! Configuration that is refused, naming the field and the value.

use std::error::Error;

use tower_outcome_core::{
    ConfigError, GrpcClassifier, GrpcClassifierBuilder, HttpClassifier, HttpClassifierBuilder,
    Judged,
};

use crate::support::status;

/// The field and the value, once the error has been found to be fit to print.
fn told(error: &ConfigError) -> (&'static str, String) {
    let text = error.to_string();
    for part in [error.field(), error.value(), error.expected()] {
        assert!(!part.is_empty() && text.contains(part), "{text}");
    }
    assert!(!text.ends_with('.'), "{text}");
    assert!(error.source().is_none());
    (error.field(), error.value().to_owned())
}

fn http(builder: HttpClassifierBuilder) -> (&'static str, String) {
    told(&builder.build().unwrap_err())
}

fn grpc(builder: GrpcClassifierBuilder) -> (&'static str, String) {
    told(&builder.build().unwrap_err())
}

#[test]
fn a_set_of_no_statuses() {
    let builder = HttpClassifier::builder;
    let empty = "{}".to_owned();
    assert_eq!(http(builder().transient([])), ("transient", empty.clone()));
    assert_eq!(
        http(builder().refuses_before_acting([])),
        ("refuses_before_acting", empty.clone())
    );
    assert_eq!(http(builder().auth_rejected([])), ("auth_rejected", empty));
}

#[test]
fn a_status_that_is_no_failure_or_is_out_of_range() {
    let builder = HttpClassifier::builder;
    for code in [100, 200, 399, 656, 700, 999] {
        let set = || [status(503), status(code)];
        let value = code.to_string();
        assert_eq!(
            http(builder().transient(set())),
            ("transient", value.clone())
        );
        assert_eq!(
            http(builder().refuses_before_acting(set())),
            ("refuses_before_acting", value.clone())
        );
        assert_eq!(
            http(builder().auth_rejected(set())),
            ("auth_rejected", value)
        );
    }
    for code in [400, 655] {
        builder().transient([status(code)]).build().unwrap();
    }
}

#[test]
fn no_body_for_a_rule_that_needs_one() {
    let nothing = |_: Judged<'_>| None;
    let builder = || HttpClassifier::builder().body_limit(0);
    assert_eq!(
        http(builder().body_rule(nothing)),
        ("body_limit", "0".to_owned())
    );
    // Nobody reads a body where no rule needs one.
    builder().head_rule(nothing).build().unwrap();
    builder().body_limit(1).body_rule(nothing).build().unwrap();
}

#[test]
fn the_first_mistake_is_the_one_that_is_told() {
    let builder = HttpClassifier::builder()
        .auth_rejected([status(200)])
        .transient([status(700)])
        .body_limit(0);
    assert_eq!(http(builder), ("auth_rejected", "200".to_owned()));
}

#[test]
fn a_path_that_names_no_method() {
    for path in [
        "",
        "/",
        "Get",
        "pkg.S/Get",
        "/pkg.S",
        "/pkg.S/",
        "//Get",
        "/pkg.S/Get/",
    ] {
        let value = format!("{path:?}");
        let builder = GrpcClassifier::builder().repeatable([path]);
        assert_eq!(grpc(builder), ("repeatable", value.clone()));
        let builder = GrpcClassifier::builder().unary(["/pkg.S/Put", path]);
        assert_eq!(grpc(builder), ("unary", value));
    }
    let builder = GrpcClassifier::builder().repeatable(["/pkg.S/Get".to_owned()]);
    builder.build().unwrap();
}

#[test]
fn a_grpc_status_that_is_none_or_is_a_success() {
    for code in [0, 17, 32, u8::MAX] {
        let builder = GrpcClassifier::builder().transient([14, code]);
        assert_eq!(grpc(builder), ("transient", code.to_string()));
    }
    let builder = GrpcClassifier::builder().transient([]);
    assert_eq!(grpc(builder), ("transient", "[]".to_owned()));
    GrpcClassifier::builder().transient(1..=16).build().unwrap();
}

#[test]
fn an_error_of_ones_own_making_reads_the_same() {
    let error = ConfigError::new("weight", Some(-1), "a weight of at least 1");
    assert_eq!(
        error.to_string(),
        "weight is Some(-1), expected a weight of at least 1"
    );
    assert_eq!(told(&error), ("weight", "Some(-1)".to_owned()));
}
