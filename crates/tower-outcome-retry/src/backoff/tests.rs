use proptest::prelude::*;
use tower_outcome_core::SplitMix64;

use super::*;

#[derive(Debug)]
struct Always(u64);

impl Random for Always {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

const LOWEST: Always = Always(0);
const HIGHEST: Always = Always(u64::MAX);

fn plain() -> Backoff {
    Backoff::new().jitter(Jitter::None)
}

#[test]
fn spans_double_up_to_the_cap() {
    let backoff = plain().cap(Duration::from_millis(300));
    let spans: Vec<u128> = (0..5)
        .map(|failures| {
            backoff
                .delay(failures, Reason::Transport, &LOWEST)
                .as_millis()
        })
        .collect();
    assert_eq!(spans, [50, 100, 200, 300, 300]);
}

#[test]
fn a_server_that_asks_for_less_is_given_a_second() {
    let delay = plain().delay(0, Reason::RateLimited, &LOWEST);
    assert_eq!(delay, Duration::from_secs(1));
}

#[test]
fn full_jitter_reaches_both_ends_of_whole_second_spans() {
    // A spread that is drawn for seconds and for nanoseconds apart gives whole seconds no spread.
    let backoff = Backoff::new().base(Duration::from_secs(1));
    assert_eq!(backoff.delay(0, Reason::Transport, &LOWEST), Duration::ZERO);
    assert_eq!(
        backoff.delay(0, Reason::Transport, &HIGHEST),
        Duration::from_secs(1)
    );
    let middle = backoff.delay(0, Reason::Transport, &Always(u64::MAX / 2));
    assert_eq!(middle, Duration::from_millis(500));
}

#[test]
fn equal_jitter_never_comes_back_before_half_the_span() {
    let backoff = Backoff::new()
        .base(Duration::from_secs(1))
        .jitter(Jitter::Equal);
    assert_eq!(
        backoff.delay(0, Reason::Transport, &LOWEST),
        Duration::from_millis(500)
    );
    assert_eq!(
        backoff.delay(0, Reason::Transport, &HIGHEST),
        Duration::from_secs(1)
    );
}

proptest! {
    #[test]
    fn no_wait_exceeds_the_cap_and_nothing_panics(
        base in any::<Duration>(),
        throttled in any::<Duration>(),
        cap in any::<Duration>(),
        factor in any::<u32>(),
        failures in any::<u32>(),
        seed in any::<u64>(),
        throttle in any::<bool>(),
    ) {
        let random = SplitMix64::seeded(seed);
        let reason = if throttle { Reason::RateLimited } else { Reason::Transport };
        for jitter in [Jitter::None, Jitter::Equal, Jitter::Full] {
            let backoff = Backoff::new()
                .base(base).throttled_base(throttled).cap(cap).factor(factor).jitter(jitter);
            prop_assert!(backoff.delay(failures, reason, &random) <= cap);
        }
    }

    #[test]
    fn spans_never_shrink_with_more_failures(failures in 0_u32..64) {
        let backoff = plain();
        let shorter = backoff.delay(failures, Reason::Transport, &LOWEST);
        let longer = backoff.delay(failures + 1, Reason::Transport, &LOWEST);
        prop_assert!(shorter <= longer);
    }
}
