//! What an answer of "seen before" proves, and what it does not.

use http::StatusCode;
use tower_outcome_core::{Attempt, CallReport, Outcome, Reason, Repeatable, RepeatableBecause};
use tower_outcome_reconcile::How;

use crate::support::*;

/// The second attempt of an order whose first may have been applied.
fn second() -> Req {
    let mut request = order();
    let extensions = request.extensions_mut();
    extensions.insert(Attempt::FIRST.next(true));
    extensions.insert(Repeatable::Yes(RepeatableBecause::Marked));
    request
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_on_the_first_attempt_is_the_callers_mistake_and_not_asked_about() {
    let script = Script::new([Say::Applied]);
    let (service, mut server) = pair(builder(script.clone()));
    let call = start(&service, order());
    server.respond(duplicate()).await;
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(script.times(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_after_an_unknown_attempt_is_an_application_once_the_record_is_found() {
    let script = Script::new([Say::Missing, Say::Missing, Say::Applied]);
    let (service, mut server) = pair(builder(script));
    let call = start(&service, second());
    server.respond(duplicate()).await;
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_success());
    assert!(report(&result).is_received());
    assert_eq!(report(&result).reason(), Reason::Duplicate);
}

#[tokio::test(start_paused = true)]
async fn after_a_duplicate_no_number_of_misses_lets_the_order_be_sent_again() {
    let script = Script::new([Say::Missing]);
    let (service, mut server) = pair(builder(script.clone()));
    let call = start(&service, second());
    server.respond(duplicate()).await;
    let result = call.await.unwrap();
    let unknown = Outcome::Unknown {
        reason: Reason::Duplicate,
    };
    assert_eq!(CallReport::outcome_of(&result), unknown);
    assert!(report(&result).misses() > 10);
    assert!(
        script
            .asked()
            .iter()
            .all(|(_, inquiry)| inquiry.is_received())
    );
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_the_server_denies_is_permanent_and_never_sent_again() {
    let (service, mut server) = pair(builder(Script::new([Say::Denied])));
    let call = start(&service, second());
    server.respond(duplicate()).await;
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_permanent());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_second_attempt_may_mean_that_the_first_was_filled() {
    let (service, mut server) = pair(builder(Script::new([Say::Applied])));
    let call = start(&service, second());
    server.respond(status(422)).await;
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_success());
    assert_eq!(report(&result).reason(), Reason::Rejected);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_second_attempt_is_final_once_the_first_is_known_to_have_done_nothing() {
    let (service, mut server) = pair(builder(Script::new([Say::Missing])));
    let call = start(&service, second());
    server.respond(status(422)).await;
    let result = call.await.unwrap();
    let rejected = Outcome::Permanent {
        reason: Reason::Rejected,
    };
    assert_eq!(CallReport::outcome_of(&result), rejected);
    assert_eq!(report(&result).how(), Some(How::Absent));
    let response = result.unwrap();
    assert_eq!(response.status(), 422);
    assert_eq!(text(response).await, "422");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_known_once_is_never_absent() {
    let script = Script::new([Say::Pending, Say::Missing]);
    let (result, _) = lost(builder(script)).await;
    assert!(CallReport::outcome_of(&result).is_unknown());
    assert!(report(&result).is_received());
}
