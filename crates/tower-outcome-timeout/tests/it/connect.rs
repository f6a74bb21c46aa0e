//! The bound of connecting.

use http::Uri;
use tokio::time::{Instant, advance};
use tower::{Layer, Service, ServiceExt};
use tower_outcome_core::{BoxError, Delivery, Failure, Phase, Reason};
use tower_outcome_testkit::Probe;
use tower_outcome_timeout::{Bound, ConnectTimeoutLayer, Elapsed, Timeouts};
use tower_test::mock;

use crate::support::*;

fn venue() -> Uri {
    Uri::from_static("http://venue.test")
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_come_is_given_up_and_nothing_was_sent() {
    let start_at = Instant::now();
    let (mock, mut server) = mock::pair::<Uri, ()>();
    let (probe, handle) = Probe::new(mock);
    let connector = ConnectTimeoutLayer::default().layer(probe);
    let call = tokio::spawn(connector.oneshot(venue()));
    let _kept = received(&mut server).await;
    let error = call.await.unwrap().unwrap_err();
    let expected = Struck {
        bound: Bound::Connect,
        phase: Phase::Connecting,
        delivery: Delivery::NotSent,
        outcome: retryable(Reason::TimedOut),
        after: std::time::Duration::from_millis(3_100),
    };
    assert_eq!(read(start_at, &error), expected);
    assert_eq!((handle.dropped(), handle.in_flight()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_there_wins_over_the_bound() {
    let (mock, mut server) = mock::pair::<Uri, &str>();
    let connector = ConnectTimeoutLayer::default().layer(mock);
    let mut call = tokio_test::task::spawn(connector.oneshot(venue()));
    tokio_test::assert_pending!(call.poll());
    let (_, send) = received(&mut server).await;
    send.send_response("connected");
    advance(secs(60)).await;
    assert_eq!(tokio_test::assert_ready!(call.poll()).unwrap(), "connected");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_connector_passes() {
    let (mock, mut server) = mock::pair::<Uri, ()>();
    let connector = ConnectTimeoutLayer::default().layer(mock);
    let call = tokio::spawn(connector.oneshot(venue()));
    let (_, send) = received(&mut server).await;
    send.send_error(BoxError::from("no such host"));
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "no such host");
    assert!(Elapsed::of(&*error).is_none());
    assert!(Failure::of(&*error).is_none());
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_it_is_the_connector() {
    let (mock, mut server) = mock::pair::<Uri, ()>();
    let none = Timeouts::builder().connect(None).build().unwrap();
    let mut connector = ConnectTimeoutLayer::new(&none).layer(mock);
    let call = tokio::spawn(connector.ready().await.unwrap().call(venue()));
    let (_, send) = received(&mut server).await;
    advance(secs(86_400)).await;
    settle().await;
    assert!(!call.is_finished());
    send.send_response(());
    assert!(call.await.unwrap().is_ok());
}

#[test]
fn it_is_unpin_where_the_connector_is() {
    fn is_unpin<T: Unpin>() {}
    is_unpin::<tower_outcome_timeout::ConnectTimeoutFuture<std::future::Ready<()>>>();
}
