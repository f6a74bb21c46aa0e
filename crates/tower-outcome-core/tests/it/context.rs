//! What travels in a request's extensions, and the clocks.

use std::{
    collections::HashSet,
    pin::Pin,
    sync::Arc,
    task,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::Extensions;
use http_body::Body;
use http_body_util::Full;
use tokio::time::Instant;
use tower_outcome_core::{
    AttemptWitness, CallContext, Clock, Deadline, Delivery, Failure, ManualClock, Outcome, Phase,
    Priority, Random, Reason, Repeatable, RepeatableBecause, SplitMix64, SystemClock, ValidUntil,
    WitnessBody,
};

use crate::support::*;

// ## The context of a call

#[test]
fn a_call_starts_queued_and_clones_share_where_it_stands() {
    let context = CallContext::new();
    let mut extensions = Extensions::new();
    assert!(CallContext::of(&extensions).is_none());
    context.put(&mut extensions);
    let below = CallContext::of(&extensions).unwrap();
    assert_eq!(context.phase(), Phase::Queued);
    for phase in [
        Phase::AwaitingToken,
        Phase::BackingOff,
        Phase::Connecting,
        Phase::Sending,
        Phase::AwaitingHead,
        Phase::ReadingBody,
        Phase::Queued,
    ] {
        below.enter(phase);
        assert_eq!(context.phase(), phase);
    }
}

#[test]
fn the_furthest_delivery_of_all_attempts_is_kept_with_the_last_outcome() {
    let context = CallContext::new();
    assert!(context.last().is_none());
    assert_eq!(context.attempts(), 0);
    context.begin_attempt();
    context.end_attempt(unknown(Reason::TimedOut), Delivery::MaybeSent);
    context.begin_attempt();
    context.end_attempt(retryable(Reason::Transport), Delivery::NotSent);
    assert_eq!(context.attempts(), 2);
    let last = (retryable(Reason::Transport), Delivery::MaybeSent);
    assert_eq!(context.last(), Some(last));
    context.end_attempt(permanent(Reason::Rejected), Delivery::Answered);
    let last = (permanent(Reason::Rejected), Delivery::Answered);
    assert_eq!(context.last(), Some(last));
}

#[test]
fn a_context_is_of_one_call_only() {
    let (one, two) = (CallContext::new(), CallContext::default());
    one.enter(Phase::Sending);
    one.begin_attempt();
    assert_eq!(two.phase(), Phase::Queued);
    assert_eq!(two.attempts(), 0);
}

// ## A call that is given up

/// The body that a transport would get of a request with 7 bytes, and the witness of its attempt.
fn attempt() -> (WitnessBody<Full<Bytes>>, AttemptWitness) {
    AttemptWitness::new(&post(), Full::from("buy 100"), false)
}

fn take(body: &mut WitnessBody<Full<Bytes>>) -> bool {
    let mut cx = task::Context::from_waker(task::Waker::noop());
    let frame = Pin::new(body).poll_frame(&mut cx);
    matches!(frame, task::Poll::Ready(Some(Ok(_))))
}

#[test]
fn what_nobody_watches_may_have_been_sent() {
    let context = CallContext::new();
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
    context.enter(Phase::Queued);
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
    let given_up = context.give_up();
    assert_eq!(given_up.phase, Phase::Queued);
    let outcome = given_up.outcome(Reason::TimedOut, Repeatable::No);
    assert_eq!(outcome, unknown(Reason::TimedOut));
}

#[test]
fn a_request_that_a_layer_holds_was_not_sent_until_it_lets_go() {
    let context = CallContext::new();
    let hold = context.hold("limiter", Phase::Queued);
    assert_eq!(context.phase(), Phase::Queued);
    let given_up = context.give_up();
    assert_eq!(given_up.delivery, Delivery::NotSent);
    let outcome = given_up.outcome(Reason::TimedOut, Repeatable::No);
    assert_eq!(outcome, retryable(Reason::TimedOut));
    drop(hold);
    assert_eq!(context.phase(), Phase::Connecting);
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
    let _below = context.hold("connections", Phase::Queued);
    assert_eq!(context.give_up().delivery, Delivery::NotSent);
}

#[test]
fn a_second_request_of_an_attempt_proves_nothing_of_the_first() {
    let context = CallContext::new();
    drop(context.hold("limiter", Phase::Queued));
    let _second = context.hold("limiter", Phase::Queued);
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
    context.begin_attempt();
    assert_eq!(context.give_up().delivery, Delivery::NotSent);
}

#[test]
fn a_body_that_was_not_taken_is_sealed_when_the_call_is_given_up() {
    let context = CallContext::new();
    let (mut body, witness) = attempt();
    context.watch(&witness);
    assert_eq!(context.phase(), Phase::Connecting);
    assert_eq!(context.give_up().delivery, Delivery::NotSent);
    assert!(!take(&mut body));

    // And of an attempt that begins afterwards nothing is taken either.
    let (mut body, witness) = attempt();
    context.watch(&witness);
    assert!(!take(&mut body));
    assert_eq!(context.give_up().delivery, Delivery::NotSent);
}

#[test]
fn a_body_that_was_taken_may_have_been_sent_and_a_head_is_an_answer() {
    let context = CallContext::new();
    let (mut body, witness) = attempt();
    context.watch(&witness);
    assert!(take(&mut body));
    assert_eq!(context.phase(), Phase::AwaitingHead);
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
    context.answered();
    let given_up = context.give_up();
    assert_eq!(given_up.phase, Phase::ReadingBody);
    assert_eq!(given_up.delivery, Delivery::Answered);
    let outcome = given_up.outcome(Reason::TimedOut, Repeatable::No);
    assert_eq!(outcome, unknown(Reason::TimedOut));
}

#[test]
fn between_two_attempts_the_last_one_tells_and_during_one_the_furthest_of_all() {
    let context = CallContext::new();
    context.begin_attempt();
    context.end_attempt(retryable(Reason::Overloaded), Delivery::Answered);
    context.enter(Phase::BackingOff);
    let given_up = context.give_up();
    assert_eq!(given_up.phase, Phase::BackingOff);
    assert_eq!(given_up.delivery, Delivery::Answered);
    let outcome = given_up.outcome(Reason::TimedOut, Repeatable::No);
    assert_eq!(outcome, retryable(Reason::Overloaded));

    context.begin_attempt();
    context.watch(&attempt().1);
    let given_up = context.give_up();
    assert_eq!(given_up.delivery, Delivery::Answered);
    let outcome = given_up.outcome(Reason::TimedOut, Repeatable::No);
    assert_eq!(outcome, unknown(Reason::TimedOut));
}

// ## The deadline

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_deadline_shrinks_to_zero_and_no_further() {
    let deadline = Deadline::after(Duration::from_secs(10));
    let start = Instant::now();
    assert_eq!(deadline.instant(), start + Duration::from_secs(10));
    assert_eq!(deadline, Deadline::at(deadline.instant()));
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(deadline.remaining(at(3)), Duration::from_secs(7));
    assert!(!deadline.is_over(at(9)));
    for over in [10, 11, 1000] {
        assert_eq!(deadline.remaining(at(over)), Duration::ZERO);
        assert!(deadline.is_over(at(over)), "{over}");
    }
    let mut extensions = Extensions::new();
    assert!(Deadline::of(&extensions).is_none());
    extensions.insert(deadline);
    assert_eq!(Deadline::of(&extensions), Some(deadline));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_beyond_all_clocks_is_far_away_and_no_panic() {
    let deadline = Deadline::after(Duration::MAX);
    let years = deadline.remaining(Instant::now()).as_secs() / (365 * 86_400);
    assert!(years >= 30, "{years}");
    assert!(deadline > Deadline::after(Duration::from_secs(86_400)));
    let now = Deadline::after(Duration::ZERO);
    assert!(now.is_over(Instant::now()));
}

// ## The class in a queue

#[test]
fn a_request_that_nobody_mapped_has_the_middle_class() {
    let mut extensions = Extensions::new();
    assert_eq!(Priority::of(&extensions), Priority::NORMAL);
    assert_eq!(Priority::default(), Priority::NORMAL);
    extensions.insert(Priority::new(7));
    assert_eq!(Priority::of(&extensions), Priority::new(7));
    assert_eq!(Priority::of(&extensions).class(), 7);
}

#[test]
fn lower_classes_go_first() {
    let mut classes = [Priority::LOWEST, Priority::NORMAL, Priority::HIGHEST];
    classes.sort();
    let sorted = [Priority::HIGHEST, Priority::NORMAL, Priority::LOWEST];
    assert_eq!(classes, sorted);
    assert_eq!(sorted.map(Priority::class), [0, 128, 255]);
}

// ## Who says that a request is repeatable

#[test]
fn a_mark_is_read_from_the_extensions_in_both_directions() {
    let mut extensions = Extensions::new();
    assert_eq!(Repeatable::of(&extensions), None);
    for mark in REPEATABLE {
        extensions.insert(mark);
        assert_eq!(Repeatable::of(&extensions), Some(mark));
        assert_eq!(mark.is_yes(), mark != Repeatable::No);
        let safe = Repeatable::Yes(RepeatableBecause::SafeMethod);
        assert_eq!(mark.is_safe(), mark == safe);
    }
    assert_eq!(
        REPEATABLE.map(|mark| mark.to_string()),
        [
            "safe_method",
            "idempotent_method",
            "idempotency_key",
            "marked",
            "no"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_latest_end_of_validity_of_all_attempts_is_kept() {
    let context = CallContext::new();
    assert_eq!(context.valid_until(), None);
    let now = Instant::now();
    let end = |secs| ValidUntil::at(now + Duration::from_secs(secs));
    context.note_valid_until(end(5));
    context.clone().note_valid_until(end(9));
    context.note_valid_until(end(7));
    assert_eq!(context.valid_until(), Some(end(9)));
    assert!(!end(9).is_over(now + Duration::from_secs(8)));
    assert!(end(9).is_over(now + Duration::from_secs(9)));
}

// ## Clocks and chance

#[test]
fn a_manual_clock_stands_still_until_it_is_put_forward() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let clock: Arc<ManualClock> = Arc::new(ManualClock::new(start));
    assert_eq!(clock.now(), start);
    assert_eq!(clock.now(), start);
    clock.advance(Duration::from_millis(1500));
    assert_eq!(clock.now(), start + Duration::from_millis(1500));
    // A jump out of time leaves it where it is.
    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), start + Duration::from_millis(1500));
}

#[test]
fn the_system_clock_is_past_the_day_on_which_this_was_written() {
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_760_000_000);
    assert!(SystemClock::new().now() > written);
}

#[test]
fn chance_depends_on_the_seed_alone_and_does_not_repeat() {
    let draw = |seed| {
        let random = SplitMix64::seeded(seed);
        std::array::from_fn::<u64, 32, _>(|_| random.next_u64())
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let distinct: HashSet<_> = draw(u64::MAX).into_iter().collect();
    assert_eq!(distinct.len(), 32);
}

// ## A call that is given up

const SAFE: Repeatable = Repeatable::Yes(RepeatableBecause::SafeMethod);

/// Below a hedge each request has a Retry of its own, and all have one context.
#[test]
fn an_attempt_that_begins_while_another_is_under_way_proves_nothing() {
    let context = CallContext::new();
    context.begin_attempt();
    context.begin_attempt();
    let _held = context.hold("limiter", Phase::Queued);
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);

    // Not even once one of them has ended and waits.
    let context = CallContext::new();
    context.begin_attempt();
    context.begin_attempt();
    context.end_attempt(retryable(Reason::Transport), Delivery::NotSent);
    context.enter(Phase::BackingOff);
    let given_up = context.give_up();
    assert_eq!(given_up.delivery, Delivery::MaybeSent);
    assert!(
        given_up
            .outcome(Reason::TimedOut, Repeatable::No)
            .is_unknown()
    );
}

#[test]
fn an_answer_that_did_not_reach_the_caller_is_not_what_became_of_the_call() {
    for outcome in [
        Outcome::Success,
        Outcome::Permanent {
            reason: Reason::Rejected,
        },
    ] {
        let context = CallContext::new();
        context.begin_attempt();
        context.end_attempt(outcome, Delivery::Answered);
        context.enter(Phase::ReadingBody);
        let given_up = context.give_up();
        assert_eq!(given_up.delivery, Delivery::Answered);
        assert!(
            given_up
                .outcome(Reason::TimedOut, Repeatable::No)
                .is_unknown()
        );
        assert!(given_up.outcome(Reason::TimedOut, SAFE).is_retryable());
    }
}

#[test]
fn between_two_attempts_the_call_ends_with_the_last() {
    let context = CallContext::new();
    context.begin_attempt();
    context.end_attempt(retryable(Reason::Overloaded), Delivery::Answered);
    context.enter(Phase::BackingOff);
    let outcome = context.give_up().outcome(Reason::TimedOut, SAFE);
    assert_eq!(outcome, retryable(Reason::Overloaded));
}

#[test]
fn a_request_is_not_let_go_whose_call_was_given_up() {
    let context = CallContext::new();
    let held = context.hold("limiter", Phase::Queued);
    let other = context.hold("other limiter", Phase::Queued);
    other.let_go().unwrap();
    assert_eq!(context.give_up().delivery, Delivery::NotSent);
    let error = held.let_go().unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.delivery(), Delivery::NotSent, "as was said");
}

#[test]
fn of_several_requests_one_that_must_not_be_repeated_decides() {
    let context = CallContext::new();
    context.note_repeatable(Repeatable::No);
    context.note_repeatable(SAFE);
    assert_eq!(context.repeatable(), Some(Repeatable::No));
}
