//! What the wrappers leave of a body: everything.

use http::Method;
use http_body::Body;
use tokio::time::advance;
use tower::{Layer, ServiceExt};
use tower_outcome_timeout::{
    ConnectionLimitBody, ConnectionLimitLayer, DeadlineBody, DeadlineLayer, SentBody, TimeoutBody,
    TimeoutLayer, Timeouts,
};
use tower_test::mock;

use crate::support::*;

/// All bounds that there are, so that every wrapper has something to do.
fn timeouts() -> Timeouts {
    let timeouts = Timeouts::builder().head(secs(5)).write_idle(secs(5));
    timeouts.build().unwrap()
}

#[test]
fn a_wrapped_body_is_unpin() {
    fn is_unpin<T: Unpin>() {}
    is_unpin::<SentBody<Steps>>();
    is_unpin::<TimeoutBody<Steps>>();
    is_unpin::<DeadlineBody<Steps>>();
    is_unpin::<ConnectionLimitBody<Steps>>();
}

#[tokio::test(start_paused = true)]
async fn a_request_body_keeps_its_length_and_its_end() {
    for (frames, length) in [(&["buy ", "100"][..], 7), (&[], 0)] {
        let (mock, mut server) = mock::pair::<http::Request<SentBody<Steps>>, Res>();
        let service = TimeoutLayer::new(&timeouts()).layer(mock);
        let body = request(Method::POST, Steps::new(frames));
        let _call = start(&service, body).await;
        let (mut sent, _send) = received(&mut server).await;
        assert_eq!(sent.body().size_hint().exact(), Some(length));
        assert_eq!(sent.body().is_end_stream(), frames.is_empty());
        while take(&mut sent) {}
        assert_eq!(sent.body().size_hint().exact(), Some(0));
        assert!(sent.body().is_end_stream());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_body_keeps_its_trailers_and_its_error() {
    for last in [Step::Trailers, Step::Fail] {
        let fails = matches!(last, Step::Fail);
        let (mock, mut server) = mock::pair::<http::Request<SentBody<Steps>>, Res>();
        let service = TimeoutLayer::new(&timeouts()).layer(mock);
        let (to, body) = Steps::piped();
        let _call = start(&service, request(Method::POST, body)).await;
        let (sent, _send) = received(&mut server).await;
        to.send(Step::Data("a")).unwrap();
        to.send(last).unwrap();
        drop(to);
        let seen = read_body(sent.into_body()).await;
        if fails {
            assert_eq!(seen.unwrap_err().to_string(), "the body broke");
        } else {
            assert_eq!(seen.unwrap(), ["data", "trailers"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_body_keeps_its_length_its_end_and_its_trailers() {
    let stack = || {
        let (mock, server) = mock::pair();
        let limit = ConnectionLimitLayer::builder(1).build().unwrap();
        let service = TimeoutLayer::new(&timeouts()).layer(mock);
        let service = DeadlineLayer::default().layer(limit.layer(service));
        (service, server)
    };
    for (frames, length) in [(&["a", "bc"][..], 3), (&[], 0)] {
        let (service, mut server) = stack();
        let call = tokio::spawn(service.oneshot(get()));
        let (_sent, send): (http::Request<SentBody<Steps>>, _) = received(&mut server).await;
        send.send_response(ok(Steps::new(frames)));
        let body = call.await.unwrap().unwrap().into_body();
        assert_eq!(body.size_hint().exact(), Some(length));
        assert_eq!(body.is_end_stream(), frames.is_empty());
        assert_eq!(read_body(body).await.unwrap().len(), frames.len());
    }
    let (service, mut server) = stack();
    let call = tokio::spawn(service.oneshot(get()));
    let (_sent, send): (http::Request<SentBody<Steps>>, _) = received(&mut server).await;
    let (to, body) = Steps::piped();
    send.send_response(ok(body));
    let body = call.await.unwrap().unwrap().into_body();
    assert_eq!(body.size_hint().exact(), None);
    to.send(Step::Data("a")).unwrap();
    to.send(Step::Trailers).unwrap();
    drop(to);
    assert_eq!(read_body(body).await.unwrap(), ["data", "trailers"]);
}

#[tokio::test(start_paused = true)]
async fn a_response_body_that_was_struck_is_at_its_end() {
    use http_body_util::BodyExt;
    let (to, mut body) = body_of(TimeoutLayer::default()).await;
    let mut frame = tokio_test::task::spawn(body.frame());
    tokio_test::assert_pending!(frame.poll());
    advance(secs(20)).await;
    assert!(tokio_test::assert_ready!(frame.poll()).unwrap().is_err());
    drop(frame);
    assert!(body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
    assert!(body.frame().await.is_none());
    assert!(to.is_closed());
}
