//! Counting allocations, and what is kept of them.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a piece of work did to the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heap {
    /// Growing an allocation counts as another.
    pub(crate) allocations: f64,
    /// Bytes that were not given back.
    pub(crate) kept: f64,
}

/// Does the work and tells what it did to the heap.
pub(crate) fn during<T>(work: impl FnOnce() -> T) -> (T, Heap) {
    let region = Region::new(ALLOCATOR);
    let done = work();
    let counted = region.change();
    let heap = Heap {
        allocations: (counted.allocations + counted.reallocations) as f64,
        kept: counted.bytes_allocated as f64 - counted.bytes_deallocated as f64,
    };
    (done, heap)
}
