//! Who is not let through, why, and how soon that is known.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower_outcome_rate_limit::{Budget, Class, Cost, Guard, Limit, Refused, RefusedKind, Ticket};

use crate::support::{exact, ms, secs, settled, take, wait};

/// Ten requests a second and no guard.
fn ten_a_second() -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .guard(Guard::None)
        .build()
        .unwrap()
}

fn order() -> Ticket {
    Ticket::new().class(0)
}

fn sweep() -> Ticket {
    Ticket::new().class(2)
}

fn units(units: u32) -> Cost {
    Cost::in_order([units])
}

/// The refusal, which came at once.
async fn at_once(budget: &Budget, ticket: Ticket) -> Refused {
    let (waited, result) = wait(budget, ticket).await.unwrap();
    assert_eq!(waited, Duration::ZERO);
    result.unwrap_err()
}

// === at once ===

#[tokio::test(start_paused = true)]
async fn who_does_not_want_to_wait_is_told_when_to_come_again() {
    let budget = ten_a_second();
    take(&budget, 4, order());
    sleep(ms(300)).await;
    take(&budget, 6, order());
    let now = Instant::now();
    let refused = budget.try_acquire(&order()).unwrap_err();
    assert_eq!(*refused.kind(), RefusedKind::Busy);
    assert_eq!(refused.retry_at(), Some(now + ms(700)));
    assert_eq!((refused.budget(), refused.class()), ("venue", "order"));
    let refused = budget.try_acquire(&order().cost(units(5))).unwrap_err();
    assert_eq!(refused.retry_at(), Some(now + ms(1000)));
    // And then it goes.
    sleep(ms(700)).await;
    take(&budget, 4, order());
}

#[tokio::test(start_paused = true)]
async fn who_cannot_make_it_is_refused_before_it_waits() {
    let budget = ten_a_second();
    take(&budget, 10, order());
    let waiting: Vec<_> = (0..15).map(|_| wait(&budget, order())).collect();
    settled().await;
    // It would be the 16th, which goes in the second window from here.
    let now = Instant::now();
    let refused = at_once(&budget, order().max_wait(ms(1999))).await;
    assert_eq!(*refused.kind(), RefusedKind::Deadline);
    assert_eq!(refused.retry_at(), Some(now + secs(2)));
    let refused = at_once(&budget, order().deadline(now + ms(1999))).await;
    assert_eq!(*refused.kind(), RefusedKind::Deadline);
    let last = wait(&budget, order().max_wait(ms(2000)));
    for waiter in waiting {
        drop(waiter.await.unwrap().1.unwrap());
    }
    let (waited, result) = last.await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, secs(2));
}

#[tokio::test(start_paused = true)]
async fn who_is_owed_something_is_not_refused_for_the_sake_of_those_above() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .class(Class::new("order"))
        .class(Class::new("sweep").leave_percent(50).floor_percent(100))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 10, order());
    let orders: Vec<_> = (0..60).map(|_| wait(&budget, order())).collect();
    settled().await;
    // Its own share is free in seven seconds, but for each order one of these goes.
    let sweep = wait(&budget, Ticket::new().class(1).max_wait(ms(1500)));
    let (waited, result) = sweep.await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, secs(1));
    drop(orders);
}

#[tokio::test(start_paused = true)]
async fn what_can_never_fit_is_refused_at_once_and_for_good() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 1000, secs(1)))
        .limit(Limit::sliding("weight", 10, secs(1)))
        .class(Class::new("order"))
        .class(Class::new("query").leave_percent(30))
        .build()
        .unwrap();
    let weight = |weight| Cost::in_order([1, weight]);
    let refused = [
        budget.try_acquire(&order().cost(weight(11))).unwrap_err(),
        at_once(&budget, order().cost(weight(11))).await,
    ];
    for refused in refused {
        let RefusedKind::TooLarge {
            limit,
            cost,
            capacity,
        } = refused.kind()
        else {
            panic!("{refused}");
        };
        assert_eq!((&**limit, *cost, *capacity), ("weight", 11, 10));
        assert_eq!(refused.retry_at(), None);
        assert!(refused.is_final());
    }
    // The lower class leaves three of ten.
    let query = Ticket::new().class(1);
    let refused = at_once(&budget, query.cost(weight(8))).await;
    assert!(matches!(
        refused.kind(),
        RefusedKind::TooLarge { capacity: 7, .. }
    ));
    take(&budget, 1, query.cost(weight(7)));
    // Nothing of the other limit was spent on them.
    assert_eq!(budget.snapshot().limit("requests").unwrap().used, 1);
}

#[tokio::test(start_paused = true)]
async fn who_must_not_wait_goes_at_once_or_is_refused() {
    let budget = ten_a_second();
    let hasty = order().max_wait(Duration::ZERO);
    for _ in 0..10 {
        budget.acquire(hasty).await.unwrap().responded();
    }
    let refused = at_once(&budget, hasty).await;
    assert_eq!(*refused.kind(), RefusedKind::Deadline);
    assert_eq!(refused.retry_at(), Some(Instant::now() + secs(1)));
    assert_eq!(budget.snapshot().queued, 0);
}

/// Sweeps wait, while there is still room for orders: what sweeps leave to them.
async fn with_a_sweep_that_waits(budget: &Budget) {
    take(budget, 7, sweep());
    drop(wait(budget, sweep()));
    settled().await;
    assert_eq!(budget.snapshot().queued, 1);
}

#[tokio::test(start_paused = true)]
async fn who_must_not_wait_goes_at_once_past_a_lower_class_that_is_owed_something() {
    let budget = ten_a_second();
    with_a_sweep_that_waits(&budget).await;
    let hasty = order().max_wait(Duration::ZERO);
    budget.acquire(hasty).await.unwrap().responded();
    let hasty = order().deadline(Instant::now());
    budget.acquire(hasty).await.unwrap().responded();
}

#[tokio::test(start_paused = true)]
async fn a_class_that_must_not_wait_goes_at_once_or_is_refused() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .class(Class::new("order").max_wait(Duration::ZERO))
        .class(Class::new("query"))
        .class(Class::new("sweep").leave_percent(30).floor_percent(2))
        .guard(Guard::None)
        .build()
        .unwrap();
    with_a_sweep_that_waits(&budget).await;
    budget.acquire(order()).await.unwrap().responded();
    take(&budget, 2, order());
    assert_eq!(
        *at_once(&budget, order()).await.kind(),
        RefusedKind::Deadline
    );
    let refused = budget.try_acquire(&order()).unwrap_err();
    assert_eq!(*refused.kind(), RefusedKind::Busy);
    let orders = budget.snapshot().class("order").unwrap().clone();
    assert_eq!((orders.granted, orders.refused), (3, 2));
}

// === the bound of the queue ===

fn with_room_for(waiters: usize) -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .guard(Guard::None)
        .max_queue(waiters)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_who_comes_last() {
    let budget = with_room_for(3);
    take(&budget, 10, order());
    let waiting: Vec<_> = (0..3).map(|_| wait(&budget, order())).collect();
    settled().await;
    let refused = at_once(&budget, order()).await;
    assert_eq!(*refused.kind(), RefusedKind::QueueFull { waiting: 3 });
    assert_eq!(refused.retry_at(), Some(Instant::now() + secs(1)));
    // Neither does a lower class displace a higher one.
    let refused = at_once(&budget, sweep()).await;
    assert_eq!(*refused.kind(), RefusedKind::QueueFull { waiting: 3 });
    for waiter in waiting {
        drop(waiter.await.unwrap().1.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_full_queue_the_newest_of_the_lowest_class_makes_way() {
    let budget = with_room_for(4);
    take(&budget, 10, order());
    let query = Ticket::new().class(1);
    let tickets = [query, sweep(), sweep(), query];
    let waiting = tickets.map(|ticket| wait(&budget, ticket));
    settled().await;
    let orders = [(); 3].map(|()| wait(&budget, order()));
    settled().await;
    let mut went = Vec::new();
    for waiter in waiting {
        went.push(match waiter.await.unwrap() {
            (waited, Ok(permit)) => {
                drop(permit);
                (waited, None)
            }
            (waited, Err(refused)) => (waited, Some(refused.kind().clone())),
        });
    }
    let displaced = (Duration::ZERO, Some(RefusedKind::Displaced));
    assert_eq!(
        went,
        [
            (secs(1), None),
            displaced.clone(),
            displaced.clone(),
            displaced
        ]
    );
    for order in orders {
        drop(order.await.unwrap().1.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_makes_way_whatever_it_waits_for() {
    let budget = exact("venue")
        .limit(Limit::sliding("raw", 1, secs(1)))
        .limit(Limit::sliding("orders", 1, secs(1)))
        .class(Class::new("order"))
        .class(Class::new("sweep"))
        .max_queue(3)
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 1, order());
    let lane = |cost| Ticket::new().class(1).cost(Cost::in_order(cost));
    let first = wait(&budget, lane([1, 0]));
    let newest = [lane([0, 1]), lane([1, 0])].map(|ticket| wait(&budget, ticket));
    settled().await;
    let orders = [(); 2].map(|()| wait(&budget, order()));
    for waiter in newest {
        let (waited, result) = waiter.await.unwrap();
        assert_eq!(waited, Duration::ZERO);
        assert_eq!(*result.unwrap_err().kind(), RefusedKind::Displaced);
    }
    for waiter in orders.into_iter().chain([first]) {
        drop(waiter.await.unwrap().1.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_makes_way_for_who_need_not_wait() {
    let budget = with_room_for(1);
    take(&budget, 7, sweep());
    let waiting = wait(&budget, sweep());
    settled().await;
    // There is room for three orders, and then there is none.
    for _ in 0..3 {
        budget.acquire(order()).await.unwrap().responded();
    }
    assert_eq!(budget.snapshot().queued, 1);
    let last = wait(&budget, order());
    assert_eq!(
        *waiting.await.unwrap().1.unwrap_err().kind(),
        RefusedKind::Displaced
    );
    drop(last.await.unwrap().1.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_full_of_others_is_no_obstacle_to_who_need_not_wait() {
    let budget = exact("venue")
        .limit(Limit::sliding("raw", 100, secs(1)))
        .limit(Limit::sliding("orders", 1, secs(1)))
        .guard(Guard::None)
        .max_queue(1)
        .build()
        .unwrap();
    let (both, raw) = (Cost::in_order([1, 1]), Cost::in_order([1, 0]));
    take(&budget, 1, order().cost(both));
    let waiting = wait(&budget, order().cost(both));
    settled().await;
    budget.acquire(order().cost(raw)).await.unwrap().responded();
    assert_eq!(waiting.await.unwrap().0, secs(1));
}

#[tokio::test(start_paused = true)]
async fn where_nobody_may_wait_who_fits_goes_all_the_same() {
    let budget = with_room_for(0);
    for _ in 0..10 {
        budget.acquire(order()).await.unwrap().responded();
    }
    let refused = at_once(&budget, order()).await;
    assert_eq!(*refused.kind(), RefusedKind::QueueFull { waiting: 0 });
}

// === deadlines ===

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait_to_the_millisecond() {
    let held = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .build()
        .unwrap();
    let _permit = held.try_acquire(&order().cost(units(10))).unwrap();
    let waits = [1, 7, 1234, 29_999].map(|wait_ms| {
        let by_wait = wait(&held, order().max_wait(ms(wait_ms)));
        let deadline = Instant::now() + ms(wait_ms);
        (wait_ms, by_wait, wait(&held, order().deadline(deadline)))
    });
    let by_class = wait(&held, order());
    for (wait_ms, by_wait, by_deadline) in waits {
        for waiter in [by_wait, by_deadline] {
            let (waited, result) = waiter.await.unwrap();
            if wait_ms < 1000 {
                assert_eq!(waited, Duration::ZERO, "a window cannot pass until then");
            } else {
                assert_eq!(waited, ms(wait_ms));
            }
            assert_eq!(*result.unwrap_err().kind(), RefusedKind::Deadline);
        }
    }
    let (waited, result) = by_class.await.unwrap();
    assert_eq!(waited, secs(30), "as long as the budget says");
    assert_eq!(*result.unwrap_err().kind(), RefusedKind::Deadline);
}

#[tokio::test(start_paused = true)]
async fn whose_turn_comes_at_its_deadline_goes() {
    let budget = ten_a_second();
    take(&budget, 10, order());
    for ticket in [
        order().max_wait(secs(1)),
        order().deadline(Instant::now() + secs(1)),
    ] {
        let (waited, result) = wait(&budget, ticket).await.unwrap();
        drop(result.unwrap());
        assert!(waited <= secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_lets_those_behind_it_go_at_once() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(10)))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 5, order());
    sleep(secs(5)).await;
    let heavy = wait(&budget, order().cost(units(8)).max_wait(secs(6)));
    settled().await;
    budget.close_limit("requests", ms(10)).unwrap();
    sleep(ms(10)).await;
    // The heavy one goes at the tenth second, unless somebody takes what it waits for.
    let lights: Vec<_> = (0..5).map(|_| wait(&budget, order())).collect();
    let (waited, result) = heavy.await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, secs(5));
    for light in lights {
        drop(light.await.unwrap().1.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_expires_at_the_head_of_its_line_frees_it_at_that_instant() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(10)))
        .class(Class::new("order"))
        .build()
        .unwrap();
    let permits: Vec<_> = (0..5)
        .map(|_| budget.try_acquire(&order()).unwrap())
        .collect();
    let heavy = wait(&budget, order().cost(units(8)).max_wait(secs(12)));
    settled().await;
    let light = wait(&budget, order());
    assert_eq!(
        *heavy.await.unwrap().1.unwrap_err().kind(),
        RefusedKind::Deadline
    );
    let (waited, result) = light.await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, secs(12));
    drop(permits);
}

#[tokio::test(start_paused = true)]
async fn whose_deadline_is_over_does_not_go_even_where_there_is_room() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 5, secs(1)))
        .build()
        .unwrap();
    let late = Ticket::new().deadline(Instant::now());
    sleep(ms(1)).await;
    let refused = budget.try_acquire(&late).unwrap_err();
    assert_eq!(refused.kind(), &RefusedKind::Deadline);
    let refused = budget.acquire(late).await.unwrap_err();
    assert_eq!(refused.kind(), &RefusedKind::Deadline);
    assert_eq!(budget.snapshot().limits[0].held, 0);
    let in_time = Ticket::new().deadline(Instant::now() + ms(1));
    budget.acquire(in_time).await.unwrap().responded();
}
