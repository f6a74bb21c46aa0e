//! A call that is dropped leaves nothing behind, wherever that happens.

use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use tokio_test::task;
use tower::{Layer, Service, limit::ConcurrencyLimit};
use tower_outcome_core::BoxError;
use tower_outcome_retry::Budget;
use tower_outcome_testkit::{Probe, ProbeHandle};

use crate::{contract::Scripted, support::*};

/// Becomes ready at the second poll only, so that a call can be dropped while it waits for that.
#[derive(Debug)]
struct Reluctant<S> {
    inner: S,
    asked: bool,
}

impl<S: Clone> Clone for Reluctant<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            asked: false,
        }
    }
}

impl<S: Service<Req, Error = BoxError>> Service<Req> for Reluctant<S> {
    type Response = S::Response;
    type Error = BoxError;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if !std::mem::replace(&mut self.asked, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        self.asked = false;
        self.inner.call(request)
    }
}

/// What is left after a call of three attempts was polled so often and dropped.
struct Left {
    ended: bool,
    budget: Budget,
    probe: ProbeHandle,
}

async fn dropped_after(polls: usize) -> Left {
    let budget = Budget::new();
    let (probe, handle) = Probe::new(Scripted::new(vec![503, 502, 200]));
    let mut limited = ConcurrencyLimit::new(probe, 1);
    let layer = steady().budget(budget.clone()).build().unwrap();
    let mut service = layer.layer(Reluctant {
        inner: limited.clone(),
        asked: false,
    });
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    let mut call = task::spawn(service.call(get()));
    let mut ended = false;
    for _ in 0..polls {
        if call.poll().is_ready() {
            ended = true;
            break;
        }
        tokio::time::advance(Duration::from_millis(20)).await;
    }
    drop(call);
    drop(service);
    // The only permit is free again.
    let ready = poll_fn(|cx| limited.poll_ready(cx));
    tokio::time::timeout(Duration::from_secs(1), ready)
        .await
        .expect("the permit is back")
        .unwrap();
    Left {
        ended,
        budget,
        probe: handle,
    }
}

#[tokio::test(start_paused = true)]
async fn whenever_a_call_is_dropped_budget_and_permits_are_back() {
    let mut polls = 0;
    loop {
        let left = dropped_after(polls).await;
        assert_eq!(left.probe.in_flight(), 0, "after {polls} polls");
        // What was spent on the first retry is gone once that retry was answered by a failure; what
        // was only scheduled or under way is back.
        let second_failed =
            left.probe.calls() == 3 || left.probe.calls() == 2 && left.probe.dropped() == 0;
        let spent = if second_failed { 14 } else { 0 };
        assert_eq!(
            left.budget.remaining(),
            Some(500 - spent),
            "after {polls} polls"
        );
        if left.ended {
            assert_eq!(left.probe.calls(), 3);
            break;
        }
        polls += 1;
        assert!(polls < 100, "the call never ends");
    }
    assert!(polls > 8, "every state was met: {polls}");
}
