//! How much is measured.

/// How much is measured, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Rounds in which uncontended cases take turns.
    pub(crate) rounds: u32,
    /// Calls in one turn.
    pub(crate) burst: u32,
    /// Calls that callgrind and the allocator count; 0 leaves callgrind out.
    pub(crate) calls: u32,
    /// Rounds in which cases take turns on two threads.
    pub(crate) pair_rounds: u32,
    /// Calls of each thread in one turn.
    pub(crate) pair_burst: u32,
    /// Tasks that wait while the clock runs.
    pub(crate) herd: u32,
    /// Waiters in a queue, and tasks that are drained.
    pub(crate) waiters: u32,
    /// Rounds in which drains take turns.
    pub(crate) drains: u32,
}

// === impl Effort ===

impl Effort {
    pub(crate) const FULL: Self = Self {
        rounds: 1000,
        burst: 1000,
        calls: 5000,
        pair_rounds: 31,
        pair_burst: 100_000,
        herd: 8000,
        waiters: 1_000_000,
        drains: 3,
    };

    pub(crate) const QUICK: Self = Self {
        rounds: 200,
        burst: 500,
        calls: 1000,
        pair_rounds: 11,
        pair_burst: 50_000,
        herd: 1000,
        // Fills its tables as much as a million does.
        waiters: 125_000,
        drains: 3,
    };

    /// As much as shows that everything works.
    pub(crate) const TRIAL: Self = Self {
        rounds: 1,
        burst: 3,
        calls: 0,
        pair_rounds: 1,
        pair_burst: 3,
        herd: 120,
        waiters: 1200,
        drains: 1,
    };
}
