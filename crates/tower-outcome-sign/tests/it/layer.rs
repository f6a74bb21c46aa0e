//! The layer: when it signs, what it refuses, and the contract of tower.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::time::Instant;
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimitLayer};
use tower_outcome_core::{
    BoxError, CallContext, Clock, Deadline, Delivery, Failure, ManualClock, Outcome, Reason,
    ValidUntil,
};
use tower_outcome_sign::{
    AsyncSign, Draft, Fresh, Needs, Sign, SignError, SignErrorKind, SignLayer, Signed, SignedBody,
    Validity,
};
use tower_outcome_testkit::Probe;

use crate::{
    clock::classifier,
    support::{at_ms, ms, secs},
};

mod contract;
mod slow;

pub(crate) const TIME: HeaderName = HeaderName::from_static("x-time");
pub(crate) const NONCE: HeaderName = HeaderName::from_static("x-nonce");
const LENGTH: HeaderName = HeaderName::from_static("x-length");

/// Writes down the time, and the nonce where there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) body: bool,
    pub(crate) window: Duration,
}

pub(crate) const STAMP: Stamp = Stamp {
    body: true,
    window: secs(5),
};

impl Sign for Stamp {
    fn needs(&self) -> Needs {
        if self.body { Needs::BODY } else { Needs::HEAD }
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        draft.set_header(TIME, fresh.time().as_millis().into())?;
        if let Ok(nonce) = fresh.nonce() {
            draft.set_header(NONCE, nonce.get().into())?;
        }
        if self.body {
            draft.set_header(LENGTH, draft.body()?.len().into())?;
        }
        Ok(Validity::for_window(fresh.time(), self.window))
    }
}

pub(crate) type Seen = Arc<Mutex<Vec<(http::request::Parts, Bytes)>>>;

/// Answers 200 and keeps what it was sent.
#[derive(Clone, Default)]
pub(crate) struct Keep(pub(crate) Seen);

impl<B> Service<Request<B>> for Keep
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let seen = Arc::clone(&self.0);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            tokio::task::yield_now().await;
            seen.lock().unwrap().push((head, body));
            Ok(Response::new(Full::default()))
        })
    }
}

pub(crate) fn order() -> Request<Full<Bytes>> {
    Request::post("https://venue.test/orders")
        .body(Full::from("buy 100"))
        .unwrap()
}

pub(crate) fn layer(signer: Stamp, clock: &Arc<ManualClock>) -> SignLayer<Stamp> {
    SignLayer::builder(signer)
        .origin("https://venue.test")
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .body_limit(16)
        .build()
        .unwrap()
}

pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(at_ms(1_700_000_000_000)))
}

/// What the layer says of a request that it did not send.
#[track_caller]
pub(crate) fn refusal<T>(result: Result<T, BoxError>) -> (Outcome, SignErrorKind) {
    let Err(error) = result else {
        panic!("it was sent")
    };
    let failure = Failure::of(&*error).expect("a failure");
    assert_eq!(failure.delivery(), Delivery::NotSent);
    let kind = SignError::of(&*error).expect("a sign error").kind().clone();
    (failure.outcome(), kind)
}

pub(crate) const INVALID: Outcome = Outcome::Permanent {
    reason: Reason::InvalidRequest,
};

#[tokio::test]
async fn the_time_is_that_of_sending_and_not_of_the_call() {
    let (clock, keep) = (clock(), Keep::default());
    let limit = ConcurrencyLimitLayer::new(1);
    let inner = limit.layer(keep.clone());
    let service = layer(STAMP, &clock).layer(inner.clone());
    // Somebody else has the only permit.
    let mut busy = inner;
    ServiceExt::<Request<Full<Bytes>>>::ready(&mut busy)
        .await
        .unwrap();
    let mut call = task::spawn(service.oneshot(order()));
    assert_pending!(call.poll());
    clock.advance(secs(8));
    drop(busy);
    call.await.unwrap();
    let seen = keep.0.lock().unwrap();
    assert_eq!(seen[0].0.headers[TIME], "1700000008000");
}

#[tokio::test]
async fn bytes_are_shared_and_not_copied() {
    let keep = Keep::default();
    let data = Bytes::from(vec![7; 16]);
    let request = Request::post("https://venue.test/").body(Full::new(data.clone()));
    let service = layer(STAMP, &clock()).layer(keep.clone());
    service.oneshot(request.unwrap()).await.unwrap();
    let seen = keep.0.lock().unwrap();
    assert_eq!(seen[0].1.as_ptr(), data.as_ptr());
    assert_eq!(seen[0].0.headers[LENGTH], "16");
}

type Frames = Vec<Result<Frame<Bytes>, io::Error>>;

async fn streamed(frames: Frames) -> Result<(http::request::Parts, Bytes), BoxError> {
    let keep = Keep::default();
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let request = Request::post("https://venue.test/").body(body).unwrap();
    let service = layer(STAMP, &clock()).layer(keep.clone());
    service.oneshot(request).await?;
    let seen = keep.0.lock().unwrap().remove(0);
    Ok(seen)
}

#[tokio::test]
async fn a_body_in_frames_is_signed_whole() {
    let data = |text: &'static str| Ok(Frame::data(Bytes::from(text)));
    let (head, body) = streamed(vec![data("buy"), data(""), data(" 100")])
        .await
        .unwrap();
    assert_eq!(head.headers[LENGTH], "7");
    assert_eq!(body, "buy 100");
    let exact = vec![data("0123456789"), data("abcdef")];
    assert_eq!(streamed(exact).await.unwrap().1.len(), 16);
    let more = vec![data("0123456789"), data("abcdefg")];
    let (outcome, kind) = refusal(streamed(more).await);
    assert_eq!(outcome, INVALID);
    assert_eq!(kind, SignErrorKind::BodyTooLarge { limit: 16 });
    let broken = vec![data("buy"), Err(io::ErrorKind::Other.into())];
    let (outcome, kind) = refusal(streamed(broken).await);
    assert_eq!(
        outcome,
        Outcome::Permanent {
            reason: Reason::RequestBody
        }
    );
    assert_eq!(kind, SignErrorKind::BodyFailed);
}

#[tokio::test]
async fn trailers_stay_at_the_end() {
    let (mock, mut handle) =
        tower_test::mock::pair::<Request<SignedBody<_>>, Response<Full<Bytes>>>();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    let frames: Frames = vec![
        Ok(Frame::data(Bytes::from("a"))),
        Ok(Frame::trailers(trailers.clone())),
    ];
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let request = Request::post("https://venue.test/").body(body).unwrap();
    let mut call = task::spawn(layer(STAMP, &clock()).layer(mock).oneshot(request));
    assert_pending!(call.poll());
    let (request, send) = handle.next_request().await.unwrap();
    let body = request.into_body();
    assert_eq!(body.size_hint().lower(), 1);
    assert!(!body.is_end_stream());
    let collected = body.collect().await.unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    send.send_response(Response::new(Full::default()));
    call.await.unwrap();
}

#[tokio::test]
async fn trailers_are_sent_over_http_1() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"0\r\nx-sum: 1\r\n\r\n") {
            let read = stream.read_buf(&mut seen).await.unwrap();
            let text = String::from_utf8_lossy(&seen);
            assert!(read > 0 && !text.contains("content-length"), "{text}");
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
    });
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    let frames: Frames = vec![
        Ok(Frame::data(Bytes::from("a"))),
        Ok(Frame::trailers(trailers)),
    ];
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let request = Request::post(format!("{origin}/")).header("trailer", "x-sum");
    let executor = hyper_util::rt::TokioExecutor::new();
    let client = hyper_util::client::legacy::Client::builder(executor).build_http();
    let service = SignLayer::new(STAMP, &origin).unwrap().layer(client);
    let answered = service.oneshot(request.body(body).unwrap());
    let (served, answered) = tokio::join!(server, answered);
    served.unwrap();
    answered.unwrap();
}

/// Fails the test if it is read.
struct Unread;

impl Body for Unread {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        panic!("nobody has asked for the body")
    }
}

#[tokio::test]
async fn a_body_that_is_not_signed_is_not_read() {
    let (mock, mut handle) =
        tower_test::mock::pair::<Request<SignedBody<Unread>>, Response<Full<Bytes>>>();
    let head_only = Stamp {
        body: false,
        ..STAMP
    };
    let request = Request::post("https://venue.test/").body(Unread).unwrap();
    let mut call = task::spawn(layer(head_only, &clock()).layer(mock).oneshot(request));
    assert_pending!(call.poll());
    let (request, send) = handle.next_request().await.unwrap();
    assert!(!request.headers().contains_key(LENGTH));
    send.send_response(Response::new(Full::default()));
    call.await.unwrap();
}

#[tokio::test]
async fn a_signer_that_forgot_to_ask_for_the_body_is_told() {
    struct Forgetful;
    impl Sign for Forgetful {
        fn sign(&self, draft: &mut Draft, _: &Fresh) -> Result<Validity, SignError> {
            draft.body()?;
            Ok(Validity::UNLIMITED)
        }
    }
    let layer = SignLayer::new(Forgetful, "https://venue.test").unwrap();
    let (outcome, kind) = refusal(layer.layer(Keep::default()).oneshot(order()).await);
    assert_eq!((outcome, kind), (INVALID, SignErrorKind::BodyNotAsked));
}

#[tokio::test]
async fn a_redirect_to_a_stranger_is_refused() {
    let keep = Keep::default();
    let service = layer(STAMP, &clock()).layer(keep.clone());
    for uri in [
        "https://evil.test/orders",
        "http://venue.test/orders",
        "/orders",
    ] {
        let mut redirected = order();
        *redirected.uri_mut() = uri.parse().unwrap();
        let (outcome, kind) = refusal(service.clone().oneshot(redirected).await);
        assert_eq!((outcome, kind), (INVALID, SignErrorKind::Origin));
    }
    assert!(keep.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_request_is_not_signed_twice() {
    let keep = Keep::default();
    let twice = layer(STAMP, &clock()).layer(layer(STAMP, &clock()).layer(keep));
    let (_, kind) = refusal(twice.oneshot(order()).await);
    assert_eq!(
        kind,
        SignErrorKind::Conflict {
            name: "x-time".into()
        }
    );
}

#[tokio::test]
async fn a_clock_out_of_all_time_is_not_signed() {
    for time in [-1_i64, 253_402_300_800] {
        let epoch = at_ms(0);
        let time = match u64::try_from(time) {
            Ok(time) => epoch + secs(time),
            Err(_) => epoch - secs(1),
        };
        let service = layer(STAMP, &Arc::new(ManualClock::new(time))).layer(Keep::default());
        let (outcome, kind) = refusal(service.oneshot(order()).await);
        assert_eq!(
            outcome,
            Outcome::Permanent {
                reason: Reason::ClockSkew
            }
        );
        assert_eq!(kind, SignErrorKind::TimeOutOfRange);
    }
}

#[test]
fn a_layer_that_cannot_work_is_not_built() {
    struct Numbered;
    impl Sign for Numbered {
        fn needs(&self) -> Needs {
            Needs::HEAD.and_nonce()
        }
        fn sign(&self, _: &mut Draft, _: &Fresh) -> Result<Validity, SignError> {
            Ok(Validity::UNLIMITED)
        }
    }
    let field = |error: tower_outcome_core::ConfigError| error.field();
    let builder = || SignLayer::builder(STAMP);
    assert_eq!(field(builder().build().unwrap_err()), "origin");
    assert_eq!(
        field(builder().origin("no origin/").build().unwrap_err()),
        "origin"
    );
    // Nothing could ever be signed better the second time.
    let useless = builder().origin("venue.test").classifier(classifier());
    assert_eq!(field(useless.build().unwrap_err()), "classifier");
    let both = builder().origin("venue.test").any_origin().build();
    assert_eq!(field(both.unwrap_err()), "any_origin");
    assert!(builder().any_origin().build().is_ok());
    assert_eq!(
        field(SignLayer::new(Numbered, "venue.test").unwrap_err()),
        "nonces"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_signed_up_to_its_deadline() {
    for template in [
        tower_outcome_sign::Template::okx("k", "s", "p").unwrap(),
        tower_outcome_sign::Template::binance("k", "s").unwrap(),
        tower_outcome_sign::Template::bitmex("k", "s").unwrap(),
    ] {
        for left in [ms(1), ms(400), ms(500)] {
            let mut call = order();
            let deadline = Deadline::at(Instant::now() + left);
            call.extensions_mut().insert(deadline);
            let signer = SignLayer::builder(template.clone())
                .origin("https://venue.test")
                .clock(clock())
                .build()
                .unwrap();
            signer.layer(Keep::default()).oneshot(call).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_validity_is_told_to_those_who_ask() {
    let keep = Keep::default();
    let context = CallContext::new();
    let mut asked = order();
    context.put(asked.extensions_mut());
    let service = layer(STAMP, &clock()).layer(keep.clone());
    let response = service.oneshot(asked).await.unwrap();
    let end = ValidUntil::at(Instant::now() + secs(5));
    assert_eq!(context.valid_until(), Some(end));
    assert_eq!(ValidUntil::of(response.extensions()), None);

    let published = SignLayer::builder(STAMP)
        .origin("https://venue.test")
        .clock(clock())
        .publishes_validity(true)
        .build()
        .unwrap();
    let response = published
        .layer(keep.clone())
        .oneshot(order())
        .await
        .unwrap();
    assert_eq!(ValidUntil::of(response.extensions()), Some(end));
    assert_eq!(
        ValidUntil::of(&keep.0.lock().unwrap()[1].0.extensions),
        Some(end)
    );
}

#[tokio::test]
async fn a_call_given_up_while_it_waits_is_known_not_to_have_been_sent() {
    let (mock, mut handle) =
        tower_test::mock::pair::<Request<SignedBody<Full<Bytes>>>, Response<Full<Bytes>>>();
    handle.allow(0);
    let context = CallContext::new();
    context.begin_attempt();
    let mut watched = order();
    context.put(watched.extensions_mut());
    let mut call = task::spawn(layer(STAMP, &clock()).layer(mock).oneshot(watched));
    assert_pending!(call.poll());
    assert_eq!(context.give_up_attempt().delivery, Delivery::NotSent);
    handle.allow(1);
    assert_pending!(call.poll());
    // Handed down, and nobody below says more.
    assert_eq!(context.give_up_attempt().delivery, Delivery::MaybeSent);
}
