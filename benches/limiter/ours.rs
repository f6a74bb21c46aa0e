//! Our limiter, as it is measured.

use std::{hint::black_box, time::Duration};

use tower_outcome::rate_limit::{Budget, BudgetBuilder, Class, Cost, Guard, Limit, Ticket};

use crate::cases::{Burst, at_once};

/// The guard that is measured beside none.
pub(crate) const UNTIL_RESPONSE: Guard = Guard::UntilResponse {
    late: Duration::from_secs(1),
};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn try_acquire() -> Burst {
    tried(budget(turning_over(), Guard::None), ticket())
}

pub(crate) fn token_bucket() -> Burst {
    tried(budget(plentiful(), Guard::None), ticket())
}

pub(crate) fn three_limits() -> Burst {
    // Too large for a log of each request.
    let minute = Limit::sliding("minute", 2_000_000_000, Duration::from_secs(60));
    let builder = builder(turning_over(), Guard::None);
    let builder = builder.limit(minute).limit(plentiful());
    tried(built(builder), ticket().cost(Cost::in_order([1, 2, 1])))
}

pub(crate) fn acquire() -> Burst {
    let (budget, ticket) = (budget(turning_over(), Guard::None), ticket());
    Box::new(move |calls| {
        for _ in 0..calls {
            let permit = at_once(budget.acquire(ticket));
            assert!(black_box(&permit).is_ok(), "never refuses");
        }
    })
}

pub(crate) fn until_response() -> Burst {
    let (budget, ticket) = (budget(turning_over(), UNTIL_RESPONSE), ticket());
    Box::new(move |calls| {
        for _ in 0..calls {
            let permit = budget.try_acquire(&ticket);
            assert!(black_box(&permit).is_ok(), "never refuses");
            permit.expect("was looked at").responded();
        }
    })
}

pub(crate) fn refusal() -> Burst {
    let limit = Limit::sliding("requests", 1, Duration::from_secs(3600));
    let (budget, ticket) = (budget(limit, Guard::None), ticket());
    assert!(budget.try_acquire(&ticket).is_ok(), "is full at first");
    Box::new(move |calls| {
        for _ in 0..calls {
            let refused = budget.try_acquire(&ticket);
            assert!(black_box(&refused).is_err(), "has nothing left");
        }
    })
}

/// A budget with one limit and no bound on the queue.
pub(crate) fn budget(limit: Limit, guard: Guard) -> Budget {
    built(builder(limit, guard))
}

/// A budget whose lower class is at its end and stays there, with room left for the higher.
pub(crate) fn reserved() -> Budget {
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    let limit = Limit::sliding("year", 2_000_000_000, year);
    let builder = builder(limit, Guard::None)
        .class(Class::new("order"))
        .class(Class::new("sweep").leave_percent(50));
    let budget = built(builder);
    let half = Cost::in_order([1_000_000_000]);
    let spent = budget.try_acquire(&Ticket::new().class(1).cost(half));
    assert!(spent.is_ok(), "half is for the sweep");
    budget
}

/// Of the first class, which leaves nothing to others, like the peers' requests.
pub(crate) fn ticket() -> Ticket {
    Ticket::new().class(0)
}

/// Waits for its turn.
pub(crate) async fn wait(budget: Budget) {
    let permit = budget.acquire(ticket()).await;
    permit.expect("has no reason to refuse").responded();
}

/// Full at 80 million a second, so that each request finds older ones to forget.
fn turning_over() -> Limit {
    Limit::sliding("requests", 4096, Duration::from_micros(50))
}

/// Never empty.
fn plentiful() -> Limit {
    Limit::token_bucket("bucket", 1_000_000_000, SECOND)
}

fn tried(budget: Budget, ticket: Ticket) -> Burst {
    Box::new(move |calls| {
        for _ in 0..calls {
            // Looked at where it is: to move a permit is no cost of the limiter.
            let permit = budget.try_acquire(&ticket);
            assert!(black_box(&permit).is_ok(), "never refuses");
        }
    })
}

fn builder(limit: Limit, guard: Guard) -> BudgetBuilder {
    Budget::builder("bench")
        .limit(limit)
        .guard(guard)
        // The windows as they are: the peers do not allow for clocks either.
        .clock_tolerance(0, Duration::ZERO)
        .max_queue(usize::MAX)
        .max_wait(Limit::MAX_WINDOW)
}

fn built(builder: BudgetBuilder) -> Budget {
    builder.build().expect("is valid")
}
