use proptest::prelude::*;

use super::*;

/// Somebody in a list that is kept the slow way.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    class: usize,
    cost: [u32; MAX_LIMITS],
    deadline: Option<u64>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Step {
    Join(usize, u32, u32, Option<u64>),
    Leave(prop::sample::Index),
}

fn cost(raw: u32, orders: u32) -> [u32; MAX_LIMITS] {
    let mut cost = [0; MAX_LIMITS];
    (cost[0], cost[1]) = (raw, orders);
    cost
}

fn step() -> impl Strategy<Value = Step> {
    let deadline = prop::option::of(0..1000_u64);
    prop_oneof![
        3 => (0..3_usize, 0..4_u32, 0..3_u32, deadline)
            .prop_map(|(class, raw, orders, deadline)| Step::Join(class, raw, orders, deadline)),
        2 => any::<prop::sample::Index>().prop_map(Step::Leave),
    ]
}

fn check(queue: &mut Queue, waiters: &[Waiter]) {
    assert_eq!(queue.len() as usize, waiters.len());
    let deadlines = waiters.iter().filter_map(|waiter| waiter.deadline);
    assert_eq!(queue.next_deadline().map(|(at, _)| at), deadlines.min());
    for class in 0..3 {
        let own = || waiters.iter().filter(move |waiter| waiter.class == class);
        assert_eq!(queue.waiting(class) as usize, own().count());
        for closed in 0..4 {
            let first = own().find(|waiter| mask_of(&waiter.cost, 2) & closed == 0);
            assert_eq!(queue.first(class, closed), first.map(|waiter| waiter.place));
            let overtaken = waiters
                .iter()
                .any(|waiter| waiter.class <= class && mask_of(&waiter.cost, 2) & closed != 0);
            assert_eq!(queue.would_overtake(class, closed), overtaken);
            // A newcomer that touches those limits.
            let ahead = queue.ahead(0..=class, closed);
            for (limit, ahead) in ahead.iter().enumerate().take(2) {
                let before = || {
                    waiters.iter().filter(|waiter| {
                        let mask = mask_of(&waiter.cost, 2);
                        waiter.class <= class && mask & !closed == 0 && mask & 1 << limit != 0
                    })
                };
                let units = before().map(|waiter| u64::from(waiter.cost[limit]));
                assert_eq!(ahead.units, units.sum::<u64>());
                assert_eq!(ahead.requests as usize, before().count());
                let highest = before().map(|waiter| waiter.class).min();
                assert_eq!(ahead.highest, highest);
            }
        }
        let lowest = waiters.iter().map(|waiter| waiter.class).max();
        let newest = waiters
            .iter()
            .rfind(|waiter| Some(waiter.class) == lowest && waiter.class > class);
        assert_eq!(
            queue.newest_below(class),
            newest.map(|waiter| waiter.place),
            "below {class}"
        );
    }
}

proptest! {
    #[test]
    fn lanes_are_one_line_seen_through_the_limits(steps in prop::collection::vec(step(), 1..80)) {
        let mut queue = Queue::new(2);
        let mut waiters: Vec<Waiter> = Vec::new();
        for step in steps {
            match step {
                Step::Join(class, raw, orders, deadline) => {
                    let cost = cost(raw, orders);
                    let place = queue.push(0, &Entrant { class, cost, deadline }, None);
                    waiters.push(Waiter { class, cost, deadline, place });
                }
                Step::Leave(index) if !waiters.is_empty() => {
                    let waiter = waiters.remove(index.index(waiters.len()));
                    queue.release(waiter.place);
                }
                Step::Leave(_) => {}
            }
            check(&mut queue, &waiters);
        }
    }
}

fn entrant(deadline: Option<u64>) -> Entrant {
    Entrant {
        class: 0,
        cost: cost(1, 0),
        deadline,
    }
}

#[test]
fn the_memory_of_a_rush_is_given_back_when_it_is_over() {
    let mut queue = Queue::new(2);
    let places: Vec<_> = (0..10_000)
        .map(|at| queue.push(0, &entrant(Some(at)), None))
        .collect();
    assert_eq!(queue.slab.slots(), 10_000);
    for place in places {
        queue.release(place);
    }
    assert!(queue.is_empty());
    assert_eq!(queue.slab.slots(), 0);
    assert_eq!(queue.next_deadline(), None);
}

#[test]
fn places_of_those_who_left_are_used_again() {
    let mut queue = Queue::new(2);
    let last = queue.push(0, &entrant(None), None);
    for _ in 0..10_000 {
        let place = queue.push(0, &entrant(Some(5)), None);
        queue.release(place);
    }
    assert_eq!(queue.slab.slots(), 2);
    assert_eq!(queue.next_deadline(), None);
    queue.release(last);
}

#[test]
fn arrivals_wrap_around() {
    let mut queue = Queue::new(2);
    queue.arrivals = u32::MAX - 1;
    let mut lane = |cost| {
        let (class, deadline) = (0, None);
        queue.push(
            0,
            &Entrant {
                class,
                cost,
                deadline,
            },
            None,
        )
    };
    let places = [lane(cost(1, 0)), lane(cost(0, 1)), lane(cost(1, 1))];
    for place in places {
        assert_eq!(queue.first(0, 0), Some(place));
        queue.release(place);
    }
}
