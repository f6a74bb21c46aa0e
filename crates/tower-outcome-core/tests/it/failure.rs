//! The one error of the family: found in any chain, and believed.

use std::{
    error::Error,
    fmt, io,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tower_outcome_core::{
    Attempt, BoxError, BrokenBody, CallReport, Classify, Delivery, Failure, GrpcClassifier,
    HintForm, HttpClassifier, Outcome, Proof, Reason, Repeatable, Witnessed, peek::MapBodyError,
};

use crate::support::*;

fn failure(outcome: Outcome, delivery: Delivery) -> Failure {
    Failure::new(outcome, delivery, Stranger)
}

/// The same failure, as it may come out of a stack of other people's layers.
fn wrapped(make: impl Fn() -> Failure) -> Vec<BoxError> {
    let boxed = || -> BoxError { make().into() };
    Vec::from([
        boxed(),
        Wrapper(boxed()).into(),
        Wrapper(Wrapper(boxed()).into()).into(),
        io::Error::other(boxed()).into(),
        io::Error::new(io::ErrorKind::ConnectionReset, boxed()).into(),
        io::Error::other(io::Error::other(boxed())).into(),
        Wrapper(io::Error::other(Wrapper(boxed())).into()).into(),
        #[cfg(feature = "tonic")]
        tonic::Status::from_error(boxed()).into(),
    ])
}

#[test]
fn a_failure_is_found_behind_everything_that_names_it_as_its_cause() {
    let make = || failure(unknown(Reason::TimedOut), Delivery::MaybeSent);
    for error in wrapped(make) {
        let found = Failure::of(&*error).unwrap_or_else(|| panic!("not found in {error:?}"));
        assert_eq!(found.outcome(), unknown(Reason::TimedOut));
        assert!(found.source_ref().unwrap().is::<Stranger>());
    }
    assert!(Failure::of(&Stranger).is_none());
}

#[test]
fn a_failure_says_how_far_the_request_got_whatever_is_wrapped_around_it() {
    for delivery in [
        Delivery::NotSent,
        Delivery::Refused,
        Delivery::MaybeSent,
        Delivery::Answered,
    ] {
        for error in wrapped(|| failure(permanent(Reason::Rejected), delivery)) {
            assert_eq!(Delivery::of(&*error), delivery, "{error:?}");
            for request in [get(), post()] {
                let decision = by_error(&HttpClassifier::new(), &request, &*error);
                assert_eq!(decision.delivery, delivery);
                assert_eq!(decision.outcome, permanent(Reason::Rejected));
            }
        }
    }
}

#[test]
fn the_outermost_failure_wins() {
    let inner = failure(permanent(Reason::Rejected), Delivery::Answered);
    let middle: BoxError = Wrapper(inner.into()).into();
    let outer = Failure::new(unknown(Reason::TimedOut), Delivery::MaybeSent, middle);
    let error: BoxError = Wrapper(outer.into()).into();
    let found = Failure::of(&*error).unwrap();
    assert_eq!(found.outcome(), unknown(Reason::TimedOut));
    let decision = by_error(&HttpClassifier::new(), &post(), &*error);
    assert_eq!(decision.outcome, unknown(Reason::TimedOut));
    assert_eq!(decision.delivery, Delivery::MaybeSent);
}

// ## What a classifier makes of it

fn judged(outcome: Outcome, repeatable: Repeatable, attempt: Attempt) -> Outcome {
    let classifier = HttpClassifier::new();
    let call = classifier.call(&such(repeatable));
    let error = failure(outcome, Delivery::MaybeSent);
    let decision = classifier.error(&call, attempt, &error);
    assert_eq!(decision.delivery, Delivery::MaybeSent);
    decision.outcome
}

#[test]
fn what_a_layer_below_could_not_know_is_retryable_where_repeating_is_harmless() {
    for reason in REASONS {
        for repeatable in REPEATABLE {
            let outcome = judged(unknown(reason), repeatable, Attempt::FIRST);
            // A body that failed, or an error nobody knows, will not do better the next time.
            let hopeless = matches!(reason, Reason::RequestBody | Reason::Unrecognized);
            let expected = match repeatable {
                Repeatable::No => unknown(reason),
                Repeatable::Yes(_) if hopeless => permanent(reason),
                Repeatable::Yes(_) => retryable(reason),
            };
            assert_eq!(outcome, expected, "{repeatable}");
        }
    }
}

#[test]
fn what_is_permanent_below_stays_so_unless_an_earlier_attempt_may_have_been_applied() {
    for repeatable in REPEATABLE {
        let first = judged(permanent(Reason::LocalLimit), repeatable, Attempt::FIRST);
        assert_eq!(first, permanent(Reason::LocalLimit));
        let second = judged(
            permanent(Reason::LocalLimit),
            repeatable,
            after_maybe_applied(),
        );
        assert_eq!(second.is_unknown(), !repeatable.is_safe(), "{repeatable}");
    }
}

#[test]
fn a_wait_that_a_layer_below_asks_for_is_kept() {
    let outcome = retryable_after(Reason::LocalLimit, 7, HintForm::Custom);
    for request in [get(), post()] {
        let error = failure(outcome, Delivery::NotSent);
        let decision = by_error(&HttpClassifier::new(), &request, &error);
        assert_eq!(decision.outcome, outcome);
        assert_eq!(decision.delivery, Delivery::NotSent);
    }
}

#[test]
fn what_was_harmless_to_repeat_below_is_still_unknown_where_it_must_not_be_repeated() {
    for delivery in [Delivery::MaybeSent, Delivery::Answered] {
        let hinted = retryable_after(Reason::ResponseBody, 7, HintForm::Seconds);
        let below = || failure(hinted, delivery);
        let write = by_error(&HttpClassifier::new(), &post(), &below());
        assert_eq!(write.outcome, unknown(Reason::ResponseBody));
        let read = by_error(&HttpClassifier::new(), &get(), &below());
        assert_eq!(read.outcome, hinted);
        assert_eq!(read.delivery, delivery);
    }
}

#[test]
fn an_error_that_claims_success_is_proof_of_nothing() {
    for repeatable in REPEATABLE {
        let outcome = judged(Outcome::Success, repeatable, Attempt::FIRST);
        let expected = if repeatable.is_yes() {
            permanent(Reason::Unrecognized)
        } else {
            unknown(Reason::Unrecognized)
        };
        assert_eq!(outcome, expected);
    }
}

#[test]
fn an_error_type_that_nobody_knows_proves_nothing_and_promises_nothing() {
    let boxed: BoxError = "a plain text".into();
    let errors: [&(dyn Error + 'static); 4] =
        [&Stranger, &*boxed, &Wrapper("below".into()), &fmt::Error];
    for error in errors {
        let write = by_error(&HttpClassifier::new(), &post(), error);
        assert_eq!(write.outcome, unknown(Reason::Unrecognized));
        let read = by_error(&HttpClassifier::new(), &get(), error);
        assert_eq!(read.outcome, permanent(Reason::Unrecognized));
        for decision in [write, read] {
            assert_eq!(decision.delivery, Delivery::MaybeSent);
        }
        assert_eq!(Proof::of(error).by, None);
    }
}

// ## Chains without an end

/// Its own cause, and counts how often it is asked for one.
#[derive(Debug, Default)]
struct Ouroboros(AtomicUsize);

impl fmt::Display for Ouroboros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("round and round")
    }
}

impl Error for Ouroboros {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(self)
    }
}

#[test]
fn a_chain_that_bites_its_own_tail_ends() {
    let ouroboros = Ouroboros::default();
    assert!(Failure::of(&ouroboros).is_none());
    assert_eq!(Delivery::of(&ouroboros), Delivery::MaybeSent);
    for decision in [
        by_error(&HttpClassifier::new(), &post(), &ouroboros),
        by_error(&GrpcClassifier::new(), &post(), &ouroboros),
    ] {
        assert_eq!(decision.outcome, unknown(Reason::Unrecognized));
    }
    // Soon: nobody has a chain of a thousand causes.
    assert!(ouroboros.0.into_inner() < 1000);
}

// ## The error itself

#[test]
fn it_prints_what_is_known_and_leaves_the_cause_to_its_source() {
    let outcomes = [
        (
            unknown(Reason::TimedOut),
            Delivery::MaybeSent,
            "outcome unknown (timed_out): the request may have been sent",
        ),
        (
            retryable(Reason::Transport),
            Delivery::NotSent,
            "outcome retryable (transport): the request was not sent",
        ),
        (
            retryable(Reason::Transport),
            Delivery::Refused,
            "outcome retryable (transport): the server refused the request without acting on it",
        ),
        (
            permanent(Reason::Rejected),
            Delivery::Answered,
            "outcome permanent (rejected): the server answered",
        ),
    ];
    for (outcome, delivery, text) in outcomes {
        let failure = failure(outcome, delivery);
        assert_eq!(failure.to_string(), text);
        assert!(!text.contains(&Stranger.to_string()));
        assert!(failure.source().unwrap().is::<Stranger>());
    }
}

#[test]
fn what_is_added_is_kept() {
    let report = CallReport::new(
        unknown(Reason::Transport),
        Delivery::MaybeSent,
        Repeatable::No,
    )
    .with_attempts(2, Duration::from_secs(1));
    let failure = Failure::not_sent(Reason::LocalLimit, "queue full")
        .with_outcome(unknown(Reason::Transport))
        .with_delivery(Delivery::MaybeSent)
        .with_report(report)
        .with_idempotency_key("order-1".parse().unwrap());
    assert_eq!(failure.outcome(), unknown(Reason::Transport));
    assert_eq!(failure.delivery(), Delivery::MaybeSent);
    assert_eq!(failure.report().unwrap().attempts(), 2);
    assert_eq!(failure.idempotency_key().unwrap(), "order-1");
    assert_eq!(failure.proven_by(), None::<Witnessed>);
    assert_eq!(failure.into_source().unwrap().to_string(), "queue full");
}

#[test]
fn what_was_not_sent_may_be_sent() {
    let failure = Failure::not_sent(Reason::LocalLimit, "queue full");
    assert_eq!(failure.outcome(), retryable(Reason::LocalLimit));
    assert_eq!(failure.delivery(), Delivery::NotSent);
    assert!(failure.report().is_none() && failure.idempotency_key().is_none());
}

#[test]
fn wrapping_describes_a_stranger_and_leaves_a_failure_alone() {
    let describe = |error: &(dyn Error + 'static)| {
        assert!(error.is::<Stranger>());
        (unknown(Reason::Unrecognized), Delivery::MaybeSent)
    };
    let described = Failure::wrap(Stranger.into(), describe);
    assert_eq!(described.outcome(), unknown(Reason::Unrecognized));
    let known = failure(permanent(Reason::Rejected), Delivery::Answered);
    let kept = Failure::wrap(known.into(), |_| unreachable!("it is a failure already"));
    assert_eq!(kept.outcome(), permanent(Reason::Rejected));
    assert!(kept.source_ref().unwrap().is::<Stranger>());
}

#[test]
fn a_body_that_breaks_says_what_that_means_for_the_call() {
    let outcome = unknown(Reason::ResponseBody);
    let broken = BrokenBody::new(outcome);
    let error = broken.map(Stranger.into());
    let failure = error.downcast_ref::<Failure>().unwrap();
    assert_eq!(failure.outcome(), outcome);
    assert_eq!(failure.delivery(), Delivery::Answered);
    // A failure from below keeps its own account of the delivery, and its cause.
    let below = failure_of_a_body();
    let error = broken.map(below.into());
    let failure = error.downcast_ref::<Failure>().unwrap();
    assert_eq!(failure.outcome(), outcome);
    assert!(failure.source_ref().unwrap().is::<Stranger>());
}

fn failure_of_a_body() -> Failure {
    failure(permanent(Reason::TimedOut), Delivery::Answered)
}
