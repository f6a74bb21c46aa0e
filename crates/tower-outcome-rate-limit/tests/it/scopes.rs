//! Scopes and limits that cannot work are refused when they are built.

use http::{Method, request};
use tower_outcome_core::ConfigError;
use tower_outcome_rate_limit::{
    Budget, Class, Cost, KeyedBudget, Limit, RateLimitLayer, Routes, Scope, Ticket, Tickets,
};

use crate::support::{exact, secs};

/// Twenty, of which a sweep leaves four.
fn twenty() -> Budget {
    exact("account")
        .limit(Limit::sliding("requests", 100, secs(1)))
        .limit(Limit::sliding("weight", 20, secs(1)))
        .class(Class::new("order"))
        .class(Class::new("sweep").leave_percent(20))
        .build()
        .unwrap()
}

fn weight(units: u32) -> Ticket {
    Ticket::new().cost(Cost::in_order([1, units]))
}

fn build(tickets: impl Tickets + 'static) -> Result<RateLimitLayer, ConfigError> {
    let scope = Scope::of(twenty()).tickets(tickets);
    RateLimitLayer::builder(scope).build()
}

fn table(ticket: Ticket) -> Routes {
    Routes::new()
        .route(Method::POST, "/orders", weight(1))
        .any("/charts", ticket)
}

#[test]
fn a_route_that_can_never_fit_is_refused_with_limit_cost_and_capacity() {
    build(table(weight(20))).unwrap();
    let error = build(table(weight(21))).unwrap_err().to_string();
    for part in ["21", "\"weight\"", "20"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_route_may_cost_no_more_than_its_class_may_use() {
    build(table(weight(16).class(1))).unwrap();
    build(table(weight(17).class(0))).unwrap();
    let error = build(table(weight(17).class(1))).unwrap_err().to_string();
    for part in ["17", "\"weight\"", "16", "\"sweep\""] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn what_matches_no_route_has_to_fit_too() {
    build(Routes::new().otherwise(weight(20))).unwrap();
    assert!(build(Routes::new().otherwise(weight(21))).is_err());
}

#[test]
fn a_closure_knows_no_ticket_beforehand() {
    build(|_: &request::Parts| weight(21)).unwrap();
}

#[test]
fn a_route_that_can_never_fit_the_budget_of_any_key_is_refused() {
    let accounts = KeyedBudget::<String>::try_new(exact("account").limit(Limit::sliding(
        "weight",
        20,
        secs(1),
    )))
    .unwrap();
    let build = |units| {
        let scope = Scope::keyed(accounts.clone(), |head: &request::Parts| {
            head.uri.path().to_owned()
        });
        let routes = Routes::new().any("*", Ticket::new().cost(Cost::in_order([units])));
        RateLimitLayer::builder(scope.tickets(routes)).build()
    };
    build(20).unwrap();
    let error = build(21).unwrap_err().to_string();
    assert!(error.contains("21"), "{error}");
    assert!(accounts.is_empty(), "no key was made for it");
}

/// A request that holds a unit while it waits for another of the same budget waits for itself.
#[test]
fn a_budget_within_itself_is_refused() {
    let account = twenty();
    let error = RateLimitLayer::builder(account.clone())
        .within(account.clone())
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("account"), "{error}");
    let error = RateLimitLayer::builder(account.clone())
        .within(twenty())
        .within(Scope::of(account))
        .build();
    assert!(error.is_err());
}

#[test]
fn two_budgets_of_one_name_may_be_nested() {
    RateLimitLayer::builder(twenty())
        .within(twenty())
        .build()
        .unwrap();
}

#[test]
fn a_burst_of_what_is_no_bucket_and_an_offset_of_what_is_not_aligned_are_refused() {
    let second = secs(1);
    for (field, limit) in [
        ("limit.burst", Limit::sliding("odd", 1, second).burst(3)),
        ("limit.burst", Limit::aligned("odd", 1, second).burst(3)),
        ("limit.burst", Limit::spacing("odd", second).burst(3)),
        (
            "limit.offset",
            Limit::sliding("odd", 1, second).offset(second),
        ),
        (
            "limit.offset",
            Limit::token_bucket("odd", 1, second).offset(second),
        ),
        ("limit.offset", Limit::spacing("odd", second).offset(second)),
    ] {
        let error = exact("key").limit(limit.clone()).build().unwrap_err();
        assert_eq!(error.field(), field, "{limit:?}");
        assert!(error.value().contains("odd"), "{error}");
    }
}

#[test]
fn a_limit_does_not_change_into_one_with_a_setting_that_it_does_not_have() {
    let odd = Limit::sliding("weight", 10, secs(1)).burst(3);
    assert!(twenty().reconfigure(&odd).is_err());
}
