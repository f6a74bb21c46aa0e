//! What a layer below finds out about an attempt is the last word on it.

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::Extensions;
use tokio::time::Instant;
use tower_outcome_core::{
    Attempt, CallReport, Delivery, Failure, Outcome, Reason, Repeatable, RepeatableBecause,
    SettledBy, Settling,
};
use tower_outcome_retry::Budget;

use crate::support::*;

/// Is settled when a test says so.
#[derive(Clone, Debug, Default)]
struct Word(Arc<Mutex<(bool, Option<Waker>)>>);

impl Word {
    fn settle(&self) {
        let mut word = self.0.lock().unwrap();
        word.0 = true;
        if let Some(waker) = word.1.take() {
            waker.wake();
        }
    }
}

impl Settling for Word {
    fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut word = self.0.lock().unwrap();
        if word.0 {
            return Poll::Ready(());
        }
        word.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

const KEYED: Repeatable = Repeatable::Yes(RepeatableBecause::IdempotencyKey);

/// A 503 that may yet turn out to have been an acceptance.
fn open(word: &Word) -> Res {
    let outcome = Outcome::Retryable {
        reason: Reason::Overloaded,
        after: None,
    };
    let report = CallReport::new(outcome, Delivery::Answered, KEYED);
    let mut response = hinted(503, "60");
    let extensions = response.extensions_mut();
    extensions.insert(report.with_settling(Arc::new(word.clone())));
    response
}

fn settle(extensions: &mut Extensions, outcome: Outcome) {
    let report = CallReport::new(outcome, Delivery::Answered, KEYED);
    extensions.insert(report.with_settled_by(Some(SettledBy::Signal)));
}

#[tokio::test(start_paused = true)]
async fn a_signal_cuts_the_backoff_short_and_what_goes_down_is_no_attempt() {
    let budget = Budget::new();
    let layer = steady().budget(budget.clone()).build().unwrap();
    let (service, mut server) = pair(&layer);
    let full = format!("{budget:?}");
    let word = Word::default();
    let call = start(&service, keyed_post());
    let began = Instant::now();
    server.respond(open(&word)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    word.settle();
    let (head, _, send) = server.attempt().await;
    assert_eq!(began.elapsed(), Duration::from_secs(3));
    assert_eq!(Attempt::of(&head.extensions), Attempt::FIRST);
    let mut response = status(200);
    settle(response.extensions_mut(), Outcome::Success);
    send.send_response(response);
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    let report = CallReport::of(response.extensions()).unwrap();
    assert_eq!(report.attempts(), 1);
    assert_eq!(report.settled_by(), Some(SettledBy::Signal));
    assert_eq!(format!("{budget:?}"), full, "the retry was not paid for");
}

#[tokio::test(start_paused = true)]
async fn without_a_signal_the_backoff_is_slept() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let word = Word::default();
    let call = start(&service, keyed_post());
    let began = Instant::now();
    let mut response = open(&word);
    response
        .headers_mut()
        .insert("retry-after", "7".parse().unwrap());
    server.respond(response).await;
    let (head, _, send) = server.attempt().await;
    assert!(began.elapsed() >= Duration::from_secs(7));
    assert_eq!(Attempt::of(&head.extensions).number(), 2);
    send.send_response(status(200));
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert_eq!(Arc::strong_count(&word.0), 1, "the watch is let go of");
}

#[tokio::test(start_paused = true)]
async fn a_settled_response_is_a_success_whatever_its_status() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, post());
    let mut response = status(503);
    settle(response.extensions_mut(), Outcome::Success);
    server.respond(response).await;
    let result = call.await.unwrap();
    assert!(CallReport::outcome_of(&result).is_success());
    drop(service);
    server.expect_no_more().await;
}

#[tokio::test(start_paused = true)]
async fn a_settled_failure_is_final_also_after_an_attempt_that_may_have_been_applied() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, keyed_post());
    server.fail(reset()).await;
    let outcome = Outcome::Permanent {
        reason: Reason::Rejected,
    };
    let report = CallReport::new(outcome, Delivery::Answered, KEYED);
    let report = report.with_settled_by(Some(SettledBy::Inquiry));
    let failure = Failure::new(outcome, Delivery::Answered, "refused").with_report(report);
    server.fail(failure.into()).await;
    let result = call.await.unwrap();
    assert_eq!(CallReport::outcome_of(&result), outcome);
    let report = CallReport::in_result(&result).unwrap();
    assert_eq!(report.attempts(), 2);
    assert_eq!(report.settled_by(), Some(SettledBy::Inquiry));
}
