//! Counting allocations.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use tower_outcome::StageStamp;

use crate::call::Burst;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a call allocates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocations {
    pub(crate) count: f64,
    pub(crate) bytes: f64,
}

/// Counts what each of so many calls allocates; growing an allocation counts as another.
pub(crate) fn per_call(burst: &mut dyn Burst, calls: u32) -> Allocations {
    // What is set up once, or for the first calls only (the marks by which layers see their order), is no
    // cost of a call.
    burst.run(StageStamp::ANSWERS);
    let region = Region::new(ALLOCATOR);
    burst.run(calls);
    let counted = region.change();
    let per_call = |total: usize| total as f64 / f64::from(calls);
    Allocations {
        count: per_call(counted.allocations + counted.reallocations),
        bytes: per_call(counted.bytes_allocated),
    }
}
