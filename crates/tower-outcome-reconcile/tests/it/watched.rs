//! Whoever watches hears of each unknown outcome once, and of its end once.

use std::sync::{Arc, Mutex};

use tower_outcome_reconcile::{Counts, Ended, How, Observer, Resolved, Unknown, Unresolved};

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
