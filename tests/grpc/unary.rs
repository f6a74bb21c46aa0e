//! What is sent again, and what is not.

use tonic::{Code, Status};
use tower_outcome::{
    CallReport, Delivery, NoResend, NotRetried, Outcome, Reason, Repeatable, RepeatableBecause,
};
use tower_outcome_desk::{Desk, Trouble, path};

use super::stack::{ID, failure, get, orders, place, report, within};

fn busy() -> Trouble {
    Trouble::Before(Status::unavailable("busy"))
}

#[tokio::test]
async fn a_call_that_succeeds_is_sent_once() {
    let desk = Desk::open().await.unwrap();
    let placed = within(orders(desk.url()).place(place())).await.unwrap();
    assert!(CallReport::of(placed.extensions()).is_none());
    assert_eq!(placed.get_ref().id, ID);
    assert_eq!(desk.seen(path::PLACE).len(), 1);
}

/// A future that is not `Send` cannot be, and many a stack makes one of generated code.
#[tokio::test]
async fn a_call_may_be_made_by_another_task() {
    let desk = Desk::open().await.unwrap();
    let mut orders = orders(desk.url());
    let call = tokio::spawn(async move { orders.place(place()).await });
    assert_eq!(within(call).await.unwrap().unwrap().get_ref().id, ID);
}

#[tokio::test]
async fn a_method_of_the_repeatable_set_is_sent_again() {
    let desk = Desk::open().await.unwrap();
    let mut orders = orders(desk.url());
    within(orders.place(place())).await.unwrap();
    desk.next(path::GET, busy());
    desk.next(path::GET, busy());
    let found = within(orders.get(get())).await.unwrap();
    // The caller may look how hard it was.
    let report = CallReport::of(found.extensions()).unwrap();
    assert_eq!((report.attempts(), report.outcome()), (3, Outcome::Success));
    assert_eq!(found.get_ref().quantity, 100);
    assert_eq!(desk.seen(path::GET).len(), 3);
}

#[tokio::test]
async fn a_method_outside_of_the_repeatable_set_is_never_sent_again() {
    for trouble in [
        busy(),
        Trouble::After(Status::unavailable("busy")),
        Trouble::After(Status::resource_exhausted("busy")),
        Trouble::After(Status::deadline_exceeded("late")),
        Trouble::After(Status::internal("broken")),
        Trouble::After(Status::cancelled("never mind")),
    ] {
        let desk = Desk::open().await.unwrap();
        desk.next(path::PLACE, trouble);
        let status = within(orders(desk.url()).place(place())).await.unwrap_err();
        assert!(failure(&status).outcome().is_unknown(), "{status:?}");
        assert_eq!(failure(&status).delivery(), Delivery::Answered);
        assert_eq!(desk.seen(path::PLACE).len(), 1);
        assert!(desk.times_placed(ID) <= 1);
    }
}

#[tokio::test]
async fn a_call_that_its_caller_marks_repeatable_is_sent_again() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::PLACE, busy());
    let mut request = place();
    let marked = Repeatable::Yes(RepeatableBecause::Marked);
    request.extensions_mut().insert(marked);
    within(orders(desk.url()).place(request)).await.unwrap();
    assert_eq!(desk.seen(path::PLACE).len(), 2);
}

#[tokio::test]
async fn a_call_that_its_caller_marks_so_is_not_sent_again() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::GET, busy());
    let mut request = get();
    request.extensions_mut().insert(NoResend::new());
    let status = within(orders(desk.url()).get(request)).await.unwrap_err();
    let why = report(&status).not_retried();
    assert!(matches!(why, Some(NotRetried::SwitchedOff)), "{why:?}");
    assert_eq!(desk.seen(path::GET).len(), 1);
}

#[tokio::test]
async fn a_rejection_is_final_and_keeps_its_code() {
    let desk = Desk::open().await.unwrap();
    let status = within(orders(desk.url()).get(get())).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::NotFound, "no such order")
    );
    let rejected = Outcome::Permanent {
        reason: Reason::Rejected,
    };
    assert_eq!(failure(&status).outcome(), rejected);
    assert_eq!(desk.seen(path::GET).len(), 1);
}

#[tokio::test]
async fn a_server_that_stays_busy_is_left_alone_after_three_attempts() {
    let desk = Desk::open().await.unwrap();
    for _ in 0..9 {
        desk.next(path::GET, busy());
    }
    let status = within(orders(desk.url()).get(get())).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unavailable, "busy")
    );
    assert_eq!(report(&status).attempts(), 3);
    assert_eq!(desk.seen(path::GET).len(), 3);
}

#[tokio::test]
async fn the_metadata_of_a_call_is_that_of_each_attempt() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::GET, busy());
    let mut request = get();
    request
        .metadata_mut()
        .insert("x-desk", "7".parse().unwrap());
    let unknown_order = within(orders(desk.url()).get(request)).await.unwrap_err();
    assert_eq!(unknown_order.code(), Code::NotFound);
    let seen = desk.seen(path::GET);
    assert_eq!(seen.len(), 2);
    for seen in seen {
        assert_eq!(seen.metadata.get("x-desk").unwrap(), "7");
        assert_eq!(seen.metadata.get("x-operation-id").unwrap(), ID);
    }
    assert_eq!(report(&unknown_order).attempts(), 2);
}
