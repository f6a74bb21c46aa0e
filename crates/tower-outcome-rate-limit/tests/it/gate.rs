//! The gate: closed while the venue wants to be left alone, and what is seen of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tower_outcome_rate_limit::{
    Admitted, Budget, Class, Cost, Guard, KeyedBudget, Limit, Observer, Paused, Queued, Refused,
    RefusedKind, Ticket,
};

use crate::support::{exact, ms, secs, settled, take, wait};

fn order() -> Ticket {
    Ticket::new().class(0)
}

fn ten_a_second() -> Budget {
    exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .guard(Guard::None)
        .build()
        .unwrap()
}

/// How long each of so many waits from here.
async fn waits(budget: &Budget, requests: usize) -> Vec<Duration> {
    let waiters: Vec<_> = (0..requests).map(|_| wait(budget, order())).collect();
    let mut waits = Vec::new();
    for waiter in waiters {
        let (waited, result) = waiter.await.unwrap();
        drop(result.unwrap());
        waits.push(waited);
    }
    waits
}

#[tokio::test(start_paused = true)]
async fn nobody_goes_during_a_pause() {
    let budget = ten_a_second();
    budget.pause(secs(3));
    assert_eq!(budget.snapshot().paused_for, secs(3));
    let refused = budget.try_acquire(&order()).unwrap_err();
    assert_eq!(refused.retry_after(Instant::now()), Some(secs(3)));
    assert_eq!(waits(&budget, 10).await, [secs(3); 10]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_made_longer_and_never_shorter() {
    let budget = ten_a_second();
    budget.pause(secs(3));
    budget.pause(secs(1));
    sleep(secs(1)).await;
    let waiter = wait(&budget, order());
    sleep(secs(1)).await;
    budget.pause(secs(5));
    budget.throttled(Some(ms(1)));
    assert_eq!(waiter.await.unwrap().0, secs(6));
}

#[tokio::test(start_paused = true)]
async fn who_cannot_wait_for_the_end_of_a_pause_is_told_at_once() {
    let budget = ten_a_second();
    take(&budget, 10, order());
    let hasty = wait(&budget, order().max_wait(secs(5)));
    let patient = wait(&budget, order());
    sleep(ms(500)).await;
    budget.pause(secs(10));
    let (waited, result) = hasty.await.unwrap();
    let refused = result.unwrap_err();
    assert_eq!(*refused.kind(), RefusedKind::Deadline);
    assert_eq!(waited, ms(500));
    assert_eq!(refused.retry_after(Instant::now()), Some(secs(10)));
    let late = budget.acquire(order().max_wait(secs(9))).await.unwrap_err();
    assert_eq!(*late.kind(), RefusedKind::Deadline);
    assert_eq!(patient.await.unwrap().0, secs(10) + ms(500));
}

#[tokio::test(start_paused = true)]
async fn a_limit_can_be_closed_alone() {
    let budget = exact("venue")
        .limit(Limit::sliding("raw", 10, secs(1)))
        .limit(Limit::sliding("orders", 10, secs(1)))
        .build()
        .unwrap();
    budget.close_limit("orders", secs(3)).unwrap();
    budget.close_limit("orders", secs(1)).unwrap();
    budget.close_limit("nothing", secs(1)).unwrap_err();
    let snapshot = budget.snapshot();
    assert_eq!(snapshot.limit("orders").unwrap().closed_for, secs(3));
    assert_eq!(snapshot.paused_for, Duration::ZERO);
    let both = wait(&budget, order());
    settled().await;
    take(&budget, 1, order().cost(Cost::in_order([1, 0])));
    assert_eq!(both.await.unwrap().0, secs(3));
}

#[tokio::test(start_paused = true)]
async fn an_operator_opens_the_gate_and_waiters_go_at_once() {
    let budget = ten_a_second();
    budget.throttled(Some(secs(20)));
    budget.close_limit("requests", secs(20)).unwrap();
    let waiters: Vec<_> = (0..10).map(|_| wait(&budget, order())).collect();
    sleep(secs(1)).await;
    budget.reopen();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().0, secs(1), "and not one by one");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_requests_go_one_by_one_for_a_window() {
    let budget = ten_a_second();
    budget.throttled(Some(secs(3)));
    let expected: Vec<_> = (0..10).map(|i| secs(3) + ms(100) * i).collect();
    assert_eq!(waits(&budget, 10).await, expected);
    // Then as many at once as fit: those of a tenth of a second are forgotten at a time.
    sleep(secs(2)).await;
    assert_eq!(waits(&budget, 10).await, [Duration::ZERO; 10]);
}

#[tokio::test(start_paused = true)]
async fn without_a_hint_pauses_grow_until_a_window_is_clean() {
    let budget = ten_a_second();
    for expected in [1, 2, 4, 8] {
        budget.throttled(None);
        assert_eq!(budget.snapshot().paused_for, secs(expected));
        sleep(secs(expected)).await;
    }
    sleep(secs(1) + ms(1)).await;
    budget.throttled(None);
    assert_eq!(budget.snapshot().paused_for, secs(1));
}

#[tokio::test(start_paused = true)]
async fn nothing_a_venue_says_closes_the_gate_for_longer_than_the_longest_pause() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .longest_pause(secs(60))
        .build()
        .unwrap();
    budget.pause(Duration::MAX);
    assert_eq!(budget.snapshot().paused_for, secs(60));
    budget.throttled(Some(Duration::MAX));
    assert_eq!(budget.snapshot().paused_for, secs(60));
    budget.close_limit("requests", Duration::MAX).unwrap();
    let snapshot = budget.snapshot();
    assert_eq!(snapshot.limit("requests").unwrap().closed_for, secs(60));
}

// === others ===

fn counts(budget: &Budget) -> (u32, u32, u32) {
    let snapshot = budget.snapshot();
    let limit = snapshot.limit("requests").unwrap();
    (limit.used, limit.held, limit.phantom)
}

#[tokio::test(start_paused = true)]
async fn what_only_others_can_have_used_counts_for_a_window() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .build()
        .unwrap();
    take(&budget, 2, order());
    let permit = budget.try_acquire(&order()).unwrap();
    let departure = budget.departure();
    budget.observe_used("requests", 8, &departure).unwrap();
    permit.responded();
    assert_eq!(counts(&budget), (3, 0, 5));
    take(&budget, 2, order());
    assert!(budget.try_acquire(&order()).is_err());
    sleep(secs(1)).await;
    assert_eq!(counts(&budget), (0, 0, 0));
    budget.observe_used("nothing", 8, &departure).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn what_may_be_this_side_s_own_is_no_phantom() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(1)))
        .build()
        .unwrap();
    take(&budget, 2, order());
    let permit = budget.try_acquire(&order()).unwrap();
    let departure = budget.departure();
    // Another one departs meanwhile, and may have been counted before the answer was written.
    let other = budget.try_acquire(&order()).unwrap();
    budget.observe_used("requests", 4, &departure).unwrap();
    assert_eq!(counts(&budget), (2, 2, 0));
    // What the venue has not counted yet is not taken for nothing.
    budget.observe_used("requests", 0, &departure).unwrap();
    assert_eq!(counts(&budget), (2, 2, 0));
    permit.responded();
    other.responded();
    assert_eq!(counts(&budget), (4, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn others_use_no_more_than_there_is() {
    let budget = ten_a_second();
    let departure = budget.departure();
    budget
        .observe_used("requests", u64::MAX, &departure)
        .unwrap();
    budget
        .observe_used("requests", u64::MAX, &departure)
        .unwrap();
    assert_eq!(counts(&budget), (0, 0, 10));
    assert_eq!(waits(&budget, 1).await, [secs(1)]);
}

// === what is seen ===

#[tokio::test(start_paused = true)]
async fn a_snapshot_shows_how_it_stands_and_spends_nothing() {
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 10, secs(10)))
        .class(Class::new("order"))
        .class(Class::new("query").leave_percent(50))
        .build()
        .unwrap();
    let query = Ticket::new().class(1);
    take(&budget, 3, order());
    let _held = budget
        .try_acquire(&order().cost(Cost::in_order([4])))
        .unwrap();
    drop(wait(&budget, query));
    settled().await;
    sleep(secs(2)).await;
    drop(wait(&budget, query));
    settled().await;
    drop(budget.try_acquire(&query).unwrap_err());
    for _ in 0..3 {
        let snapshot = budget.snapshot();
        let limit = snapshot.limit("requests").unwrap();
        assert_eq!((limit.capacity, limit.used, limit.held), (10, 3, 4));
        let [orders, queries] = &snapshot.classes[..] else {
            panic!("{snapshot:?}");
        };
        assert_eq!((orders.granted, orders.refused, orders.queued), (4, 0, 0));
        assert_eq!(orders.oldest_wait, Duration::ZERO);
        assert_eq!(
            (queries.granted, queries.refused, queries.queued),
            (0, 1, 2)
        );
        assert_eq!(queries.oldest_wait, secs(2));
        assert_eq!(snapshot.queued, 2);
    }
}

/// Writes down what it sees, and looks at the budget meanwhile.
#[derive(Debug, Default)]
struct Diary {
    lines: Mutex<Vec<String>>,
    budget: Mutex<Option<Budget>>,
}

impl Diary {
    fn write(&self, line: String) {
        let budget = self.budget.lock().unwrap().clone();
        if let Some(budget) = budget {
            // Would hang if it were called under the lock.
            let _ = budget.snapshot();
        }
        self.lines.lock().unwrap().push(line);
    }
}

impl Observer for Diary {
    fn admitted(&self, event: &Admitted<'_>) {
        self.write(format!("{} after {:?}", event.class, event.waited));
    }

    fn queued(&self, event: &Queued<'_>) {
        self.write(format!("{} waits with {}", event.class, event.waiting));
    }

    fn refused(&self, refused: &Refused) {
        self.write(format!("{} {:?}", refused.class(), refused.kind()));
    }

    fn paused(&self, event: &Paused<'_>) {
        self.write(format!("{:?} closed for {:?}", event.limit, event.lasting));
    }
}

#[tokio::test(start_paused = true)]
async fn who_watches_hears_of_each_event_once_and_may_look() {
    let diary = Arc::new(Diary::default());
    let budget = exact("venue")
        .limit(Limit::sliding("requests", 1, secs(1)))
        .max_queue(2)
        .observer(diary.clone())
        .build()
        .unwrap();
    *diary.budget.lock().unwrap() = Some(budget.clone());
    take(&budget, 1, order());
    drop(budget.try_acquire(&order()).unwrap_err());
    let query = wait(&budget, Ticket::new().class(1));
    let sweep = wait(&budget, Ticket::new().class(2));
    settled().await;
    let last = wait(&budget, order());
    drop(sweep.await.unwrap().1.unwrap_err());
    last.await.unwrap().1.unwrap().responded();
    query.await.unwrap().1.unwrap().responded();
    budget.pause(secs(2));
    budget.close_limit("requests", secs(3)).unwrap();
    budget.throttled(Some(secs(4)));
    let too_large = order().cost(Cost::in_order([2]));
    drop(budget.acquire(too_large).await.unwrap_err());
    assert_eq!(
        *diary.lines.lock().unwrap(),
        [
            "order after 0ns",
            "order Busy",
            "query waits with 1",
            "sweep waits with 2",
            "order waits with 2",
            "sweep Displaced",
            "order after 1s",
            "query after 2s",
            "None closed for 2s",
            "Some(\"requests\") closed for 3s",
            "None closed for 4s",
            "order TooLarge { limit: \"requests\", cost: 2, capacity: 1 }",
        ]
    );
    // Whoever holds what holds it would never be dropped.
    *diary.budget.lock().unwrap() = None;
}

// === a budget for each key ===

fn keyed() -> KeyedBudget<String> {
    let one = exact("host").limit(Limit::sliding("requests", 1, secs(1)));
    KeyedBudget::try_new(one).unwrap()
}

#[tokio::test(start_paused = true)]
async fn keys_do_not_share_and_handles_of_a_key_do() {
    let hosts = keyed();
    take(&hosts.get("a.example"), 1, order());
    take(&hosts.clone().get("b.example"), 1, order());
    assert!(hosts.get("a.example").try_acquire(&order()).is_err());
    assert!(hosts.get("b.example").try_acquire(&order()).is_err());
    assert_eq!(hosts.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_forgotten_when_its_window_has_passed_and_not_before() {
    let hosts = keyed();
    take(&hosts.get("used"), 1, order());
    let permit = hosts.get("held").try_acquire(&order()).unwrap();
    drop(hosts.get("late").try_acquire(&order()).unwrap());
    hosts.get("paused").pause(secs(10));
    let handle = hosts.get("in hand");
    drop(hosts.get("new"));
    assert_eq!(hosts.len(), 6);
    hosts.evict_idle();
    assert_eq!(hosts.len(), 5, "the new one");
    assert!(hosts.get("used").try_acquire(&order()).is_err());
    sleep(secs(1)).await;
    hosts.evict_idle();
    assert_eq!(hosts.len(), 4, "and the used one");
    sleep(secs(1)).await;
    hosts.evict_idle();
    assert_eq!(hosts.len(), 3, "and what may have arrived late");
    drop(handle);
    permit.responded();
    sleep(secs(8)).await;
    hosts.evict_idle();
    assert!(hosts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_somebody_waits_for_is_not_forgotten() {
    let hosts = keyed();
    take(&hosts.get("a"), 1, order());
    let waiter = wait(&hosts.get("a"), order());
    settled().await;
    hosts.evict_idle();
    assert!(hosts.get("a").try_acquire(&order()).is_err());
    waiter.await.unwrap().1.unwrap().responded();
    settled().await;
    sleep(secs(1)).await;
    hosts.evict_idle();
    assert!(hosts.is_empty(), "nothing of the budget is left running");
}

#[tokio::test(start_paused = true)]
async fn a_rush_of_keys_is_forgotten_although_few_are_asked_for_later() {
    let hosts = keyed();
    for key in 0..20_000_u32 {
        take(&hosts.get(&format!("rush {key}")), 1, order());
    }
    assert_eq!(hosts.len(), 20_000);
    sleep(secs(60)).await;
    for _ in 0..2000 {
        take(&hosts.get("a"), 1, order());
        sleep(secs(3)).await;
    }
    assert!(hosts.len() < 100, "{}", hosts.len());
}

#[tokio::test(start_paused = true)]
async fn what_was_reconfigured_for_one_key_stays_so() {
    let hosts = keyed();
    hosts
        .get("a")
        .reconfigure(&Limit::sliding("requests", 2, secs(7)))
        .unwrap();
    hosts.evict_idle();
    assert_eq!(hosts.len(), 1);
    assert_eq!(hosts.get("a").snapshot().limits[0].capacity, 2);
}

#[tokio::test(start_paused = true)]
async fn a_limit_can_be_changed_for_all_keys() {
    let hosts = keyed();
    let old = hosts.get("old");
    hosts
        .reconfigure(&Limit::sliding("requests", 2, secs(7)))
        .unwrap();
    assert_eq!(old.snapshot().limits[0].capacity, 2);
    assert_eq!(hosts.get("new").snapshot().limits[0].capacity, 2);
    drop(old);
    hosts.evict_idle();
    assert!(hosts.is_empty());
    hosts
        .reconfigure(&Limit::sliding("b", 1, secs(7)))
        .unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_keys_is_that_of_the_last_windows() {
    let hosts =
        KeyedBudget::<u32>::try_new(exact("host").limit(Limit::sliding("a", 1, secs(1)))).unwrap();
    for key in 0..20_000_u32 {
        take(&hosts.get(&key), 1, order());
        sleep(ms(10)).await;
    }
    assert!(hosts.len() <= 16 * 16 + 400, "{}", hosts.len());
}
