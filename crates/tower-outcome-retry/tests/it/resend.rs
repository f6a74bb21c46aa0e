//! What a resend looks like on the wire, and what happens where there can be none.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use tower::{Layer, Service, ServiceExt};
use tower_outcome_core::{
    BoxError, CallReport, Deadline, Failure, Outcome, Reason, ReplayBody, ReplayLayer,
};
use tower_test::mock;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn every_attempt_is_the_same_request() {
    let mut secret = HeaderValue::from_static("secret");
    secret.set_sensitive(true);
    let mut request = Request::put("http://venue.test/orders/1?side=buy")
        .version(http::Version::HTTP_2)
        .header("x-list", "a")
        .header("x-list", "b")
        .header("x-empty", "")
        .header("x-bytes", HeaderValue::from_bytes(b"\xff\x80").unwrap())
        .body(Full::from("quantity 7"))
        .unwrap();
    request.headers_mut().insert("authorization", secret);
    request.extensions_mut().insert(7_u32);
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, request);
    let (first, first_body, send) = server.attempt().await;
    send.send_response(status(503));
    let (second, second_body, send) = server.attempt().await;
    send.send_response(status(200));
    finish(call).await.unwrap();
    assert_eq!(first.method, second.method);
    assert_eq!(first.uri, second.uri);
    assert_eq!(first.version, second.version);
    assert_eq!(first.headers, second.headers);
    assert_eq!(second.headers.get_all("x-list").iter().count(), 2);
    assert!(second.headers["authorization"].is_sensitive());
    assert_eq!(second.extensions.get::<u32>(), Some(&7));
    assert_eq!(first_body, second_body);
}

type Frames = Vec<Result<Frame<Bytes>, Infallible>>;
type Stream =
    StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

fn stream(chunks: usize, size: usize) -> Stream {
    let frames: Frames = (0..chunks)
        .map(|_| Ok(Frame::data(Bytes::from(vec![7; size]))))
        .collect();
    StreamBody::new(futures_util::stream::iter(frames))
}

#[tokio::test(start_paused = true)]
async fn a_streamed_body_is_sent_again_in_full() {
    let (mock, mut handle) = mock::pair::<Request<ReplayBody<Stream>>, Res>();
    let retry = steady().build().unwrap();
    let service = ReplayLayer::new().layer(retry.layer(mock));
    let request = Request::put("http://venue.test/x")
        .body(stream(3, 10))
        .unwrap();
    let call = tokio::spawn(service.oneshot(request));
    // The first attempt takes one frame and dies.
    let (first, send) = handle.next_request().await.unwrap();
    let mut body = first.into_body();
    body.frame().await.unwrap().unwrap();
    send.send_error(reset());
    drop(body);
    let (second, send) = handle.next_request().await.unwrap();
    let bytes = second.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(bytes.len(), 30);
    send.send_response(status(200));
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_over_its_bound_passes_untouched_and_is_not_sent_again() {
    let (mock, mut handle) = mock::pair::<Request<ReplayBody<Stream>>, Res>();
    let retry = steady().build().unwrap();
    let service = ReplayLayer::with_limit(16).layer(retry.layer(mock));
    let request = Request::put("http://venue.test/x")
        .body(stream(3, 10))
        .unwrap();
    let call = tokio::spawn(service.oneshot(request));
    let (first, send) = handle.next_request().await.unwrap();
    let bytes = first.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(bytes.len(), 30);
    send.send_response(status(503));
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let report = CallReport::of(response.extensions()).unwrap();
    assert_eq!(report.not_retried().unwrap().label(), "body_not_replayable");
}

/// A body that fails at its first frame.
struct Failing;

impl Body for Failing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Err("the file is gone".into())))
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_body_that_fails_is_the_callers_error_and_never_retried() {
    let (mock, mut handle) = mock::pair::<Request<ReplayBody<Failing>>, Res>();
    let retry = steady().build().unwrap();
    let service = ReplayLayer::new().layer(retry.layer(mock));
    let request = Request::put("http://venue.test/x").body(Failing).unwrap();
    let call = tokio::spawn(service.oneshot(request));
    let (first, send) = handle.next_request().await.unwrap();
    assert!(first.into_body().collect().await.is_err());
    send.send_error(reset());
    let error = call.await.unwrap().unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(
        failure.outcome(),
        Outcome::Permanent {
            reason: Reason::RequestBody
        }
    );
    assert!(handle.next_request().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_needs_no_replay_layer() {
    let (mock, mut handle) = mock::pair::<Request<Empty<Bytes>>, Res>();
    let service = steady().build().unwrap().layer(mock);
    let request = Request::get("http://venue.test/x")
        .body(Empty::new())
        .unwrap();
    let call = tokio::spawn(service.oneshot(request));
    for code in [503, 200] {
        let (_, send) = handle.next_request().await.unwrap();
        send.send_response(status(code));
    }
    assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK);
}

/// A service that becomes ready once, and refuses ever after.
#[derive(Clone, Default)]
struct ReadyOnce {
    polls: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Service<Req> for ReadyOnce {
    type Response = Res;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Res, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.polls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err("the worker is closed".into())),
        }
    }

    fn call(&mut self, _request: Req) -> Self::Future {
        std::future::ready(Ok(status(503)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_no_longer_ready_does_not_replace_the_answer() {
    let service = steady().build().unwrap().layer(ReadyOnce::default());
    let response = service.oneshot(get()).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let report = CallReport::of(response.extensions()).unwrap().clone();
    let Some(tower_outcome_core::NotRetried::NotReady(why)) = report.not_retried() else {
        panic!("{report:?}");
    };
    assert_eq!(why.error().to_string(), "the worker is closed");
    assert_eq!(report.attempts(), 1);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "503", "although it was read ahead during the backoff");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_once_the_deadline_has_passed_while_becoming_ready() {
    let (mut service, mut server) = pair(&steady().build().unwrap());
    let mut request = get();
    request
        .extensions_mut()
        .insert(Deadline::after(Duration::from_secs(1)));
    // One call, and then the server is full.
    server.0.allow(1);
    let call = service.ready().await.unwrap().call(request);
    let call = tokio::spawn(call);
    server.answer(503).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.0.allow(1);
    let response = call.await.unwrap().unwrap();
    let report = CallReport::of(response.extensions()).unwrap();
    assert_eq!(report.not_retried().unwrap().label(), "deadline");
    drop(service);
    server.expect_no_more().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_holds_nothing_of_the_service() {
    use tower::limit::ConcurrencyLimit;

    let (mock, mut handle) = mock::pair::<Req, Res>();
    let mut service = steady()
        .build()
        .unwrap()
        .layer(ConcurrencyLimit::new(mock, 1));
    let waiting = tokio::spawn(service.ready().await.unwrap().call(get()));
    let (_, send) = handle.next_request().await.unwrap();
    send.send_response(hinted(503, "60"));
    // The only permit is free during that minute.
    let other = tokio::spawn(service.clone().oneshot(post()));
    let (request, send) = handle.next_request().await.unwrap();
    assert_eq!(request.method(), "POST");
    send.send_response(status(201));
    assert_eq!(other.await.unwrap().unwrap().status(), StatusCode::CREATED);
    let (_, send) = handle.next_request().await.unwrap();
    send.send_response(status(200));
    assert_eq!(waiting.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn the_answer_that_is_discarded_is_read_to_its_end_first() {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Says when it has been read to its end.
    struct Told(Full<Bytes>, std::sync::Arc<AtomicBool>);
    impl Body for Told {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let frame = Pin::new(&mut self.0).poll_frame(cx);
            if self.0.is_end_stream() {
                self.1.store(true, Ordering::SeqCst);
            }
            frame
        }
    }

    let (mock, mut handle) = mock::pair::<Req, Response<Told>>();
    let service = steady().build().unwrap().layer(mock);
    let call = tokio::spawn(service.oneshot(get()));
    let (_, send) = handle.next_request().await.unwrap();
    let read = std::sync::Arc::new(AtomicBool::new(false));
    let answer = Told(Full::from("try later"), read.clone());
    send.send_response(Response::builder().status(503).body(answer).unwrap());
    let (_, send) = handle.next_request().await.unwrap();
    assert!(read.load(Ordering::SeqCst));
    let answer = Told(Full::from("ok"), read);
    send.send_response(Response::new(answer));
    call.await.unwrap().unwrap();
}

/// Answers once, and is never ready again.
#[derive(Clone, Default)]
struct StuckAfterOne(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl Service<Req> for StuckAfterOne {
    type Response = Res;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Res, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }

    fn call(&mut self, _request: Req) -> Self::Future {
        std::future::ready(Ok(status(503)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_never_ready_again_holds_no_call_past_its_limits() {
    let deadline = Deadline::after(Duration::from_secs(10));
    let mut bound = get();
    bound.extensions_mut().insert(deadline);
    let by_deadline = steady().build().unwrap().layer(StuckAfterOne::default());
    let layer = steady().elapsed(Duration::from_secs(10)).build().unwrap();
    let by_elapsed = layer.layer(StuckAfterOne::default());
    for (service, request, why) in [
        (by_deadline, bound, "deadline"),
        (by_elapsed, get(), "elapsed"),
    ] {
        let begin = tokio::time::Instant::now();
        let response = service.oneshot(request).await.unwrap();
        assert!(begin.elapsed() <= Duration::from_secs(11), "{why}");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let report = CallReport::of(response.extensions()).unwrap();
        assert_eq!(report.not_retried().unwrap().label(), why);
    }
}
