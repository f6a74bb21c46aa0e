//! What tower asks of every service.

use super::*;

#[tokio::test]
async fn the_instance_that_was_made_ready_is_the_one_called() {
    let (probe, handle) = Probe::new(Keep::default());
    let mut service = layer(STAMP, &clock()).layer(probe);
    for _ in 0..3 {
        let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await;
        ready.unwrap().call(order()).await.unwrap();
    }
    assert_eq!((handle.calls(), handle.in_flight()), (3, 0));
}

#[tokio::test]
async fn a_readiness_error_passes_through() {
    let (mock, mut handle) =
        tower_test::mock::pair::<Request<SignedBody<Full<Bytes>>>, Response<Full<Bytes>>>();
    handle.send_error("the worker is closed");
    let result = layer(STAMP, &clock()).layer(mock).oneshot(order()).await;
    assert_eq!(result.unwrap_err().to_string(), "the worker is closed");
}

#[tokio::test]
async fn the_whole_can_be_boxed_and_shared() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    let service = layer(STAMP, &clock()).layer(Keep::default());
    shared(&service);
    let boxed = tower::util::BoxCloneSyncService::new(service);
    boxed.oneshot(order()).await.unwrap();
}

#[tokio::test]
async fn a_call_dropped_anywhere_leaves_nothing_in_flight() {
    for polls in 0..8 {
        let (probe, handle) = Probe::new(Keep::default());
        let service = layer(STAMP, &clock()).layer(probe);
        let mut call = task::spawn(service.oneshot(order()));
        for _ in 0..polls {
            if call.poll().is_ready() {
                break;
            }
        }
        drop(call);
        assert_eq!(
            (handle.in_flight(), handle.clones()),
            (0, 0),
            "{polls} polls"
        );
    }
}

#[tokio::test]
async fn a_request_that_was_not_signed_reserves_nothing() {
    let limited = ConcurrencyLimitLayer::new(1).layer(Keep::default());
    let service = layer(STAMP, &clock()).layer(limited);
    let mut request = order();
    request
        .headers_mut()
        .insert("x-time", "mine".parse().unwrap());
    let mut call = task::spawn(service.clone().oneshot(request));
    let Poll::Ready(result) = call.poll() else {
        panic!("nothing to wait for");
    };
    let (_, kind) = refusal(result);
    assert!(matches!(kind, SignErrorKind::Conflict { .. }));
    // Although somebody still holds what is left of it.
    let next = tokio::spawn(service.oneshot(order()));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(next.is_finished());
    drop(call);
}
