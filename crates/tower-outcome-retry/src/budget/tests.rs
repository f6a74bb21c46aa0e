use proptest::prelude::*;

use super::*;

fn take(budget: &Budget) -> Option<Reservation> {
    budget.reserve(Reason::ServerError, Delivery::Answered)
}

#[test]
fn thirty_five_retries_in_a_row_and_no_more() {
    let budget = Budget::new();
    let held: Vec<_> = std::iter::from_fn(|| take(&budget)).collect();
    assert_eq!(held.len(), 35);
}

#[test]
fn waiting_retries_count() {
    let budget = Budget::ratio(20.0, 1).unwrap();
    let waiting = take(&budget);
    assert!(waiting.is_some());
    assert!(take(&budget).is_none());
}

#[test]
fn a_dropped_reservation_goes_back() {
    let budget = Budget::new();
    drop(take(&budget));
    assert_eq!(budget.remaining(), Some(500));
}

#[test]
fn a_spent_reservation_does_not_go_back() {
    let budget = Budget::new();
    take(&budget).unwrap().spend();
    assert_eq!(budget.remaining(), Some(486));
}

#[test]
fn throttling_costs_less() {
    let budget = Budget::new();
    let _held = budget.reserve(Reason::RateLimited, Delivery::Answered);
    assert_eq!(budget.remaining(), Some(495));
}

#[test]
fn requests_that_never_left_have_their_own_quota() {
    let budget = Budget::new();
    let held: Vec<_> =
        std::iter::from_fn(|| budget.reserve(Reason::Transport, Delivery::NotSent)).collect();
    assert_eq!(held.len(), 10);
    assert_eq!(budget.remaining(), Some(500));
    for reservation in held {
        reservation.spend();
    }
    for _ in 0..10 {
        budget.deposit();
    }
    assert_eq!(budget.remaining_unsent(), Some(1));
}

#[test]
fn an_unlimited_budget_has_no_end() {
    let budget = Budget::unlimited();
    for _ in 0..10_000 {
        take(&budget).unwrap().spend();
    }
    assert_eq!(budget.remaining(), None);
}

#[test]
fn what_can_never_allow_a_retry_is_refused() {
    let refused = [
        (Budget::builder().capacity(13), "capacity", "13"),
        (Budget::builder().transient_cost(0), "transient_cost", "0"),
        (Budget::builder().throttled_cost(0), "throttled_cost", "0"),
        (
            Budget::builder().deposit_percent(0.0),
            "deposit_percent",
            "0.0",
        ),
        (
            Budget::builder().deposit_percent(f64::NAN),
            "deposit_percent",
            "NaN",
        ),
        (
            Budget::builder().deposit_percent(100.5),
            "deposit_percent",
            "100.5",
        ),
        (
            Budget::builder().deposit_percent(-1.0),
            "deposit_percent",
            "-1.0",
        ),
    ];
    for (builder, field, value) in refused {
        let error = builder.build().unwrap_err();
        assert_eq!((error.field(), error.value()), (field, value));
    }
    assert_eq!(Budget::ratio(20.0, 0).unwrap_err().field(), "capacity");
}

#[test]
fn two_threads_cannot_take_the_same_token() {
    let budget = Budget::ratio(100.0, 1000).unwrap();
    let taken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    std::iter::from_fn(|| take(&budget))
                        .map(Reservation::spend)
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(taken, 1000);
}

proptest! {
    #[test]
    fn no_percentage_allows_more_than_it_says(
        tenths in 1_u32..=1000,
        reserve in 1_u32..50,
        calls in proptest::collection::vec(any::<bool>(), 0..3000),
    ) {
        let percent = f64::from(tenths) / 10.0;
        let budget = Budget::ratio(percent, reserve).unwrap();
        let (mut successes, mut retries) = (0_u64, 0_u64);
        for succeeds in calls {
            if succeeds {
                budget.deposit();
                successes += 1;
            } else if let Some(reservation) = take(&budget) {
                reservation.spend();
                retries += 1;
            }
        }
        // In thousandths: retries <= reserve + successes * percent / 100.
        prop_assert!(
            retries * 1000 <= u64::from(reserve) * 1000 + successes * u64::from(tenths)
        );
    }

    #[test]
    fn a_percentage_is_allowed_in_full(tenths in 1_u32..=1000) {
        // Truncating the cost of a retry would turn 60 or 90 percent into 100.
        let budget = Budget::ratio(f64::from(tenths) / 10.0, 1000).unwrap();
        while let Some(reservation) = take(&budget) {
            reservation.spend();
        }
        for _ in 0..1000 {
            budget.deposit();
        }
        let retries = std::iter::from_fn(|| take(&budget)).map(Reservation::spend).count();
        prop_assert_eq!(retries, tenths as usize);
    }
}
