//! The probe and the script.

use tower::limit::ConcurrencyLimitLayer;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_outcome_testkit::{Exhausted, Probe, ProbeLayer, Script};

fn script(answers: usize) -> Script<u8, u8> {
    Script::new((0..answers).map(|_| Ok(1)))
}

#[tokio::test]
async fn ready_calls_pass_and_are_counted() {
    let (mut probe, handle) = Probe::new(script(2));
    for _ in 0..2 {
        assert_eq!(probe.ready().await.unwrap().call(7).await.unwrap(), 1);
    }
    assert_eq!(handle.calls(), 2);
    assert_eq!(handle.peak(), 1);
    assert_eq!(handle.in_flight(), 0);
    assert_eq!(handle.dropped(), 0);
}

#[tokio::test]
#[should_panic(expected = "not polled ready")]
async fn call_without_readiness_panics() {
    let (mut probe, _) = Probe::new(script(1));
    let _ = probe.call(7).await;
}

#[tokio::test]
#[should_panic(expected = "not polled ready")]
async fn readiness_is_used_up_by_a_call() {
    let (mut probe, _) = Probe::new(script(2));
    let _ = probe.ready().await.unwrap().call(7).await;
    let _ = probe.call(7).await;
}

#[tokio::test]
#[should_panic(expected = "not polled ready")]
async fn clone_of_a_ready_instance_is_not_ready() {
    let (mut probe, _) = Probe::new(script(1));
    let mut clone = probe.ready().await.unwrap().clone();
    let _ = clone.call(7).await;
}

#[tokio::test]
async fn clones_and_dropped_futures_are_counted() {
    let (layer, handle) = ProbeLayer::new();
    let mut service = ServiceBuilder::new()
        .layer(ConcurrencyLimitLayer::new(2))
        .layer(layer)
        .service(script(4));
    assert_eq!(handle.clones(), 1);
    let mut clone = service.clone();
    assert_eq!(handle.clones(), 2);
    let first = service.ready().await.unwrap().call(1);
    let second = clone.ready().await.unwrap().call(2);
    assert_eq!((handle.in_flight(), handle.peak()), (2, 2));
    drop(first);
    assert_eq!((handle.in_flight(), handle.dropped()), (1, 1));
    assert_eq!(second.await.unwrap(), 1);
    drop((service, clone));
    assert_eq!(
        (handle.clones(), handle.in_flight(), handle.dropped()),
        (0, 0, 1)
    );
}

#[tokio::test]
async fn script_answers_in_order_keeps_requests_and_ends() {
    let script: Script<u8, u8> = Script::new([Ok(1), Err("no".into())]);
    assert_eq!(script.clone().oneshot(7).await.unwrap(), 1);
    assert_eq!(
        script.clone().oneshot(8).await.unwrap_err().to_string(),
        "no"
    );
    let spent = script.clone().oneshot(9).await.unwrap_err();
    assert!(spent.is::<Exhausted>());
    assert_eq!(script.take_requests(), [7, 8, 9]);
}
