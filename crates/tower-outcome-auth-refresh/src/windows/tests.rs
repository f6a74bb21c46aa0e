use tower_outcome_core::SplitMix64;

use super::*;

/// Draws always the same.
#[derive(Debug)]
struct Always(u64);

impl Random for Always {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn windows_are_scaled_by_the_lifetime() {
    let cases = [
        // Lifetime, advisory, mandatory, in seconds.
        (10, 5, 1),
        (120, 60, 12),
        (600, 300, 60),
        (1200, 300, 60),
        (1230, 615, 60),
        (1801, 900, 60),
        (5399, 900, 60),
        (5400, 2700, 60),
        (6 * 3600, 3600, 60),
    ];
    for (lifetime, advisory, mandatory) in cases {
        let lifetime = Duration::from_secs(lifetime);
        let whole = Windows::by_lifetime().of(lifetime, &Always(u64::MAX));
        let expected = (
            Duration::from_secs(advisory),
            Duration::from_secs(mandatory),
        );
        assert_eq!(whole, expected, "{lifetime:?}");
        let (half, _) = Windows::by_lifetime().of(lifetime, &Always(0));
        assert_eq!(half, expected.0 / 2, "{lifetime:?}");
    }
}

#[test]
fn fixed_windows_leave_at_least_half_of_a_lifetime() {
    let windows = Windows::fixed(MINUTE * 10, MINUTE * 5);
    let (advisory, mandatory) = windows.of(MINUTE, &SplitMix64::seeded(7));
    assert_eq!((advisory, mandatory), (MINUTE / 2, MINUTE / 2));
}

#[test]
fn no_lifetime_is_too_long_or_too_short() {
    for lifetime in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let (advisory, mandatory) = Windows::by_lifetime().of(lifetime, &SplitMix64::seeded(7));
        assert!(mandatory <= advisory && advisory <= lifetime);
    }
}
