//! What it costs to ask while nobody waits.

use std::time::Duration;

use crate::{
    callgrind::Callgrind,
    cases::{self, Burst},
    effort::Effort,
    heap,
    report::{Figure, Row, Table},
    time,
};

/// Measures all cases.
pub(crate) fn measure(effort: &Effort) -> Table {
    let bursts: Vec<Burst> = cases::ALL.iter().map(|case| (case.start)()).collect();
    let times = shortest(&bursts, effort);
    let callgrind = Callgrind::find(effort.calls);
    let rows = cases::ALL.iter().zip(&bursts).zip(&times);
    let rows = rows.map(|((case, burst), time)| {
        // Every table has its size after that.
        burst(effort.calls);
        let ((), heap) = heap::during(|| burst(effort.calls));
        let instructions = callgrind.as_ref().and_then(|it| it.per_call(case.name));
        Row {
            case: case.name,
            about: case.about,
            figures: vec![
                Figure::new("ns", time::ns_each(*time, effort.burst)),
                Figure::new("ns_ratio", time.as_secs_f64() / times[0].as_secs_f64())
                    .at_most(case.bound),
                Figure::new("std_ratio", time.as_secs_f64() / times[1].as_secs_f64()),
                Figure::new("instructions", instructions),
                Figure::new("allocations", heap.allocations).at_most(case.allocations),
            ],
        }
    });
    Table {
        about: "per call; ns as a multiple of governor's, and of governor's with the standard library's \
                clock, which tokio's is too; allocations in all".to_owned(),
        rows: rows.collect(),
    }
}

/// The shortest time of each, over rounds in which they take turns: nothing but the work itself is
/// in all of them.
fn shortest(bursts: &[Burst], effort: &Effort) -> Vec<Duration> {
    let mut shortest = vec![Duration::MAX; bursts.len()];
    for _ in 0..effort.rounds {
        for (burst, shortest) in bursts.iter().zip(&mut shortest) {
            let ((), taken) = time::during(|| burst(effort.burst));
            *shortest = taken.wall.min(*shortest);
        }
    }
    shortest
}
