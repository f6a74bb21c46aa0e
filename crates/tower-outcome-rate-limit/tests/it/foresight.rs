//! Nobody is refused beforehand who could have made it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tower_outcome_rate_limit::{Budget, Class, Cost, Guard, Limit, Ticket};

use crate::{
    support::{exact, far, ms, secs},
    venue::Dice,
};

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Duration,
    class: usize,
    cost: Cost,
    patience: Duration,
}

/// When each of them went, or was refused.
async fn play(budget: Budget, arrivals: &[Arrival]) -> Vec<Result<Duration, Duration>> {
    let start = Instant::now();
    let live = |&arrival: &Arrival| {
        let budget = budget.clone();
        tokio::spawn(async move {
            sleep_until(start + arrival.at).await;
            let ticket = Ticket::new()
                .class(arrival.class)
                .cost(arrival.cost)
                .max_wait(arrival.patience);
            match budget.acquire(ticket).await {
                Ok(_permit) => Ok(start.elapsed()),
                Err(_) => Err(start.elapsed()),
            }
        })
    };
    let tasks: Vec<_> = arrivals.iter().map(live).collect();
    let mut went = Vec::new();
    for task in tasks {
        went.push(task.await.unwrap());
    }
    went
}

fn any_limits(dice: &mut Dice) -> Vec<Limit> {
    let mut limits = Vec::new();
    if dice.percent(80) {
        let window = dice.ms(100, 3000);
        limits.push(Limit::sliding("sliding", dice.units(8, 20), window));
    }
    if dice.percent(50) {
        limits.push(Limit::aligned("aligned", dice.units(8, 20), secs(10)));
    }
    if dice.percent(50) {
        let per = dice.ms(100, 3000);
        let bucket = Limit::token_bucket("bucket", dice.units(5, 20), per);
        limits.push(bucket.burst(dice.units(8, 20)));
    }
    if limits.is_empty() || dice.percent(30) {
        limits.push(Limit::spacing("spacing", dice.ms(1, 300)));
    }
    limits
}

fn budget(limits: &[Limit], floor: u8) -> Budget {
    let classes = exact("venue")
        .class(Class::new("order"))
        .class(Class::new("query").leave_percent(20))
        .class(Class::new("sweep").leave_percent(40).floor_percent(floor));
    let limits = limits.iter().cloned();
    let builder = limits.fold(classes, |builder, limit| builder.limit(limit));
    let budget = builder.guard(Guard::None).max_wait(far()).build().unwrap();
    // Two answers, a second apart, tell the clock to the nanosecond.
    let now = Instant::now();
    budget.observe_date(now, now, 1_700_000_003);
    budget.observe_date(now + secs(1), now + secs(1), 1_700_000_003);
    budget
}

fn any_arrivals(dice: &mut Dice, limits: usize) -> Vec<Arrival> {
    let mut arrivals: Vec<_> = (0..dice.roll(5, 60))
        .map(|_| {
            let mut cost = [0; 4];
            for units in &mut cost[..limits] {
                *units = if dice.percent(30) {
                    0
                } else {
                    dice.units(1, 4)
                };
            }
            Arrival {
                at: dice.ms(0, 500),
                class: dice.roll(0, 2) as usize,
                cost: Cost::in_order(cost),
                patience: far(),
            }
        })
        .collect();
    arrivals.sort_by_key(|arrival| arrival.at);
    // The one that is put to the test comes last, so that nobody comes before it later.
    let last = Arrival {
        at: ms(501),
        class: dice.roll(0, 2) as usize,
        ..arrivals[0]
    };
    arrivals.push(last);
    arrivals
}

/// Plays the same arrivals twice: once it waits for as long as it takes, and then just as long.
async fn put_to_the_test(seed: u64) -> bool {
    let mut dice = Dice::new(seed);
    let limits = any_limits(&mut dice);
    let floor = if dice.percent(30) { 20 } else { 0 };
    let mut arrivals = any_arrivals(&mut dice, limits.len());
    let patient = play(budget(&limits, floor), &arrivals).await;
    let last = arrivals.last_mut().unwrap();
    last.patience = patient.last().unwrap().unwrap() - last.at;
    let waits = !last.patience.is_zero();
    let at = last.at;
    let impatient = play(budget(&limits, floor), &arrivals).await;
    if floor == 0 {
        assert_eq!(patient, impatient, "seed {seed}");
    } else {
        // What is owed may be paid a moment later, but that nobody can know.
        assert_ne!(*impatient.last().unwrap(), Err(at), "seed {seed}");
    }
    waits
}

#[test]
fn nobody_is_refused_who_could_have_made_it() {
    let mut waited = 0;
    for seed in 0..1000 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        waited += u64::from(runtime.block_on(put_to_the_test(seed)));
    }
    assert!(waited > 500, "only {waited} had to wait");
}

/// Without lanes, floors and other limits nothing is uncertain, and nobody waits in vain.
#[test]
fn where_there_is_one_limit_everybody_is_refused_who_could_not_have_made_it() {
    for seed in 0..500 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(just_too_late(seed));
    }
}

async fn just_too_late(seed: u64) {
    let mut dice = Dice::new(seed);
    let window = dice.ms(100, 3000);
    let limits = match dice.roll(0, 3) {
        0 => Limit::sliding("sliding", dice.units(8, 20), window),
        1 => Limit::aligned("aligned", dice.units(8, 20), secs(10)),
        2 => Limit::token_bucket("bucket", dice.units(8, 20), window),
        _ => Limit::spacing("spacing", dice.ms(1, 300)),
    };
    let limits = [limits];
    let mut arrivals: Vec<_> = (0..dice.roll(20, 60))
        .map(|_| Arrival {
            at: dice.ms(0, 50),
            class: 0,
            cost: Cost::EACH,
            patience: far(),
        })
        .collect();
    arrivals.sort_by_key(|arrival| arrival.at);
    let patient = play(budget(&limits, 0), &arrivals).await;
    let last = arrivals.last_mut().unwrap();
    let waited = patient.last().unwrap().unwrap() - last.at;
    if waited.is_zero() {
        return;
    }
    last.patience = waited - ms(1);
    let at = last.at;
    let impatient = play(budget(&limits, 0), &arrivals).await;
    assert_eq!(
        *impatient.last().unwrap(),
        Err(at),
        "seed {seed}: {limits:?}"
    );
}
