//! What limits of each kind let through, together and after a change.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower_outcome_rate_limit::{
    Budget, BudgetBuilder, Class, Cost, Guard, Limit, RefusedKind, Ticket,
};

use crate::support::{exact, ms, secs, settled, take, wait};

fn order() -> Ticket {
    Ticket::new().class(0)
}

fn of(limit: Limit) -> BudgetBuilder {
    exact("venue").limit(limit).guard(Guard::None)
}

/// How long it takes until a request of so many units can go.
fn free_in(budget: &Budget, units: u32) -> Duration {
    let now = Instant::now();
    match budget.try_acquire(&order().cost(Cost::in_order([units]))) {
        Ok(permit) => {
            permit.refund();
            Duration::ZERO
        }
        Err(refused) => refused.retry_after(now).unwrap(),
    }
}

/// How much is used, held and a phantom.
fn counts(budget: &Budget, limit: &str) -> (u32, u32, u32) {
    let snapshot = budget.snapshot();
    let limit = snapshot.limit(limit).unwrap();
    (limit.used, limit.held, limit.phantom)
}

// === kinds ===

#[tokio::test(start_paused = true)]
async fn a_bucket_lets_its_burst_go_and_then_its_rate() {
    let bucket = Limit::token_bucket("requests", 10, secs(1)).burst(30);
    let budget = of(bucket).build().unwrap();
    take(&budget, 30, order());
    assert_eq!(free_in(&budget, 1), ms(100));
    assert_eq!(free_in(&budget, 7), ms(700));
    for _ in 0..20 {
        let (waited, result) = wait(&budget, order()).await.unwrap();
        drop(result.unwrap());
        assert_eq!(waited, ms(100));
    }
    sleep(secs(2)).await;
    take(&budget, 20, order());
    assert_eq!(free_in(&budget, 1), ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_whose_rate_is_no_whole_number_loses_nothing() {
    let budget = of(Limit::token_bucket("requests", 7, secs(3)).burst(1))
        .build()
        .unwrap();
    let start = Instant::now();
    take(&budget, 1, order());
    for _ in 0..700 {
        sleep(free_in(&budget, 1)).await;
        take(&budget, 1, order());
    }
    // A timer is late by up to a millisecond each time.
    let lost = start.elapsed() - secs(300);
    assert!(lost <= ms(700), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn spacing_keeps_departures_apart_whatever_they_cost() {
    let budget = of(Limit::spacing("gap", ms(50))).build().unwrap();
    let waiters: Vec<_> = (1..=20)
        .map(|units| wait(&budget, order().cost(Cost::in_order([units]))))
        .collect();
    for (i, waiter) in (0..).zip(waiters) {
        let (waited, result) = waiter.await.unwrap();
        drop(result.unwrap());
        assert_eq!(waited, ms(50) * i);
    }
    assert_eq!(free_in(&budget, 1), ms(50));
    take(&budget, 1, order().cost(Cost::NOTHING));
}

#[tokio::test(start_paused = true)]
async fn the_tolerance_for_clocks_makes_windows_longer() {
    let budget = of(Limit::sliding("requests", 1, secs(1000)))
        .clock_tolerance(1000, ms(7))
        .build()
        .unwrap();
    take(&budget, 1, order());
    assert_eq!(free_in(&budget, 1), secs(1001) + ms(7));
}

#[tokio::test(start_paused = true)]
async fn a_window_of_many_units_forgets_up_to_a_thousandth_late_and_never_early() {
    let budget = of(Limit::sliding("requests", 1_000_000, secs(1024)))
        .build()
        .unwrap();
    let half = order().cost(Cost::in_order([500_000]));
    sleep(ms(10_300)).await;
    take(&budget, 1, half);
    sleep(ms(500)).await;
    take(&budget, 1, half);
    // Both are counted from the end of the second in which they went.
    assert_eq!(free_in(&budget, 1), ms(1_024_200));
    sleep(ms(1_024_199)).await;
    assert_eq!(counts(&budget, "requests"), (1_000_000, 0, 0));
    sleep(ms(1)).await;
    assert_eq!(counts(&budget, "requests"), (0, 0, 0));
}

// === several at once ===

#[tokio::test(start_paused = true)]
async fn who_is_blocked_on_one_limit_spends_nothing_of_another() {
    let budget = exact("venue")
        .limit(Limit::sliding("raw", 10, secs(1)))
        .limit(Limit::token_bucket("weight", 10, secs(1)))
        .limit(Limit::sliding("orders", 1, secs(10)))
        .build()
        .unwrap();
    let each = |raw, weight, orders| order().cost(Cost::in_order([raw, weight, orders]));
    budget.try_acquire(&each(1, 1, 1)).unwrap().responded();
    for _ in 0..100 {
        budget.try_acquire(&each(1, 1, 1)).unwrap_err();
    }
    let waiting = wait(&budget, each(1, 1, 1));
    settled().await;
    for limit in ["raw", "weight", "orders"] {
        assert_eq!(counts(&budget, limit), (1, 0, 0), "{limit}");
    }
    // One of each is kept for the one that waits.
    take(&budget, 8, each(1, 1, 0));
    budget.try_acquire(&each(1, 1, 0)).unwrap_err();
    assert_eq!(waiting.await.unwrap().0, secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_when_the_last_of_its_limits_lets_it() {
    let budget = exact("venue")
        .limit(Limit::sliding("raw", 1, secs(1)))
        .limit(Limit::token_bucket("weight", 1, secs(3)))
        .limit(Limit::spacing("gap", secs(2)))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 1, order());
    let (waited, result) = wait(&budget, order()).await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, secs(3));
}

// === reconfigure ===

#[tokio::test(start_paused = true)]
async fn a_limit_that_grows_lets_waiters_go_at_once() {
    let budget = of(Limit::sliding("requests", 10, secs(10)))
        .build()
        .unwrap();
    take(&budget, 10, order());
    let waiters: Vec<_> = (0..10).map(|_| wait(&budget, order())).collect();
    sleep(secs(1)).await;
    budget
        .reconfigure(&Limit::sliding("requests", 15, secs(10)))
        .unwrap();
    let mut waits = Vec::new();
    for waiter in waiters {
        waits.push(waiter.await.unwrap().0);
    }
    assert_eq!(waits[..5], [secs(1); 5]);
    assert_eq!(waits[5..], [secs(10); 5]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_shrinks_keeps_what_is_used() {
    let budget = of(Limit::sliding("requests", 10, secs(10)))
        .build()
        .unwrap();
    take(&budget, 5, order());
    sleep(secs(1)).await;
    take(&budget, 5, order());
    budget
        .reconfigure(&Limit::sliding("requests", 7, secs(10)))
        .unwrap();
    assert_eq!(counts(&budget, "requests"), (10, 0, 0));
    assert_eq!(free_in(&budget, 1), secs(9));
    assert_eq!(free_in(&budget, 3), secs(10));
    // Another window counts for what has gone already.
    budget
        .reconfigure(&Limit::sliding("requests", 7, secs(3)))
        .unwrap();
    assert_eq!(free_in(&budget, 1), secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_keeps_its_level_through_a_change_of_its_rate() {
    let bucket = |tokens| Limit::token_bucket("requests", tokens, secs(1)).burst(20);
    let budget = of(bucket(10)).build().unwrap();
    take(&budget, 20, order());
    budget.reconfigure(&bucket(100)).unwrap();
    assert_eq!(free_in(&budget, 1), ms(10));
    budget.reconfigure(&bucket(1)).unwrap();
    assert_eq!(free_in(&budget, 1), secs(1));
}

#[tokio::test(start_paused = true)]
async fn waiters_that_do_not_fit_any_more_are_refused_and_the_others_are_not() {
    let budget = of(Limit::sliding("requests", 10, secs(10)))
        .build()
        .unwrap();
    take(&budget, 10, order());
    let heavy = wait(&budget, order().cost(Cost::in_order([8])));
    let light = wait(&budget, order().cost(Cost::in_order([5])));
    sleep(secs(1)).await;
    budget
        .reconfigure(&Limit::sliding("requests", 5, secs(10)))
        .unwrap();
    let (waited, result) = heavy.await.unwrap();
    assert_eq!(waited, secs(1));
    let refused = result.unwrap_err();
    assert!(refused.is_final(), "{refused}");
    let (waited, result) = light.await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, secs(10));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_during_a_change_is_counted_after_it() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(10)))
        .build()
        .unwrap();
    let permit = budget
        .try_acquire(&order().cost(Cost::in_order([10])))
        .unwrap();
    budget
        .reconfigure(&Limit::sliding("requests", 4, secs(10)))
        .unwrap();
    assert_eq!(counts(&budget, "requests"), (0, 10, 0));
    permit.responded();
    assert_eq!(counts(&budget, "requests"), (10, 0, 0));
    assert_eq!(free_in(&budget, 4), secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_refund_after_a_change_to_coarser_counting_wedges_nothing() {
    let budget = of(Limit::sliding("requests", 10, secs(10)))
        .build()
        .unwrap();
    let permits: Vec<_> = (0..5)
        .map(|_| budget.try_acquire(&order()).unwrap())
        .collect();
    sleep(ms(1)).await;
    take(&budget, 2, order());
    budget
        .reconfigure(&Limit::sliding("requests", 1_000_000, secs(10)))
        .unwrap();
    sleep(ms(20)).await;
    take(&budget, 1, order());
    for permit in permits {
        permit.refund();
    }
    assert_eq!(counts(&budget, "requests"), (3, 0, 0));
    // What went before the change is forgotten, and what came after it is not.
    sleep(ms(9_990)).await;
    assert!(counts(&budget, "requests").0 <= 1);
    assert_eq!(free_in(&budget, 900_000), Duration::ZERO);
    sleep(ms(100)).await;
    assert_eq!(counts(&budget, "requests"), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_limit_becomes_aligned_and_sliding_again_but_no_bucket() {
    let budget = of(Limit::sliding("requests", 10, secs(10)))
        .build()
        .unwrap();
    take(&budget, 10, order());
    budget
        .reconfigure(&Limit::aligned("requests", 10, secs(10)))
        .unwrap();
    assert_eq!(free_in(&budget, 1), secs(10));
    let bucket = Limit::token_bucket("requests", 10, secs(10));
    let error = budget.reconfigure(&bucket).unwrap_err();
    assert!(error.to_string().contains("same kind"), "{error}");
    budget
        .reconfigure(&Limit::sliding("others", 10, secs(10)))
        .unwrap_err();
    budget
        .reconfigure(&Limit::sliding("requests", 0, secs(10)))
        .unwrap_err();
    assert_eq!(free_in(&budget, 1), secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_becomes_aligned_learns_the_clock_from_then_on() {
    let budget = of(Limit::sliding("requests", 10, secs(10)))
        .build()
        .unwrap();
    budget
        .reconfigure(&Limit::aligned("requests", 10, secs(10)))
        .unwrap();
    let now = Instant::now();
    for _ in 0..3 {
        budget.observe_date(now, now, 1_700_000_003);
    }
    take(&budget, 10, order());
    assert_eq!(free_in(&budget, 1), ms(7050));
}

// === bad input ===

#[test]
fn what_makes_no_sense_is_an_error_when_the_budget_is_built() {
    let day = secs(24 * 60 * 60);
    let fine = || exact("venue").limit(Limit::sliding("requests", 10, secs(1)));
    let bad: [(&str, BudgetBuilder); 19] = [
        ("no limit", exact("venue")),
        ("capacity", of(Limit::sliding("a", 0, secs(1)))),
        ("capacity", of(Limit::sliding("a", u32::MAX, secs(1)))),
        ("window", of(Limit::sliding("a", 1, Duration::ZERO))),
        ("window", of(Limit::sliding("a", 1, 400 * day + ms(1)))),
        ("period", of(Limit::aligned("a", 1, Duration::ZERO))),
        (
            "offset",
            of(Limit::aligned("a", 1, secs(1)).offset(secs(1))),
        ),
        ("tokens", of(Limit::token_bucket("a", 0, secs(1)))),
        ("burst", of(Limit::token_bucket("a", 1, secs(1)).burst(0))),
        ("per", of(Limit::token_bucket("a", 1, Duration::ZERO))),
        ("gap", of(Limit::spacing("a", Duration::ZERO))),
        (
            "burst that the guard eats",
            of(Limit::token_bucket("a", 10, secs(1))).guard(Guard::Fixed(secs(1))),
        ),
        ("name", of(Limit::sliding("", 1, secs(1)))),
        (
            "the same name",
            fine().limit(Limit::spacing("requests", secs(1))),
        ),
        (
            "nine limits",
            (0..9).fold(exact("venue"), |all, i| {
                all.limit(Limit::sliding(i.to_string(), 1, secs(1)))
            }),
        ),
        (
            "nine classes",
            (0..9).fold(fine(), |all, i| all.class(Class::new(i.to_string()))),
        ),
        (
            "all of it",
            fine().class(Class::new("a").leave_percent(100)),
        ),
        (
            "the same class",
            fine().class(Class::new("a")).class(Class::new("a")),
        ),
        (
            "less than above",
            fine()
                .class(Class::new("a").leave_percent(10))
                .class(Class::new("b").leave_percent(9)),
        ),
    ];
    for (what, builder) in bad {
        assert!(builder.build().is_err(), "{what}");
    }
    let longest = of(Limit::sliding("a", Limit::MAX_CAPACITY, 400 * day));
    longest.build().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_longest_window_overflows_nothing() {
    let window = Limit::MAX_WINDOW;
    let budget = exact("venue")
        .limit(Limit::sliding("sliding", Limit::MAX_CAPACITY, window))
        .limit(Limit::token_bucket("bucket", 1, window).burst(Limit::MAX_CAPACITY))
        .limit(Limit::spacing("gap", window))
        .guard(Guard::Fixed(secs(24 * 60 * 60)))
        .build()
        .unwrap();
    let most = Limit::MAX_CAPACITY - 1;
    take(&budget, 1, order().cost(Cost::in_order([most, most, 1])));
    let refused = budget.try_acquire(&order()).unwrap_err();
    assert!(refused.retry_after(Instant::now()).unwrap() >= window);
    let too_large = order().cost(Cost::in_order([u32::MAX, u32::MAX, u32::MAX]));
    let refused = budget.try_acquire(&too_large).unwrap_err();
    assert!(matches!(refused.kind(), RefusedKind::TooLarge { .. }));
}

#[test]
fn a_setting_of_another_kind_of_limit_is_an_error() {
    let built = |limit| of(limit).build().unwrap_err();
    let error = built(Limit::sliding("requests", 10, secs(1)).burst(20));
    assert_eq!(
        (error.field(), error.value()),
        ("limit.burst", "\"requests\"")
    );
    let error = built(Limit::token_bucket("requests", 10, secs(1)).offset(secs(1)));
    assert_eq!(error.field(), "limit.offset");
}
