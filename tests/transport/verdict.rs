//! What this family makes of an error.

use std::error::Error;

use http::Request;
use tower_outcome::{
    Attempt, BoxError, Classify, Decision, Delivery, Failure, HttpClassifier, Outcome, Reason,
    Witnessed,
};

/// What the classifier decides for a request that must not be repeated.
pub(crate) fn unrepeatable(error: &(dyn Error + 'static)) -> Decision {
    decision("POST", error)
}

/// What the classifier decides for a request that may be repeated.
pub(crate) fn repeatable(error: &(dyn Error + 'static)) -> Decision {
    decision("PUT", error)
}

/// What an error of the transport proves; everything that depends on it is checked here.
#[track_caller]
pub(crate) fn verdict(error: &BoxError) -> Delivery {
    let shown = chain(&**error);
    let delivery = Delivery::of(&**error);
    if let Some(failure) = Failure::of(&**error) {
        assert_eq!(failure.delivery(), delivery, "{shown}");
    }
    let once = unrepeatable(&**error);
    let often = repeatable(&**error);
    assert_eq!(
        (once.delivery, often.delivery),
        (delivery, delivery),
        "{shown}"
    );
    // Where repeating is harmless, any trouble of the transport may be met by sending again.
    let Outcome::Retryable {
        reason,
        after: None,
    } = often.outcome
    else {
        panic!("{often:?}: {shown}");
    };
    assert!(
        matches!(reason, Reason::Transport | Reason::TimedOut),
        "{reason}: {shown}"
    );
    match delivery {
        Delivery::NotSent | Delivery::Refused => assert_eq!(once.outcome, often.outcome, "{shown}"),
        Delivery::MaybeSent => assert_eq!(once.outcome, Outcome::Unknown { reason }, "{shown}"),
        Delivery::Answered => panic!("no head has arrived: {shown}"),
    }
    delivery
}

/// Which evidence the proof in a witnessed failure rests on.
pub(crate) fn proven_by(error: &BoxError) -> Option<Witnessed> {
    Failure::of(&**error).and_then(Failure::proven_by)
}

/// The causes of an error, as the assertions show them.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error)
        .map(|error| format!("{error:?}"))
        .collect::<Vec<_>>()
        .join(" <- ")
}

/// Finds an error of a type in the chain of causes.
pub(crate) fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(<dyn Error>::downcast_ref)
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| {
        error.source()
    })
}

fn decision(method: &str, error: &(dyn Error + 'static)) -> Decision {
    let classifier = HttpClassifier::new();
    let (head, ()) = Request::builder()
        .method(method)
        .body(())
        .unwrap()
        .into_parts();
    classifier.error(&classifier.call(&head), Attempt::FIRST, error)
}
