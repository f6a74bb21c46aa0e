//! What is sent once more after its time or its nonce was refused, and what comes of it if that fails.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio_test::{assert_pending, task};
use tower::{Layer, ServiceExt};
use tower_outcome_core::{BoxError, CallContext, Delivery, ManualClock, ValidUntil};
use tower_outcome_sign::{
    AsyncSign, Draft, Fresh, Needs, Nonces, Resigned, SignError, SignErrorKind, SignLayer,
    SignReport, Signed, SignedBody, Unit, Validity,
};

use crate::{
    clock::classifier,
    layer::{STAMP, order},
    support::{at_ms, secs},
};

/// Refuses every nonce, is ready so often, and then so.
#[derive(Clone)]
struct Refusing {
    calls: Arc<AtomicUsize>,
    then: Then,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Ready,
    Pending,
    Fails,
}

impl Refusing {
    fn new(then: Then) -> Self {
        let calls = Arc::default();
        Self { calls, then }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl tower::Service<Request<SignedBody<Full<Bytes>>>> for Refusing {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.then {
            Then::Pending if self.calls() > 0 => Poll::Pending,
            Then::Fails if self.calls() > 0 => Poll::Ready(Err("down".into())),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: Request<SignedBody<Full<Bytes>>>) -> Self::Future {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            let response = Response::builder().status(400).header("x-error", "nonce");
            Ok(response.body(Full::from("your nonce is invalid")).unwrap())
        })
    }
}

/// Signs once; then the key service is down, at once or when it is asked.
struct Once {
    signed: AtomicUsize,
    at_once: bool,
    error: fn() -> SignError,
}

impl Once {
    fn new(at_once: bool, error: fn() -> SignError) -> Self {
        let signed = AtomicUsize::new(0);
        Self {
            signed,
            at_once,
            error,
        }
    }

    fn signs(&self, fresh: &Fresh) -> Result<Validity, SignError> {
        match self.signed.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(Validity::for_window(fresh.time(), secs(5))),
            _ => Err((self.error)()),
        }
    }
}

impl AsyncSign for Once {
    type Future = Pin<Box<dyn Future<Output = Result<Signed, SignError>> + Send>>;

    fn sign_now(&self, _: &mut Draft, fresh: &Fresh) -> Option<Result<Validity, SignError>> {
        self.at_once.then(|| self.signs(fresh))
    }

    fn sign_async(&self, draft: Draft, fresh: Fresh) -> Self::Future {
        let signed = self.signs(&fresh).map(|end| Signed::new(draft, end));
        Box::pin(async move {
            tokio::task::yield_now().await;
            signed
        })
    }
}

fn layer<A: AsyncSign>(signer: A) -> SignLayer<A> {
    SignLayer::builder(signer)
        .origin("https://venue.test")
        .clock(Arc::new(ManualClock::new(at_ms(1_700_000_000_000))))
        .nonces(Nonces::new(Unit::Millis))
        .classifier(classifier())
        .publishes_validity(true)
        .build()
        .unwrap()
}

async fn is_the_refusal<B>(response: Response<B>)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    assert_eq!(response.status(), 400);
    let report = SignReport::of(response.extensions()).unwrap();
    assert_eq!(report.refused(), Some(Resigned::InvalidNonce));
    assert_eq!(report.resigned(), None);
    assert!(ValidUntil::of(response.extensions()).is_some());
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes(), "your nonce is invalid");
}

#[tokio::test]
async fn a_request_that_cannot_be_signed_again_brings_the_refusal() {
    let errors: [fn() -> SignError; 3] = [
        || SignError::unavailable("the key service is down"),
        || SignError::rejected("no"),
        || SignErrorKind::Stale.into(),
    ];
    for error in errors {
        for at_once in [true, false] {
            let server = Refusing::new(Then::Ready);
            let service = layer(Once::new(at_once, error)).layer(server.clone());
            is_the_refusal(service.oneshot(order()).await.unwrap()).await;
            assert_eq!(server.calls(), 1);
        }
    }
}

#[tokio::test]
async fn a_client_that_is_not_ready_again_brings_the_refusal() {
    let server = Refusing::new(Then::Fails);
    let service = layer(STAMP).layer(server.clone());
    is_the_refusal(service.oneshot(order()).await.unwrap()).await;
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn the_second_refusal_is_the_callers() {
    let server = Refusing::new(Then::Ready);
    let response = layer(STAMP).layer(server.clone()).oneshot(order()).await;
    let report = SignReport::of(response.unwrap().extensions()).unwrap();
    assert_eq!(report.refused(), Some(Resigned::InvalidNonce));
    assert_eq!(report.resigned(), Some(Resigned::InvalidNonce));
    assert_eq!(server.calls(), 2);
}

#[tokio::test]
async fn a_call_given_up_before_the_second_sending_was_refused() {
    let server = Refusing::new(Then::Pending);
    let service = layer(STAMP).layer(server.clone());
    let (context, mut request) = (CallContext::new(), order());
    context.put(request.extensions_mut());
    context.begin_attempt();
    let mut call = task::spawn(service.oneshot(request));
    assert_pending!(call.poll());
    assert_eq!(server.calls(), 1);
    assert_eq!(context.give_up().delivery, Delivery::Refused);
}

#[tokio::test]
async fn a_second_sending_is_an_attempt_of_its_own() {
    let service = layer(STAMP).layer(Refusing::new(Then::Ready));
    let (context, mut request) = (CallContext::new(), order());
    context.put(request.extensions_mut());
    context.begin_attempt();
    service.oneshot(request).await.unwrap();
    assert_eq!(context.attempts(), 2);
    // Of the second nobody knows more than that it was sent.
    assert_eq!(context.give_up().delivery, Delivery::MaybeSent);
}

#[tokio::test]
async fn a_call_that_was_given_up_is_not_sent() {
    for sent in [0, 1] {
        let server = Refusing::new(Then::Ready);
        let service = layer(Later).layer(server.clone());
        let (context, mut request) = (CallContext::new(), order());
        context.put(request.extensions_mut());
        let mut call = task::spawn(service.oneshot(request));
        for _ in 0..=sent {
            assert_pending!(call.poll());
        }
        assert_eq!(server.calls(), sent);
        let delivery = context.give_up().delivery;
        assert!(delivery.proves_not_applied(), "{delivery:?}");
        // Whoever polls on all the same makes no liar of it.
        call.await.unwrap_err();
        assert_eq!(server.calls(), sent);
    }
}

/// Signs one poll later.
struct Later;

impl AsyncSign for Later {
    type Future = Pin<Box<dyn Future<Output = Result<Signed, SignError>> + Send>>;

    fn needs_async(&self) -> Needs {
        Needs::HEAD
    }

    fn sign_async(&self, draft: Draft, _: Fresh) -> Self::Future {
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(Signed::new(draft, Validity::UNLIMITED))
        })
    }
}
