//! The venue's own count never exceeds its limit, however requests travel.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::poll_immediate;
use tokio::{
    runtime,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};
use tower_outcome_rate_limit::{Budget, Class, Cost, Guard, Limit, Permit, Ticket};

use crate::{
    support::{exact, ms},
    venue::{Arrival, Counting, Dice, worst},
};

const SEEDS: u64 = 1000;
/// As many are enough to show that something is not safe.
const FEW_SEEDS: u64 = 200;

/// How long a request takes to the venue.
#[derive(Clone, Copy, Debug)]
enum Way {
    Instant,
    /// Mostly a few milliseconds, sometimes up to a second.
    HeavyTail,
    /// As long as the others, give or take this much.
    Spread(Duration),
}

/// One run: what the budget believes, and what is true.
#[derive(Clone, Debug)]
struct Run {
    guard: Guard,
    way: Way,
    /// Whether callers give up on requests, and requests on the way.
    fickle: bool,
    limits: Vec<(Limit, Counting, u32)>,
    requests: u64,
    span: Duration,
}

/// A limit, and the most that a venue counted of it.
#[derive(Clone, Copy, Debug)]
struct Count {
    capacity: u32,
    worst: u64,
}

fn name(index: usize) -> String {
    format!("limit {index}")
}

/// A window, and a venue that counts it in one of the ways in which venues do.
fn window(dice: &mut Dice, index: usize) -> (Limit, Counting, u32) {
    let capacity = dice.units(6, 24);
    let window = dice.ms(100, 2000);
    match dice.roll(0, 3) {
        0 | 1 => (
            Limit::sliding(name(index), capacity, window),
            Counting::Sliding { window },
            capacity,
        ),
        2 => {
            let phase = ms(dice.roll(0, window.as_millis() as u64 - 1));
            // The budget knows nothing of the venue's clock.
            (
                Limit::aligned(name(index), capacity, window),
                Counting::Fixed { window, phase },
                capacity,
            )
        }
        _ => {
            let tokens = dice.units(capacity / 2, capacity);
            (
                Limit::token_bucket(name(index), tokens, window).burst(capacity),
                Counting::Bucket {
                    tokens,
                    per: window,
                },
                capacity,
            )
        }
    }
}

impl Run {
    /// Several limits of any kind, at about twice the load that they take.
    fn any(seed: u64, guard: Guard, way: Way, fickle: bool) -> (Self, Dice) {
        let mut dice = Dice::new(seed);
        let limits: Vec<_> = (0..dice.roll(1, 3) as usize)
            .map(|index| window(&mut dice, index))
            .collect();
        (Self::of(guard, way, fickle, limits), dice)
    }

    /// One limit against a venue that counts a sliding window.
    fn against_sliding(
        seed: u64,
        guard: Guard,
        way: Way,
        fickle: bool,
        limit: impl Fn(u32, Duration) -> Limit,
    ) -> (Self, Dice) {
        let mut dice = Dice::new(seed);
        let capacity = dice.units(6, 24);
        let window = dice.ms(100, 2000);
        let limit = limit(capacity, window);
        let limits = vec![(limit, Counting::Sliding { window }, capacity)];
        (Self::of(guard, way, fickle, limits), dice)
    }

    fn of(guard: Guard, way: Way, fickle: bool, limits: Vec<(Limit, Counting, u32)>) -> Self {
        let spans = limits.iter().map(|(_, counting, _)| match counting {
            Counting::Sliding { window } | Counting::Fixed { window, .. } => *window,
            Counting::Bucket { per, .. } => *per,
        });
        let span = 4 * spans.max().unwrap();
        let capacity = limits.iter().map(|&(_, _, capacity)| capacity).max();
        Self {
            guard,
            way,
            fickle,
            limits,
            requests: u64::from(capacity.unwrap()) * 3,
            span,
        }
    }

    /// Plays it on a clock of its own.
    fn play(self, mut dice: Dice) -> Vec<Count> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let arrivals = runtime.block_on(async {
            let mut budget = exact("venue")
                .guard(self.guard)
                .class(Class::new("order"))
                .class(Class::new("query").leave_percent(10).floor_percent(5));
            for (limit, _, _) in &self.limits {
                budget = budget.limit(limit.clone());
            }
            let budget = budget.build().unwrap();
            let arrivals = Arc::new(Mutex::new(vec![Vec::new(); self.limits.len()]));
            let start = Instant::now();
            let mut requests = JoinSet::new();
            for _ in 0..self.requests {
                let request = Request::draw(&mut dice, &self, start, arrivals.clone());
                requests.spawn(request.live(budget.clone()));
            }
            requests.join_all().await;
            Arc::into_inner(arrivals).unwrap().into_inner().unwrap()
        });
        let counts = self.limits.iter().zip(arrivals);
        counts
            .map(|((_, counting, capacity), arrivals)| Count {
                capacity: *capacity,
                worst: worst(*counting, &arrivals),
            })
            .collect()
    }
}

struct Request {
    dice: Dice,
    way: Way,
    fickle: bool,
    late: Duration,
    units: Vec<u32>,
    start: Instant,
    at: Duration,
    arrivals: Arc<Mutex<Vec<Vec<Arrival>>>>,
}

impl Request {
    fn draw(
        dice: &mut Dice,
        run: &Run,
        start: Instant,
        arrivals: Arc<Mutex<Vec<Vec<Arrival>>>>,
    ) -> Self {
        let mut units: Vec<u32> = run
            .limits
            .iter()
            .map(|_| {
                if dice.percent(20) {
                    0
                } else {
                    dice.units(1, 5)
                }
            })
            .collect();
        if units.iter().all(|&units| units == 0) {
            units[0] = 1;
        }
        Self {
            way: run.way,
            fickle: run.fickle,
            late: match run.guard {
                Guard::UntilResponse { late } => late,
                _ => Duration::ZERO,
            },
            units,
            start,
            at: ms(dice.roll(0, run.span.as_millis() as u64)),
            arrivals,
            dice: dice.split(),
        }
    }

    async fn live(mut self, budget: Budget) {
        sleep_until(self.start + self.at).await;
        let Some(permit) = self.wait(&budget).await else {
            return;
        };
        let out = match self.way {
            Way::Instant => Duration::ZERO,
            Way::HeavyTail if self.dice.percent(85) => self.dice.ms(0, 20),
            Way::HeavyTail => self.dice.ms(0, 1000),
            Way::Spread(spread) => ms(50) + self.dice.ms(0, spread.as_millis() as u64),
        };
        if self.fickle && self.dice.percent(5) {
            // Nothing is sent after all.
            sleep(self.dice.ms(0, 500)).await;
            permit.refund();
        } else if self.fickle && self.dice.percent(15) {
            // Given up on, perhaps before it arrives; then it may do so for as long as the guard
            // says.
            let patience = self.dice.ms(0, 300);
            self.arrives(match self.way {
                Way::Spread(_) => out,
                Way::Instant | Way::HeavyTail => out.min(patience + self.late),
            });
            sleep(patience).await;
            drop(permit);
        } else {
            self.arrives(out);
            sleep(out + self.dice.ms(0, 50)).await;
            permit.responded();
        }
    }

    async fn wait(&mut self, budget: &Budget) -> Option<Permit> {
        let mut cost = [0; 3];
        cost[..self.units.len()].copy_from_slice(&self.units);
        let ticket = Ticket::new()
            .class(self.dice.roll(0, 1) as usize)
            .cost(Cost::in_order(cost));
        if self.dice.percent(10) {
            return budget.try_acquire(&ticket).ok();
        }
        if self.dice.percent(10) {
            let ticket = ticket.deadline(Instant::now() + self.dice.ms(0, 2000));
            return budget.acquire(ticket).await.ok();
        }
        if self.fickle && self.dice.percent(20) {
            let patience = self.dice.ms(0, 1000);
            return timeout(patience, budget.acquire(ticket)).await.ok()?.ok();
        }
        if self.fickle && self.dice.percent(20) {
            // Looks away while it waits, and may have lost interest when it looks again: then it
            // has perhaps been let through already.
            let mut acquire = budget.acquire(ticket);
            if let Some(result) = poll_immediate(&mut acquire).await {
                return result.ok();
            }
            sleep(self.dice.ms(0, 500)).await;
            if self.dice.percent(50) {
                return None;
            }
            return acquire.await.ok();
        }
        budget.acquire(ticket).await.ok()
    }

    fn arrives(&self, after: Duration) {
        let at = self.start.elapsed() + after;
        let mut arrivals = self.arrivals.lock().unwrap();
        for (arrivals, &units) in arrivals.iter_mut().zip(&self.units) {
            if units > 0 {
                arrivals.push((at, units));
            }
        }
    }
}

/// How many of the runs exceeded a limit, and how much was counted of one at most, in percent of it.
fn exceeded(play: impl Fn(u64) -> Vec<Count>) -> (u64, u64) {
    let (mut runs, mut most) = (0, 0);
    for seed in 0..FEW_SEEDS {
        let counts = play(seed);
        if counts.iter().any(|count| count.exceeds()) {
            runs += 1;
        }
        let percent = counts
            .iter()
            .map(|count| count.worst * 100 / u64::from(count.capacity));
        most = most.max(percent.max().unwrap());
    }
    (runs, most)
}

impl Count {
    fn exceeds(self) -> bool {
        self.worst > u64::from(self.capacity)
    }
}

fn never_exceeded(play: impl Fn(u64) -> Vec<Count>) {
    let mut full = 0;
    for seed in 0..SEEDS {
        let counts = play(seed);
        for count in &counts {
            assert!(!count.exceeds(), "seed {seed}: {counts:?}");
            full += u64::from(count.worst == u64::from(count.capacity));
        }
    }
    // It is not within the limit for want of requests.
    assert!(full > SEEDS / 4, "only {full} limits were ever full");
}

#[test]
fn held_until_the_response_nothing_exceeds_any_venue() {
    never_exceeded(|seed| {
        let (run, dice) = Run::any(seed, Guard::default(), Way::HeavyTail, true);
        run.play(dice)
    });
}

#[test]
fn what_was_given_up_on_is_counted_as_late_as_it_may_arrive() {
    never_exceeded(|seed| {
        let late = ms(Dice::new(seed).roll(0, 500));
        let guard = Guard::UntilResponse { late };
        let (run, dice) = Run::any(seed, guard, Way::HeavyTail, true);
        run.play(dice)
    });
}

#[test]
fn a_log_of_departures_exceeds_the_venue_as_soon_as_requests_travel() {
    let none = |way| {
        exceeded(|seed| {
            let (run, dice) =
                Run::against_sliding(seed, Guard::None, way, false, |capacity, window| {
                    Limit::sliding("requests", capacity, window)
                });
            run.play(dice)
        })
    };
    assert_eq!(none(Way::Instant).0, 0, "it is exact where nothing travels");
    let (runs, most) = none(Way::HeavyTail);
    assert!(runs > FEW_SEEDS / 2 && most >= 150, "{runs} runs, {most} %");
}

#[test]
fn a_bucket_of_the_window_s_size_exceeds_the_window_even_where_nothing_travels() {
    for way in [Way::Instant, Way::HeavyTail] {
        let (runs, most) = exceeded(|seed| {
            let (run, dice) =
                Run::against_sliding(seed, Guard::None, way, false, |capacity, window| {
                    Limit::token_bucket("requests", capacity, window)
                });
            run.play(dice)
        });
        assert!(runs > FEW_SEEDS / 2 && most >= 150, "{runs} runs, {most} %");
    }
}

#[test]
fn a_window_made_longer_by_the_spread_of_latencies_is_not_exceeded() {
    never_exceeded(|seed| {
        let spread = ms(Dice::new(seed).roll(0, 400));
        let (run, dice) = Run::against_sliding(
            seed,
            Guard::Fixed(spread),
            Way::Spread(spread),
            true,
            |capacity, window| Limit::sliding("requests", capacity, window),
        );
        run.play(dice)
    });
}

#[test]
fn a_bucket_made_smaller_by_the_spread_of_latencies_is_not_overdrawn() {
    never_exceeded(|seed| {
        let mut dice = Dice::new(seed);
        let burst = dice.units(12, 30);
        let tokens = dice.units(6, 12);
        let per = dice.ms(500, 2000);
        // Less comes back in that time than the bucket holds.
        let spread = dice.ms(0, 300);
        let bucket = (
            Limit::token_bucket("requests", tokens, per).burst(burst),
            Counting::Bucket { tokens, per },
            burst,
        );
        let way = Way::Spread(spread);
        let run = Run::of(Guard::Fixed(spread), way, true, vec![bucket]);
        run.play(dice)
    });
}

#[test]
fn a_guard_that_is_shorter_than_the_spread_is_not_enough() {
    let (runs, _) = exceeded(|seed| {
        let (run, dice) = Run::against_sliding(
            seed,
            Guard::Fixed(ms(100)),
            Way::Spread(ms(400)),
            false,
            |capacity, window| Limit::sliding("requests", capacity, window),
        );
        run.play(dice)
    });
    assert!(runs > FEW_SEEDS / 2, "{runs} runs");
}
