//! Whoever watches hears of each unknown outcome once, and of its end once.

use std::sync::{Arc, Mutex};

use tower_outcome_core::{CallReport, Repeatable, RepeatableBecause};
use tower_outcome_reconcile::{
    Counts, Ended, How, Observer, OperationId, Resolution, Resolutions, Resolved, Told, Unknown,
    Unresolved,
};

use crate::support::*;

#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Observer for Notes {
    fn unknown(&self, event: &Unknown<'_>) {
        self.note(format!("unknown {:?} {}", event.id.as_str(), event.reason));
    }

    fn resolved(&self, event: &Resolved<'_>) {
        let took = event.took.as_millis();
        self.note(format!("{} after {} in {took}", event.how, event.inquiries));
    }

    fn unresolved(&self, event: &Unresolved<'_>) {
        let why = event.why.label();
        self.note(format!("{why} after {}", event.inquiries));
    }

    fn told(&self, event: &Told<'_>) {
        self.note(format!("{} of {:?}", event.how, event.id.as_str()));
    }
}

impl Notes {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn each_end_is_told_and_counted_once() {
    let (notes, counts) = (Notes::default(), Counts::new());
    let watched = |say| builder(Script::new([say])).observer((notes.clone(), counts.clone()));
    let first = "unknown Some(\"order-1\") transport".to_owned();

    let _ = lost(watched(Say::Applied)).await;
    assert_eq!(notes.take(), [first.clone(), "found after 1 in 500".into()]);
    let _ = lost(watched(Say::Missing)).await;
    assert_eq!(
        notes.take(),
        [first.clone(), "absent after 5 in 10000".into()]
    );
    let _ = lost(watched(Say::Pending)).await;
    assert_eq!(notes.take(), [first.clone(), "timed_out after 14".into()]);

    let (service, mut server) = pair(watched(Say::Hangs));
    let call = start(&service, order());
    server.fail(reset()).await;
    tokio::time::sleep(SECOND).await;
    call.abort();
    let _ = call.await;
    assert_eq!(notes.take(), [first, "dropped after 1".into()]);

    assert_eq!(counts.unknown(), 4);
    assert_eq!(counts.resolved(How::Found), 1);
    assert_eq!(counts.resolved(How::Absent), 1);
    assert_eq!(counts.unresolved(Ended::TimedOut), 1);
    assert_eq!(counts.unresolved(Ended::Dropped), 1);
    assert_eq!(counts.inquiries(), 1 + 5 + 14 + 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_call_that_is_not_unknown_is_told_and_counted_too() {
    let id = OperationId::from_static("order-1");
    let (notes, counts) = (Notes::default(), Counts::new());
    let resolutions = Resolutions::new();
    let builder = builder(Script::new([Say::Pending])).resolutions(resolutions.clone());
    let (service, mut server) = pair(builder.observer((notes.clone(), counts.clone())));
    let keyed = || {
        let mut request = order();
        let because = RepeatableBecause::Marked;
        request.extensions_mut().insert(Repeatable::Yes(because));
        request
    };
    let told = "told_applied of Some(\"order-1\")";

    // While the attempt is under way.
    let call = start(&service, keyed());
    let attempt = server.attempt().await;
    assert!(resolutions.resolve(&id, Resolution::applied()));
    assert!(call.await.unwrap().is_ok());
    drop(attempt);
    assert_eq!(notes.take(), [told]);

    // When it is about to end with an answer that may be repeated.
    let call = start(&service, keyed());
    let (_, send) = server.attempt().await;
    assert!(resolutions.resolve(&id, Resolution::applied()));
    send.send_response(status(503));
    assert!(call.await.unwrap().is_ok());
    assert_eq!(notes.take(), [told]);

    // And before it is sent again.
    let call = start(&service, keyed());
    server.respond(status(503)).await;
    let open = call.await.unwrap();
    let settling = CallReport::in_result(&open).unwrap().settling().unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(settling.poll_settled(&mut cx).is_pending());
    assert!(resolutions.resolve(&id, Resolution::applied()));
    assert!(start(&service, keyed()).await.unwrap().is_ok());
    drop(open);
    assert_eq!(notes.take(), [told]);

    assert_eq!(counts.told(How::ToldApplied), 3);
    assert_eq!((counts.unknown(), counts.all_resolved()), (0, 0));
}
