//! What is told of calls that nobody waits for any more.

use std::sync::{Arc, Mutex};

use http::Request;
use tokio::time::advance;
use tower::{Layer, ServiceExt};
use tower_outcome_core::{
    CallContext, Deadline, Delivery, Phase, Reason, WitnessBody, WitnessLayer,
};
use tower_outcome_timeout::{Abandoned, DeadlineLayer, Timeouts};
use tower_test::mock;

use crate::support::*;

type Told = Arc<Mutex<Vec<(String, Abandoned)>>>;

/// A layer that writes down what it is told, under the path of the request.
fn layer() -> (DeadlineLayer, Told) {
    let told = Told::default();
    let book = Arc::clone(&told);
    let layer = DeadlineLayer::builder(&Timeouts::new())
        .on_abandoned(move |head| {
            let (path, book) = (head.uri.path().to_owned(), Arc::clone(&book));
            Box::new(move |abandoned| book.lock().unwrap().push((path, abandoned)))
        })
        .build();
    (layer, told)
}

fn only(told: &Told) -> Abandoned {
    let told = told.lock().unwrap();
    let [(path, abandoned)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(path, "/orders");
    *abandoned
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_after_dispatch_is_unknown() {
    let (layer, told) = layer();
    let (mock, mut server) = mock::pair::<Request<WitnessBody<Steps>>, Res>();
    let service = layer.layer(WitnessLayer::new().layer(mock));
    let call = start(&service, post()).await;
    let (mut sent, _send) = received(&mut server).await;
    assert!(take(&mut sent) && take(&mut sent));
    call.abort();
    settle().await;
    let abandoned = only(&told);
    assert_eq!(abandoned.outcome(), unknown(Reason::TimedOut));
    assert_eq!(abandoned.delivery(), Delivery::MaybeSent);
    assert_eq!(abandoned.phase(), Phase::AwaitingHead);
    assert_eq!(abandoned.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_which_nobody_below_tells_is_unknown() {
    let (layer, told) = layer();
    let (mock, mut server) = mock::pair::<Req, Res>();
    let call = start(&layer.layer(mock), post()).await;
    let _kept = received(&mut server).await;
    call.abort();
    settle().await;
    assert_eq!(only(&told).outcome(), unknown(Reason::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_before_its_body_was_taken_was_not_sent() {
    let (layer, told) = layer();
    let (mock, mut server) = mock::pair::<Request<WitnessBody<Steps>>, Res>();
    let service = layer.layer(WitnessLayer::new().layer(mock));
    let call = start(&service, post()).await;
    let (mut sent, _send) = received(&mut server).await;
    call.abort();
    settle().await;
    assert_eq!(only(&told).outcome(), retryable(Reason::TimedOut));
    assert_eq!(only(&told).delivery(), Delivery::NotSent);
    assert!(!take(&mut sent));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_between_two_attempts_ended_with_the_last() {
    let (layer, told) = layer();
    let (mock, mut server) = mock::pair::<Req, Res>();
    let call = start(&layer.layer(mock), post()).await;
    let (sent, _send) = received(&mut server).await;
    let context = CallContext::of(sent.extensions()).unwrap();
    context.begin_attempt();
    context.end_attempt(retryable(Reason::Transport), Delivery::NotSent);
    call.abort();
    settle().await;
    assert_eq!(only(&told).outcome(), retryable(Reason::Transport));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_end_its_caller_learns_is_nobody_elses_business() {
    let (layer, told) = layer();
    let (mock, mut server) = mock::pair::<Req, Res>();
    let service = layer.layer(mock);
    // Answered, and the body dropped unread.
    let call = start(&service, post()).await;
    let (_sent, send) = received(&mut server).await;
    send.send_response(ok(Steps::new(&["x"])));
    drop(call.await.unwrap().unwrap());
    // Failed.
    let call = start(&service, post()).await;
    let (_sent, send) = received(&mut server).await;
    send.send_error("broken");
    assert!(call.await.unwrap().is_err());
    // Over.
    let call = start(&service, post()).await;
    let _kept = received(&mut server).await;
    advance(secs(30)).await;
    assert!(call.await.unwrap().is_err());
    // Never started.
    let mut late = post();
    late.extensions_mut().insert(Deadline::after(secs(0)));
    drop(service.clone().oneshot(late));
    assert!(told.lock().unwrap().is_empty());
}
