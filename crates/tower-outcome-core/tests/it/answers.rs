//! What an answer means for a request that is repeatable or not, whatever came before.

use std::time::Duration;

use proptest::{collection::vec, option, prelude::*, sample::select};
use tower_outcome_core::{
    Answer, Attempt, Delivery, HintForm, Outcome, Reason, Repeatable, RetryAfter,
};

use crate::support::*;

const REASON: Reason = Reason::ServerError;

fn hint() -> impl Strategy<Value = Option<RetryAfter>> {
    let forms = [HintForm::Seconds, HintForm::Date, HintForm::Custom];
    option::of(
        (any::<u32>(), select(forms.to_vec()))
            .prop_map(|(seconds, form)| RetryAfter::new(Duration::from_secs(seconds.into()), form)),
    )
}

fn answers() -> impl Strategy<Value = Answer> {
    let reason = || select(REASONS.to_vec());
    prop_oneof![
        Just(Answer::Applied),
        Just(Answer::Duplicate),
        (reason(), hint()).prop_map(|(reason, after)| Answer::NotApplied { reason, after }),
        reason().prop_map(|reason| Answer::Rejected { reason }),
        (reason(), hint(), any::<bool>()).prop_map(|(reason, after, transient)| {
            Answer::Unclear {
                reason,
                after,
                transient,
            }
        }),
    ]
}

fn attempts() -> impl Strategy<Value = Attempt> {
    vec(any::<bool>(), 0..5)
        .prop_map(|applied| applied.into_iter().fold(Attempt::FIRST, Attempt::next))
}

/// What the answer itself names as the reason.
fn named(answer: Answer) -> Option<Reason> {
    match answer {
        Answer::Applied => None,
        Answer::Duplicate => Some(Reason::Duplicate),
        Answer::NotApplied { reason, .. }
        | Answer::Rejected { reason }
        | Answer::Unclear { reason, .. } => Some(reason),
        other => panic!("{other:?} is new"),
    }
}

proptest! {
    #[test]
    fn what_must_not_be_repeated_is_retryable_only_if_it_was_not_applied(
        answer in answers(),
        attempt in attempts(),
    ) {
        let outcome = answer.outcome(Repeatable::No, attempt);
        let not_applied = matches!(answer, Answer::NotApplied { .. });
        prop_assert_eq!(outcome.is_retryable(), not_applied);
    }

    #[test]
    fn success_is_what_was_applied_and_nothing_else(
        answer in answers(),
        repeatable in select(REPEATABLE.to_vec()),
        attempt in attempts(),
    ) {
        let outcome = answer.outcome(repeatable, attempt);
        prop_assert_eq!(outcome.is_success(), answer == Answer::Applied);
    }

    #[test]
    fn a_safe_request_is_never_unknown(answer in answers(), attempt in attempts()) {
        prop_assert!(!answer.outcome(REPEATABLE[0], attempt).is_unknown());
    }

    #[test]
    fn nothing_is_final_while_an_earlier_attempt_may_have_been_applied(
        answer in answers(),
        repeatable in select(REPEATABLE[1..].to_vec()),
        attempt in attempts(),
    ) {
        let outcome = answer.outcome(repeatable, attempt.next(true));
        prop_assert!(!outcome.is_permanent(), "{}", outcome);
    }

    #[test]
    fn what_is_repeatable_is_unknown_only_if_an_earlier_attempt_may_have_been_applied(
        answer in answers(),
        repeatable in select(REPEATABLE[..4].to_vec()),
        attempt in attempts(),
    ) {
        let outcome = answer.outcome(repeatable, attempt);
        prop_assert!(attempt.maybe_applied_before() || !outcome.is_unknown());
    }

    #[test]
    fn the_reason_and_the_wait_are_those_of_the_answer(
        answer in answers(),
        repeatable in select(REPEATABLE.to_vec()),
        attempt in attempts(),
    ) {
        let outcome = answer.outcome(repeatable, attempt);
        prop_assert_eq!(outcome.reason(), named(answer));
        if let Outcome::Retryable { after: promised, .. } = outcome {
            let (Answer::NotApplied { after, .. } | Answer::Unclear { after, .. }) = answer else {
                return Err(TestCaseError::fail("retryable out of nothing"));
            };
            prop_assert_eq!(promised, after);
        }
    }

    #[test]
    fn a_server_that_did_not_act_has_refused_the_request(
        answer in answers(),
        repeatable in select(REPEATABLE.to_vec()),
        attempt in attempts(),
    ) {
        let decision = answer.decide(repeatable, attempt);
        prop_assert_eq!(decision.outcome, answer.outcome(repeatable, attempt));
        let refused = matches!(answer, Answer::NotApplied { .. });
        let expected = if refused { Delivery::Refused } else { Delivery::Answered };
        prop_assert_eq!(decision.delivery, expected);
        prop_assert_eq!(decision.delivery.proves_not_applied(), refused);
    }

    #[test]
    fn what_may_have_been_applied_once_stays_so(applied in vec(any::<bool>(), 0..9)) {
        let mut attempt = Attempt::default();
        for (index, &maybe) in applied.iter().enumerate() {
            prop_assert_eq!(usize::try_from(attempt.number()).unwrap(), index + 1);
            attempt = attempt.next(maybe);
        }
        prop_assert_eq!(attempt.maybe_applied_before(), applied.contains(&true));
    }
}

/// The table of `Answer`, row by row, for a first attempt.
#[test]
fn each_answer_means_what_the_table_says() {
    let (reason, after) = (REASON, None);
    let unclear = |transient| Answer::Unclear {
        reason,
        after,
        transient,
    };
    let rows = [
        (Answer::Applied, Outcome::Success, Outcome::Success),
        (
            Answer::NotApplied { reason, after },
            retryable(reason),
            retryable(reason),
        ),
        (
            Answer::Rejected { reason },
            permanent(reason),
            permanent(reason),
        ),
        (unclear(true), retryable(reason), unknown(reason)),
        (unclear(false), permanent(reason), unknown(reason)),
        (
            Answer::Duplicate,
            permanent(Reason::Duplicate),
            permanent(Reason::Duplicate),
        ),
    ];
    for (answer, if_repeatable, if_not) in rows {
        for repeatable in REPEATABLE {
            let outcome = answer.outcome(repeatable, Attempt::FIRST);
            let expected = if repeatable.is_yes() {
                if_repeatable
            } else {
                if_not
            };
            assert_eq!(outcome, expected, "{answer:?}, {repeatable}");
        }
    }
}

#[test]
fn a_refusal_after_an_attempt_that_may_have_been_applied_is_unknown_unless_the_method_is_safe() {
    for answer in [Answer::Rejected { reason: REASON }, Answer::Duplicate] {
        for repeatable in REPEATABLE {
            let outcome = answer.outcome(repeatable, after_maybe_applied());
            assert_eq!(outcome.is_unknown(), !repeatable.is_safe(), "{repeatable}");
            assert_eq!(outcome.is_permanent(), repeatable.is_safe(), "{repeatable}");
            // And an earlier attempt that provably was not applied changes nothing.
            let outcome = answer.outcome(repeatable, Attempt::FIRST.next(false));
            assert!(outcome.is_permanent(), "{repeatable}");
        }
    }
}

#[test]
fn the_attempt_travels_in_the_extensions_and_is_the_first_without() {
    let mut extensions = http::Extensions::new();
    assert_eq!(Attempt::of(&extensions), Attempt::FIRST);
    extensions.insert(after_maybe_applied());
    assert_eq!(Attempt::of(&extensions), after_maybe_applied());
    assert_eq!(Attempt::of(&extensions).number(), 2);
}
