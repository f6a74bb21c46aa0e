//! Who goes first.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower_outcome_rate_limit::{Class, Guard, Limit, Ticket};

use crate::support::{exact, ms, secs, wait};

#[tokio::test(start_paused = true)]
async fn fifty_orders_go_at_once_past_two_thousand_queries() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 500, secs(5)))
        .class(Class::new("order"))
        .class(Class::new("query").leave_percent(10))
        .guard(Guard::None)
        .build()
        .unwrap();
    let queries: Vec<_> = (0..2000)
        .map(|_| wait(&budget, Ticket::new().class(1)))
        .collect();
    sleep(ms(100)).await;
    assert_eq!(budget.snapshot().queued, 1550);

    let start = Instant::now();
    for _ in 0..50 {
        drop(budget.acquire(Ticket::new().class(0)).await.unwrap());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    drop(budget.acquire(Ticket::new().class(0)).await.unwrap());
    assert_eq!(start.elapsed(), ms(4900), "the 51st is next in line");
    for query in queries {
        drop(query.await.unwrap().1.unwrap());
    }
}
