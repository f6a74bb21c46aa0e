//! The limiters that ours is compared with.

use std::{hint::black_box, num::NonZeroU32, time::Duration};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter, clock::MonotonicClock};
use leaky_bucket::RateLimiter as LeakyBucket;
use tokio::{sync::Semaphore, time::Instant};

use crate::cases::{Burst, at_once};

/// Never refuses: a burst of 10^9, and 10^9 a second.
pub(crate) fn governor_check() -> Burst {
    let limiter = governor(Duration::from_nanos(1), 1_000_000_000);
    Box::new(move |calls| {
        for _ in 0..calls {
            assert!(black_box(&limiter.check()).is_ok(), "never refuses");
        }
    })
}

/// The same by the clock of the standard library, which tokio's is too.
pub(crate) fn governor_check_std() -> Burst {
    let quota = Quota::with_period(Duration::from_nanos(1)).expect("is not zero");
    let burst = NonZeroU32::new(1_000_000_000).expect("is not zero");
    let limiter = RateLimiter::direct_with_clock(quota.allow_burst(burst), MonotonicClock);
    Box::new(move |calls| {
        for _ in 0..calls {
            assert!(black_box(&limiter.check()).is_ok(), "never refuses");
        }
    })
}

/// One an hour.
pub(crate) fn governor_refusal() -> Burst {
    let limiter = governor(Duration::from_secs(3600), 1);
    assert!(limiter.check().is_ok(), "is full at first");
    Box::new(move |calls| {
        for _ in 0..calls {
            assert!(black_box(&limiter.check()).is_err(), "has nothing left");
        }
    })
}

/// Never refuses: 10^9 a second.
pub(crate) fn leaky_bucket_try_acquire() -> Burst {
    let limiter = leaky_bucket(1_000_000, Duration::from_millis(1), 1_000_000);
    Box::new(move |calls| {
        for _ in 0..calls {
            assert!(black_box(limiter.try_acquire(1)), "never refuses");
        }
    })
}

pub(crate) fn semaphore_acquire() -> Burst {
    let semaphore = Semaphore::new(1000);
    Box::new(move |calls| {
        for _ in 0..calls {
            let permit = at_once(semaphore.acquire());
            assert!(black_box(&permit).is_ok(), "is never closed");
        }
    })
}

pub(crate) fn instant_now() -> Burst {
    Box::new(|calls| {
        for _ in 0..calls {
            black_box(Instant::now());
        }
    })
}

/// One each `period`, and a burst.
pub(crate) fn governor(period: Duration, burst: u32) -> DefaultDirectRateLimiter {
    let quota = Quota::with_period(period).expect("is not zero");
    let burst = NonZeroU32::new(burst).expect("is not zero");
    RateLimiter::direct(quota.allow_burst(burst))
}

/// So many each `interval`, and at most and at first as many as `burst`.
pub(crate) fn leaky_bucket(refill: usize, interval: Duration, burst: usize) -> LeakyBucket {
    LeakyBucket::builder()
        .initial(burst)
        .max(burst)
        .refill(refill)
        .interval(interval)
        .build()
}
