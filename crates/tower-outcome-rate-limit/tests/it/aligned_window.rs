//! Windows on the venue's clock, which is learned from its answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    runtime,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tower_outcome_rate_limit::{Budget, Guard, Limit, RefusedKind, Ticket};

use crate::{
    support::{exact, ms, secs},
    venue::{Counting, Dice, worst},
};

const PERIOD: u64 = 10;
const SPAN: u64 = 80;
const SEEDS: u64 = 1000;

/// A clock that shows something else and runs at another speed, and is set once.
#[derive(Clone, Copy, Debug)]
struct VenueClock {
    ahead: i128,
    ppm: i128,
    set_at: Duration,
    step: i128,
}

impl VenueClock {
    fn draw(dice: &mut Dice) -> Self {
        Self {
            ahead: i128::from(dice.roll(1_700_000_000_000_000_000, 1_800_000_000_000_000_000)),
            ppm: i128::from(dice.roll(0, 1000)) - 500,
            set_at: Duration::MAX,
            step: 0,
        }
    }

    /// What it shows in nanoseconds since the epoch.
    fn shows(&self, at: Duration) -> i128 {
        let local = at.as_nanos() as i128;
        let step = if at >= self.set_at { self.step } else { 0 };
        self.ahead + local + local * self.ppm / 1_000_000 + step
    }

    fn date(&self, at: Duration) -> u64 {
        (self.shows(at) / 1_000_000_000) as u64
    }

    fn window(&self, at: Duration) -> i128 {
        self.shows(at) / i128::from(PERIOD * 1_000_000_000)
    }
}

#[derive(Clone, Copy, Debug)]
struct Visit {
    arrived: Duration,
    answered: Duration,
    dated: Duration,
}

/// Twice as many requests as fit, for `SPAN` seconds.
fn play(mut dice: Dice, clock: VenueClock, capacity: u32) -> Vec<Visit> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let budget = Budget::builder("venue")
            .limit(Limit::aligned("requests", capacity, secs(PERIOD)))
            .build()
            .unwrap();
        let visits = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        let mut requests = JoinSet::new();
        for _ in 0..u64::from(capacity) * 2 * SPAN / PERIOD {
            let at = start + dice.ms(0, SPAN * 1000);
            let mut most = |often, rarely| if dice.percent(80) { often } else { rarely };
            let (out, back) = (most(20, 400), most(20, 200));
            let (out, back) = (dice.ms(0, out), dice.ms(0, back));
            let writing = dice.ms(0, back.as_millis() as u64);
            let (budget, visits) = (budget.clone(), visits.clone());
            requests.spawn(async move {
                sleep_until(at).await;
                let Ok(permit) = budget.acquire(Ticket::new().class(0)).await else {
                    return;
                };
                let sent = Instant::now();
                sleep(out).await;
                let arrived = start.elapsed();
                sleep(back).await;
                let answered = start.elapsed();
                let dated = arrived + writing;
                visits.lock().unwrap().push(Visit {
                    arrived,
                    answered,
                    dated,
                });
                budget.observe_date(sent, Instant::now(), clock.date(dated));
                permit.responded();
            });
        }
        requests.join_all().await;
        Arc::into_inner(visits).unwrap().into_inner().unwrap()
    })
}

/// Each window of the venue: when it began to count, and up to what.
fn windows(visits: &[Visit], clock: &VenueClock) -> Vec<(Duration, u32)> {
    let mut arrivals: Vec<_> = visits.iter().map(|visit| visit.arrived).collect();
    arrivals.sort_unstable();
    let mut windows: Vec<(Duration, u32)> = Vec::new();
    let mut own = None;
    for at in arrivals {
        if own.replace(clock.window(at)) != Some(clock.window(at)) {
            windows.push((at, 0));
        }
        windows.last_mut().unwrap().1 += 1;
    }
    windows
}

#[test]
fn windows_of_a_clock_that_is_learned_are_never_exceeded() {
    let mut beyond_sliding = 0;
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let clock = VenueClock::draw(&mut dice);
        let capacity = dice.units(3, 12);
        let visits = play(dice, clock, capacity);
        for (since, count) in windows(&visits, &clock) {
            assert!(
                count <= capacity,
                "seed {seed}: {count} of {capacity} in the window that began at {since:?}"
            );
        }
        let arrivals: Vec<_> = visits.iter().map(|visit| (visit.arrived, 1)).collect();
        let window = secs(PERIOD);
        let sliding = worst(Counting::Sliding { window }, &arrivals);
        beyond_sliding += u64::from(sliding > u64::from(capacity));
    }
    // What a window leaves at its end is not taken from the next one.
    assert!(beyond_sliding > SEEDS / 2, "only {beyond_sliding} runs");
}

#[test]
fn a_clock_that_is_set_is_learned_again() {
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let mut clock = VenueClock::draw(&mut dice);
        let step = i128::from(dice.roll(3_000, 100_000)) * 1_000_000;
        clock.step = if dice.percent(50) { step } else { -step };
        clock.set_at = secs(40);
        let capacity = dice.units(3, 12);
        let visits = play(dice, clock, capacity);
        // An answer that was written before, but came after one that was written later, is believed
        // once more.
        let old = visits.iter().filter(|visit| visit.dated < clock.set_at);
        let confused = old.map(|visit| visit.answered).max().unwrap();
        let new = visits.iter().filter(|visit| visit.dated >= clock.set_at);
        let learned = new
            .map(|visit| visit.answered)
            .filter(|&at| at > confused)
            .min()
            .unwrap();
        for (since, count) in windows(&visits, &clock) {
            if since > learned || since + secs(PERIOD + 1) < clock.set_at {
                assert!(count <= capacity, "seed {seed}: {count} of {capacity}");
            } else if clock.step > 0 {
                // Nobody can know yet; it is two windows of the old clock at worst.
                assert!(count <= 2 * capacity, "seed {seed}: {count} of {capacity}");
            }
        }
    }
}

/// A budget of ten in ten seconds whose venue's clock shows a full second now.
fn dated(answer: Duration) -> Budget {
    let budget = exact("venue")
        .limit(Limit::aligned("requests", 10, secs(10)))
        .guard(Guard::None)
        .build()
        .unwrap();
    hear(&budget, answer, 1_700_000_003);
    budget
}

/// As many answers as it takes to be believed, all of them dated the same.
fn hear(budget: &Budget, answer: Duration, date: u64) {
    let now = Instant::now();
    for _ in 0..3 {
        budget.observe_date(now, now + answer, date);
    }
}

fn take(budget: &Budget, requests: usize) {
    for _ in 0..requests {
        drop(budget.try_acquire(&Ticket::new().class(0)).unwrap());
    }
}

/// How long it takes until the next one can go.
fn next(budget: &Budget) -> Duration {
    let now = Instant::now();
    let refused = budget.try_acquire(&Ticket::new().class(0)).unwrap_err();
    assert_eq!(*refused.kind(), RefusedKind::Busy);
    refused.retry_after(now).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_window_is_over_when_it_is_over_for_certain() {
    let budget = dated(Duration::ZERO);
    take(&budget, 10);
    // It is three to four seconds past the tick: the latest instant of the next one is meant.
    // Its machines may be a twentieth of a second apart.
    assert_eq!(next(&budget), ms(7050));
    sleep(ms(7049)).await;
    assert_eq!(next(&budget), ms(1));
    sleep(ms(1)).await;
    take(&budget, 10);
    assert_eq!(next(&budget), secs(10));
}

#[tokio::test(start_paused = true)]
async fn what_may_count_in_the_next_window_does() {
    let budget = dated(Duration::ZERO);
    // The tick is six to seven seconds away; what goes in between may be on either side of it.
    sleep(ms(6500)).await;
    take(&budget, 4);
    sleep(ms(500)).await;
    take(&budget, 6);
    assert_eq!(next(&budget), ms(10_050));
}

#[tokio::test(start_paused = true)]
async fn without_a_clock_an_aligned_window_slides() {
    let budget = exact("venue")
        .limit(Limit::aligned("requests", 10, secs(10)))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 5);
    sleep(secs(6)).await;
    take(&budget, 5);
    assert_eq!(next(&budget), secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_hardly_known_is_not_counted_by() {
    // The answer took two seconds, so the tick is known to three: more than a quarter of a window.
    let budget = dated(secs(2));
    take(&budget, 10);
    assert_eq!(next(&budget), secs(10));
    // Another answer does better.
    hear(&budget, Duration::ZERO, 1_700_000_003);
    assert_eq!(next(&budget), ms(7050));
}

/// Ten went late in the venue's window, and one odd answer would have let ten more go within it.
#[tokio::test(start_paused = true)]
async fn one_odd_date_lets_nobody_go() {
    let budget = dated(Duration::ZERO);
    sleep(ms(2000)).await;
    take(&budget, 10);
    let now = Instant::now();
    // A proxy's own page, dated five seconds ahead.
    budget.observe_date(now, now, 1_700_000_010);
    // Nothing is known any more, so that the window slides.
    assert_eq!(next(&budget), secs(10));
}

#[tokio::test(start_paused = true)]
async fn an_offset_moves_the_tick() {
    let budget = exact("venue")
        .limit(Limit::aligned("requests", 10, secs(10)).offset(secs(5)))
        .guard(Guard::None)
        .build()
        .unwrap();
    hear(&budget, Duration::ZERO, 1_700_000_003);
    take(&budget, 10);
    assert_eq!(next(&budget), ms(2050));
}

#[tokio::test(start_paused = true)]
async fn what_waits_goes_at_the_tick_that_is_learned_meanwhile() {
    let budget = exact("venue")
        .limit(Limit::aligned("requests", 1, secs(10)))
        .guard(Guard::None)
        .build()
        .unwrap();
    take(&budget, 1);
    let waiter = crate::support::wait(&budget, Ticket::new().class(0));
    sleep(secs(1)).await;
    hear(&budget, Duration::ZERO, 1_700_000_008);
    let (waited, result) = waiter.await.unwrap();
    drop(result.unwrap());
    assert_eq!(waited, ms(3050));
}
