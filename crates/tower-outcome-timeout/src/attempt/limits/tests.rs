use super::*;

const STEP: Duration = Duration::from_secs(1);

fn bounds(attempt: u32, head: u32, write_idle: u32) -> Bounds {
    let some = |steps: u32| (steps > 0).then(|| STEP * steps);
    Bounds {
        attempt: some(attempt),
        head: some(head),
        write_idle: some(write_idle),
        read_idle: None,
        grpc_timeout: false,
    }
}

fn limits(start: Instant, bounds: &Bounds) -> Limits {
    Limits::new(start, bounds, None)
}

#[test]
fn without_a_bound_nothing_is_ever_due() {
    let start = Instant::now();
    let limits = limits(start, &bounds(0, 0, 0));
    assert!(!limits.is_over(start));
    assert_eq!(limits.due(start + STEP, Progress::Untouched), Due::Never);
}

#[test]
fn the_attempt_runs_from_its_start_whatever_the_transport_does() {
    let start = Instant::now();
    let limits = limits(start, &bounds(10, 0, 0));
    let end = start + STEP * 10;
    for progress in [
        Progress::Untouched,
        Progress::Taking(start),
        Progress::Starved,
        Progress::Whole(start),
    ] {
        assert_eq!(limits.due(start + STEP * 9, progress), Due::At(end));
        let due = Due::Now(Bound::Attempt, STEP * 10);
        assert_eq!(limits.due(end, progress), due);
    }
}

#[test]
fn the_attempt_is_cut_to_what_is_left_of_the_call() {
    let start = Instant::now();
    let bounds = bounds(10, 0, 0);
    let at = |steps| Some(Deadline::at(start + STEP * steps));
    for (left, bound) in [
        (3, Bound::Deadline),
        (10, Bound::Deadline),
        (30, Bound::Attempt),
    ] {
        let limits = Limits::new(start, &bounds, at(left));
        let length = STEP * left.min(10);
        assert_eq!(
            limits.due(start + length, Progress::Untouched),
            Due::Now(bound, length)
        );
    }
    assert!(Limits::new(start, &bounds, at(0)).is_over(start));
    let none = self::bounds(0, 0, 0);
    let limits = Limits::new(start, &none, at(3));
    assert_eq!(
        limits.due(start, Progress::Untouched),
        Due::At(start + STEP * 3)
    );
}

#[test]
fn the_head_is_due_from_when_the_request_was_taken() {
    let start = Instant::now();
    let limits = limits(start, &bounds(0, 2, 0));
    for progress in [
        Progress::Untouched,
        Progress::Taking(start),
        Progress::Starved,
    ] {
        // As if it were taken right now: that is the earliest.
        let now = start + STEP * 50;
        assert_eq!(limits.due(now, progress), Due::At(now + STEP * 2));
    }
    let taken = Progress::Whole(start + STEP * 5);
    assert_eq!(
        limits.due(start + STEP * 6, taken),
        Due::At(start + STEP * 7)
    );
    assert_eq!(
        limits.due(start + STEP * 7, taken),
        Due::Now(Bound::Head, STEP * 2)
    );
}

#[test]
fn writing_is_idle_only_while_the_next_move_is_the_transports() {
    let start = Instant::now();
    let limits = limits(start, &bounds(0, 0, 2));
    let now = start + STEP * 50;
    for progress in [Progress::Untouched, Progress::Starved] {
        assert_eq!(limits.due(now, progress), Due::At(now + STEP * 2));
    }
    assert_eq!(limits.due(now, Progress::Whole(start)), Due::Never);
    let taking = Progress::Taking(start + STEP * 49);
    assert_eq!(limits.due(now, taking), Due::At(start + STEP * 51));
    let due = Due::Now(Bound::WriteIdle, STEP * 2);
    assert_eq!(limits.due(start + STEP * 51, taking), due);
}

#[test]
fn the_earliest_of_several_strikes() {
    let start = Instant::now();
    let limits = limits(start, &bounds(10, 2, 1));
    let due = limits.due(start + STEP * 20, Progress::Taking(start));
    assert_eq!(due, Due::Now(Bound::WriteIdle, STEP));
    let due = limits.due(start + STEP * 20, Progress::Whole(start + STEP * 9));
    assert_eq!(due, Due::Now(Bound::Attempt, STEP * 10));
}

#[test]
fn a_bound_beyond_all_clocks_is_never_due() {
    let start = Instant::now();
    let mut bounds = bounds(0, 0, 0);
    bounds.attempt = Some(Duration::MAX);
    bounds.head = Some(Duration::MAX);
    bounds.write_idle = Some(Duration::MAX);
    let limits = limits(start, &bounds);
    assert_eq!(limits.due(start, Progress::Untouched), Due::Never);
}
