use proptest::prelude::*;

use super::*;
use crate::Limit;

const MS: u64 = 1_000_000;

const EXACT: Margin = Margin {
    spread: Duration::ZERO,
    ppm: 0,
    granularity: Duration::ZERO,
};

const CLOCK: ServerClock = ServerClock::unknown(0);

/// What happens to a limit, each a little later than the one before.
#[derive(Clone, Copy, Debug)]
enum Step {
    Hold(u32),
    Settle(u32),
    Release(u32),
    Log(u32),
    Unlog,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        (1..6_u32).prop_map(Step::Hold),
        (1..6_u32).prop_map(Step::Settle),
        (1..6_u32).prop_map(Step::Release),
        (1..6_u32).prop_map(Step::Log),
        Just(Step::Unlog),
    ];
    prop::collection::vec((0..40 * MS, step), 1..60)
}

/// Plays the steps, and checks the limit after each against what is logged and held.
fn play(
    rule: &mut Rule,
    steps: &[(u64, Step)],
    mut check: impl FnMut(&mut Rule, u64, &[(u64, u32)], u32),
) {
    let (mut now, mut held) = (0, 0);
    let mut log: Vec<(u64, u32)> = Vec::new();
    for &(later, step) in steps {
        now += later;
        match step {
            // As a budget does, which takes no more than fits.
            Step::Hold(units) | Step::Log(units) if rule.ready_at(now, units, 0, &CLOCK) > now => {}
            Step::Hold(units) => {
                rule.hold(units);
                held += units;
            }
            Step::Log(units) => {
                rule.log(now, units);
                log.push((now, units));
            }
            Step::Settle(units) if units <= held => {
                rule.settle(now, units, &CLOCK);
                held -= units;
                log.push((now, units));
            }
            Step::Release(units) if units <= held => {
                rule.refund(units);
                held -= units;
            }
            Step::Unlog if !log.is_empty() => {
                let (stamp, units) = log.remove(log.len() / 2);
                rule.unlog(now, stamp, units, &CLOCK);
            }
            Step::Settle(_) | Step::Release(_) | Step::Unlog => {}
        }
        check(rule, now, &log, held);
    }
}

proptest! {
    #[test]
    fn a_window_says_the_first_instant_at_which_something_fits(
        steps in steps(), capacity in 8..20_u32, units in 1..6_u32, leave in 0..3_u32,
    ) {
        let window = 100 * MS;
        let limit = Limit::sliding("a", capacity, Duration::from_nanos(window));
        let mut rule = Rule::new(limit.kind, EXACT);
        play(&mut rule, &steps, |rule, now, log, held| {
            let counted = |at: u64| -> u32 {
                let alive = log.iter().filter(|&&(stamp, _)| stamp + window > at);
                alive.map(|&(_, units)| units).sum()
            };
            assert_eq!(rule.taken(now, &CLOCK), Taken { logged: counted(now), phantom: 0, held });
            let fits = |&at: &u64| counted(at) + held + units <= capacity - leave;
            let ends = log.iter().map(|&(stamp, _)| stamp + window).filter(|&end| end > now);
            let mut ends: Vec<u64> = ends.collect();
            ends.sort_unstable();
            let first = std::iter::once(now).chain(ends).find(fits).unwrap_or(NEVER);
            assert_eq!(rule.ready_at(now, units, leave, &CLOCK), first);
        });
    }

    #[test]
    fn a_bucket_says_the_first_instant_at_which_something_fits(
        steps in steps(), burst in 8..20_u32, tokens in 1..50_u32, units in 1..6_u32,
    ) {
        let per = Duration::from_millis(100);
        let limit = Limit::token_bucket("a", tokens, per).burst(burst);
        let mut rule = Rule::new(limit.kind, EXACT);
        play(&mut rule, &steps, |rule, now, _, held| {
            let at = rule.ready_at(now, units, 0, &CLOCK);
            if at == NEVER {
                assert!(held + units > burst);
                return;
            }
            assert_eq!(rule.ready_at(at, units, 0, &CLOCK), at);
            if at > now {
                assert!(rule.ready_at(at - 1, units, 0, &CLOCK) > at - 1);
            }
        });
    }

    #[test]
    fn nothing_is_left_of_what_was_used_in_the_end(steps in steps(), coarse in any::<bool>()) {
        let window = Duration::from_millis(100);
        let capacity = if coarse { 5000 } else { 20 };
        let bucket = Limit::token_bucket("a", 7, window).burst(20);
        for kind in [Limit::sliding("a", capacity, window).kind, bucket.kind] {
            let mut rule = Rule::new(kind, EXACT);
            let mut last = 0;
            play(&mut rule, &steps, |_, now, _, _| last = now);
            let held = rule.taken(last, &CLOCK).held;
            rule.refund(held);
            let later = last + 1000 * MS;
            assert_eq!(rule.taken(later, &CLOCK), Taken::default());
            assert!(rule.is_idle(later, &CLOCK));
        }
    }
}

#[test]
fn a_window_is_widened_by_drift_and_spread_and_granularity() {
    let margin = Margin {
        spread: Duration::from_millis(30),
        ppm: 500,
        granularity: Duration::from_millis(1),
    };
    let widened = margin.widen(Duration::from_secs(1000));
    assert_eq!(widened, 1_000_000 * MS + 500 * MS + 31 * MS);
    assert_eq!(margin.widen(Duration::MAX), u64::MAX);
}

#[test]
fn a_unit_that_leaks_in_no_whole_number_of_nanoseconds_is_never_there_early() {
    let limit = Limit::token_bucket("a", 3, Duration::from_millis(100)).burst(1);
    let mut rule = Rule::new(limit.kind, EXACT);
    rule.log(0, 1);
    assert_eq!(rule.ready_at(0, 1, 0, &CLOCK), 33_333_334);
}
