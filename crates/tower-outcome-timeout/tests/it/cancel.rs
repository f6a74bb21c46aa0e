//! A call that is dropped leaves nothing behind, wherever that happens.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use http_body::Body;
use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};
use tower_outcome_core::WitnessLayer;
use tower_outcome_testkit::{Probe, ProbeHandle};
use tower_outcome_timeout::{ConnectionLimitLayer, DeadlineLayer, TimeoutLayer};

use crate::{contract::Echo, support::*};

/// What is left after a call was polled so often and dropped.
struct Left {
    ended: bool,
    layer: ConnectionLimitLayer,
    probe: ProbeHandle,
}

/// Polls a call, then its body, so many times in all, while another holds the only slot for a while.
async fn dropped_after(polls: usize) -> Left {
    let (probe, handle) = Probe::new(Echo);
    let layer = ConnectionLimitLayer::builder(1).build().unwrap();
    let service = TimeoutLayer::default().layer(WitnessLayer::new().layer(probe));
    let mut service = DeadlineLayer::default().layer(layer.layer(service));
    let mut cx = Context::from_waker(Waker::noop());

    let mut first = Box::pin(service.ready().await.unwrap().call(post()));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    let mut first = Some(first);
    let mut call = Box::pin(service.ready().await.unwrap().call(post()));
    let mut body = None;
    let mut ended = false;
    for poll in 0..polls {
        if poll == 3 {
            // The slot is free.
            drop(first.take());
        }
        match &mut body {
            None => {
                if let Poll::Ready(result) = call.as_mut().poll(&mut cx) {
                    body = Some(result.unwrap().into_body());
                }
            }
            Some(body) => {
                if let Poll::Ready(None) = Pin::new(body).poll_frame(&mut cx) {
                    ended = true;
                    break;
                }
            }
        }
        advance(std::time::Duration::from_millis(20)).await;
    }
    drop((call, body, first));
    Left {
        ended,
        layer,
        probe: handle,
    }
}

#[tokio::test(start_paused = true)]
async fn whenever_a_call_is_dropped_its_slot_is_free_and_nothing_is_in_flight() {
    let mut polls = 0;
    loop {
        let left = dropped_after(polls).await;
        assert_eq!(left.probe.in_flight(), 0, "after {polls} polls");
        let key = Some("venue.test".parse().unwrap());
        assert_eq!(left.layer.in_flight(&key), 0, "after {polls} polls");
        if left.ended {
            break;
        }
        polls += 1;
        assert!(polls < 100, "the call never ends");
    }
    assert!(polls > 5, "every state was met: {polls}");
}
