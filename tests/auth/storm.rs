//! A thousand calls at once, some of which are given up half-way.

use std::time::Duration;

use tokio::task::JoinSet;
use tower::ServiceExt;
use tower_outcome_testkit::Answer;

use super::Customers;

const CALLS: usize = 1000;

/// Where each call's request is at the moment at which the session dies.
async fn run(rejection: Answer, dropped: impl Fn(usize) -> Option<Duration>) -> (Customers, usize) {
    let customers = Customers::new(rejection);
    let stack = customers.stack(1);
    let warm = stack.clone().oneshot(customers.order("warm")).await;
    assert_eq!(warm.unwrap().0, 200);
    tokio::time::sleep(Duration::from_millis(5)).await;
    customers.logins.expire_all();
    customers.gate.close();
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let call = stack
            .clone()
            .oneshot(customers.order(&format!("order-{number}")));
        let given_up = dropped(number);
        calls.spawn(async move {
            match given_up {
                Some(after) => {
                    // From when the first answers come, to long after the last.
                    let call = tokio::time::timeout(after, call).await;
                    call.is_ok_and(|result| result.unwrap().0 == 200)
                }
                None => {
                    let (status, _) = call.await.unwrap();
                    assert_eq!(status, 200);
                    true
                }
            }
        });
    }
    // All have attached the credential that is dead, and are sent at once.
    customers.gate.open_for(CALLS).await;
    let mut placed = 0;
    while let Some(call) = calls.join_next().await {
        placed += usize::from(call.unwrap());
    }
    customers.venue.ledger().settled().await;
    (customers, placed)
}

fn check(customers: &Customers, placed: usize) {
    let ledger = customers.venue.ledger();
    assert_eq!(customers.logins.refreshes(), 1, "one refresh for everybody");
    assert_eq!(customers.logins.logins(), 1, "nobody logged in again");
    assert_eq!(
        customers.logins.reuses(),
        0,
        "no refresh token was spent twice"
    );
    assert_eq!(ledger.applied_twice(), 0);
    // What was placed was applied; a call that was given up may have been.
    assert!(ledger.applied_total() > placed, "and the warm-up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_orders_meet_a_dead_session() {
    for rejection in [
        Answer::status(401),
        Answer::json(200, r#"{"ErrorCode":4011}"#),
        Answer::json(401, r#"{"ErrorCode":4011}"#),
    ] {
        let (customers, placed) = run(rejection, |_| None).await;
        check(&customers, placed);
        assert_eq!(placed, CALLS);
        assert_eq!(customers.venue.ledger().applied_total(), CALLS + 1);
        assert_eq!(customers.logins.rejections(), CALLS);
        assert_eq!(customers.replays(), CALLS, "one replay for each");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_orders_of_which_a_tenth_is_given_up_at_random() {
    for seed in 0..3_usize {
        let (customers, placed) = run(Answer::status(401), |number| {
            let drawn = number.wrapping_mul(7919).wrapping_add(seed * 104_729);
            let after = u64::try_from(drawn % 97).unwrap();
            (drawn % 10 == 0).then(|| Duration::from_micros(after * 500))
        })
        .await;
        check(&customers, placed);
        assert!(placed >= CALLS * 9 / 10);
    }
}
