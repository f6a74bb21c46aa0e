//! Measuring cases, each against its bare loop.

use crate::{
    allocations::{self, Allocations},
    call::Sent,
    callgrind::Callgrind,
    cases::{self, Case},
    time::{self, Contender},
};

/// How much is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Calls that are counted.
    calls: u32,
    /// Rounds in which the loops take turns.
    rounds: u32,
    /// Calls in one turn.
    burst: u32,
}

/// What a case costs a call.
pub(crate) struct Figures<'a> {
    pub(crate) case: &'a Case,
    /// Over bare; `None` where they cannot be counted.
    pub(crate) instructions: Option<f64>,
    /// Over bare.
    pub(crate) allocations: f64,
    /// Over bare.
    pub(crate) bytes: f64,
    /// As a multiple of bare.
    pub(crate) ns_ratio: f64,
}

/// What one call of a loop costs.
#[derive(Clone, Copy, Debug)]
struct Counts {
    instructions: Option<f64>,
    allocations: Allocations,
}

// === impl Effort ===

impl Effort {
    pub(crate) const FULL: Self = Self {
        calls: 2000,
        rounds: 500,
        burst: 1000,
    };

    pub(crate) const QUICK: Self = Self {
        calls: 500,
        rounds: 50,
        burst: 500,
    };
}

/// Measures the cases.
pub(crate) fn all<'a>(cases: &[&'a Case], effort: Effort) -> Vec<Figures<'a>> {
    let times = ratios(cases, effort);
    let callgrind = Callgrind::find(effort.calls);
    let count = |case: &Case, bare: bool| {
        let mut burst = if bare {
            cases::start_bare(case.sent)
        } else {
            case.start()
        };
        Counts {
            instructions: callgrind
                .as_ref()
                .and_then(|it| it.per_call(case.name, bare)),
            allocations: allocations::per_call(&mut *burst, effort.calls),
        }
    };
    let mut bares: Vec<(Sent, Counts)> = Vec::new();
    let mut results = Vec::new();
    for (&case, ns_ratio) in cases.iter().zip(times) {
        let bare = match bares.iter().find(|(sent, _)| *sent == case.sent) {
            Some((_, counts)) => *counts,
            None => {
                let counts = count(case, true);
                bares.push((case.sent, counts));
                counts
            }
        };
        let own = count(case, false);
        results.push(Figures {
            case,
            instructions: own
                .instructions
                .zip(bare.instructions)
                .map(|(own, bare)| own - bare),
            allocations: own.allocations.count - bare.allocations.count,
            bytes: own.allocations.bytes - bare.allocations.bytes,
            ns_ratio,
        });
    }
    results
}

fn ratios(cases: &[&Case], effort: Effort) -> Vec<f64> {
    // Each case is followed by its bare loop, so that the two are close in time.
    let mut contenders: Vec<Contender> = Vec::new();
    for case in cases {
        let bare = contenders.len() + 1;
        contenders.push(Contender {
            burst: case.start(),
            against: bare,
        });
        contenders.push(Contender {
            burst: cases::start_bare(case.sent),
            against: bare,
        });
    }
    let ratios = time::ratios(&mut contenders, effort.rounds, effort.burst);
    ratios.into_iter().step_by(2).collect()
}
