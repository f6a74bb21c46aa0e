//! What a waiter weighs, and what it costs to come and to give up.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Waker},
    time::Duration,
};

use tokio::{
    runtime::{self, Runtime},
    sync::Semaphore,
    time::{Instant, sleep},
};
use tower_outcome::rate_limit::{Budget, Guard, Limit};

use crate::{
    effort::Effort,
    heap, ours, peers,
    report::{Figure, Row, Table},
    time,
};

/// What waiters cost.
struct Crowd {
    /// The future and what it keeps elsewhere, of each.
    bytes: f64,
    /// Of all of them, apart from the futures.
    allocations: f64,
    enqueue: f64,
    cancel: f64,
}

const SECOND: Duration = Duration::from_secs(1);

/// Bytes.
const BOUND: f64 = 128.0;

/// Measures peers and ours with nobody ever getting a turn.
pub(crate) fn measure(effort: &Effort) -> Table {
    let n = effort.waiters;
    let runtime = paused();
    let _entered = runtime.enter();

    let leaky_bucket = peers::leaky_bucket(1000, SECOND, 1000);
    assert!(leaky_bucket.try_acquire(1000), "is full at first");
    let leaky_bucket = crowd(n, |_| leaky_bucket.acquire_one());
    let semaphore = Semaphore::new(0);
    let semaphore = crowd(n, |_| semaphore.acquire());
    let timer = crowd(n, |_| sleep(SECOND));

    let budget = spent();
    let plain = crowd(n, |_| budget.acquire(ours::ticket()));
    let budget = spent();
    let now = Instant::now();
    let deadline = crowd(n, |waiter| {
        budget.acquire(ours::ticket().deadline(now + scattered(waiter)))
    });

    let row = |case, about, crowd: &Crowd, bound: Option<f64>| Row {
        case,
        about,
        figures: vec![
            Figure::new("bytes", crowd.bytes).at_most(bound),
            Figure::new("allocations", crowd.allocations),
            Figure::new("enqueue_ns", crowd.enqueue),
            Figure::new("cancel_ns", crowd.cancel),
        ],
    };
    let rows = vec![
        row("leaky_bucket_acquire", "leaky-bucket", &leaky_bucket, None),
        row("semaphore_acquire", "tokio's Semaphore", &semaphore, None),
        row("sleep", "a timer for each", &timer, None),
        row("outcome_acquire", "without a deadline", &plain, Some(BOUND)),
        row(
            "outcome_acquire_deadline",
            "with a deadline each",
            &deadline,
            Some(BOUND),
        ),
    ];
    Table {
        about: format!(
            "{n} waiters; bytes of each with its future, allocations of all without the futures",
        ),
        rows,
    }
}

/// Lets so many wait and then give up, every other one first.
fn crowd<F: Future>(waiters: u32, wait: impl Fn(u32) -> F) -> Crowd {
    let each = |value: f64| value / f64::from(waiters);
    let mut cell = Vec::with_capacity(waiters as usize);
    let ((), came) = heap::during(|| {
        // Where each is, it can be dropped without giving its place back.
        cell.extend((0..waiters).map(|waiter| Box::pin(Some(wait(waiter)))));
    });
    let places = size_of::<Option<F>>() * waiters as usize;
    let (((), enqueue), queued) = heap::during(|| {
        time::during(|| {
            let mut context = Context::from_waker(Waker::noop());
            for place in &mut cell {
                let future = place.as_mut().as_pin_mut().expect("is there");
                assert!(future.poll(&mut context).is_pending(), "has to wait");
            }
        })
    });
    let ((), cancel) = time::during(|| {
        let leave = |place: &mut Pin<Box<Option<F>>>| place.set(None);
        cell.iter_mut().step_by(2).for_each(leave);
        cell.iter_mut().skip(1).step_by(2).for_each(leave);
    });
    Crowd {
        bytes: size_of::<F>() as f64 + each(came.kept - places as f64 + queued.kept),
        allocations: queued.allocations + came.allocations - f64::from(waiters),
        enqueue: time::ns_each(enqueue.wall, waiters),
        cancel: time::ns_each(cancel.wall, waiters),
    }
}

/// A budget that is spent for as long as the clock stands still.
fn spent() -> Budget {
    let budget = ours::budget(Limit::sliding("requests", 1000, SECOND), Guard::None);
    for _ in 0..1000 {
        assert!(
            budget.try_acquire(&ours::ticket()).is_ok(),
            "is full at first"
        );
    }
    budget
}

/// A deadline late enough for everybody, and in no order.
fn scattered(waiter: u32) -> Duration {
    let spread = waiter.wrapping_mul(0x9e37_79b9) % 1_000_000;
    Duration::from_secs(100_000) + Duration::from_millis(u64::from(spread))
}

fn paused() -> Runtime {
    runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("needs nothing")
}
