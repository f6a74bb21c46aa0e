//! The call that every case makes, and the service at the bottom of every stack.

use std::{
    future::{Future, Ready, ready},
    hint::black_box,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::Full;
use pin_project_lite::pin_project;
use tower::{BoxError, Service, ServiceExt};
use tower_outcome::{Deadline, NoResend};

/// What is sent: a body that is shared and not copied.
pub(crate) type Call = Request<Full<Bytes>>;

/// Answers at once and does nothing.
///
/// Each stack has one of its own kind at the bottom, told apart by its number. Two stacks that share a part
/// would share its code, and the compiler inlines what is used once: a case would be cheaper or dearer for
/// what the other cases are.
#[derive(Clone, Debug)]
pub(crate) struct Bare<const STACK: usize>;

/// Has what is above wait for one poll, as a network does.
#[derive(Clone, Debug)]
pub(crate) struct Hesitate<S>(pub(crate) S);

/// Polls until there is an answer, so that the loop need not wait.
#[derive(Clone, Debug)]
pub(crate) struct Persist<S>(pub(crate) S);

/// What [`Hesitate`] waits with.
#[derive(Debug)]
pub(crate) struct Hesitating<F> {
    inner: F,
    waited: bool,
}

pin_project! {
    /// What [`Persist`] polls with.
    #[derive(Debug)]
    pub(crate) struct Persisting<F> {
        #[pin]
        inner: F,
    }
}

/// What the requests of a loop are made from.
#[derive(Debug)]
pub(crate) struct Order {
    target: Uri,
    api_key: HeaderValue,
    idempotency_key: HeaderValue,
    signature: HeaderValue,
    timestamp: HeaderValue,
    body: Bytes,
}

/// Which requests a loop sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// With an idempotency key, so that they may be sent again.
    Keyed,
    /// The same, with the caller's word that they must not be sent again.
    Marked,
    /// With a key, and with a deadline of the caller's own.
    Dated,
}

/// Makes calls, one after the other.
pub(crate) trait Burst {
    fn run(&mut self, calls: u32);
}

/// The loop around one service.
#[derive(Debug)]
pub(crate) struct Loop<S> {
    service: S,
    order: Order,
    make: fn(&Order) -> Call,
}

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

// === impl Order ===

impl Order {
    pub(crate) fn new() -> Self {
        Self {
            target: "https://venue.example/orders".parse().expect("is a URI"),
            api_key: value("0123456789abcdef0123456789abcdef"),
            idempotency_key: value("6f1c2a34-5d0e-4c8b-9a27-1b7d3e5f9c02"),
            signature: value("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
            timestamp: value("1767225600000"),
            body: Bytes::from(vec![b'x'; 96]),
        }
    }

    pub(crate) fn body(&self) -> Bytes {
        self.body.clone()
    }

    // One copy in the program, so that a case pays for no other inlining than its bare loop.
    #[inline(never)]
    pub(crate) fn keyed(&self) -> Call {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.clone();
        let headers = request.headers_mut();
        headers.insert(API_KEY, self.api_key.clone());
        headers.insert(header::CONTENT_TYPE, JSON);
        headers.insert(IDEMPOTENCY_KEY, self.idempotency_key.clone());
        headers.insert(SIGNATURE, self.signature.clone());
        headers.insert(TIMESTAMP, self.timestamp.clone());
        request
    }

    #[inline(never)]
    fn dated(&self) -> Call {
        let mut request = self.keyed();
        let extensions = request.extensions_mut();
        extensions.insert(Deadline::after(Duration::from_secs(10)));
        request
    }

    #[inline(never)]
    fn marked(&self) -> Call {
        let mut request = self.keyed();
        request.extensions_mut().insert(NoResend::new());
        request
    }
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("is a value")
}

// === impl Bare ===

impl<const STACK: usize, B> Service<Request<B>> for Bare<STACK> {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Full::new(Bytes::new()))))
    }
}

// === impl Hesitate ===

impl<S: Service<R, Future: Unpin>, R> Service<R> for Hesitate<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Hesitating<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        Hesitating {
            inner: self.0.call(request),
            waited: false,
        }
    }
}

impl<F: Future + Unpin> Future for Hesitating<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if !std::mem::replace(&mut self.waited, true) {
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll(cx)
    }
}

// === impl Persist ===

impl<S: Service<R>, R> Service<R> for Persist<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Persisting<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        Persisting {
            inner: self.0.call(request),
        }
    }
}

impl<F: Future> Future for Persisting<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut inner = self.project().inner;
        loop {
            if let Poll::Ready(output) = inner.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
        }
    }
}

// === impl Loop ===

impl<S> Loop<S> {
    pub(crate) fn boxed(service: S, sent: Sent) -> Box<dyn Burst>
    where
        Self: Burst + 'static,
    {
        Box::new(Self {
            service,
            order: Order::new(),
            make: match sent {
                Sent::Keyed => Order::keyed,
                Sent::Marked => Order::marked,
                Sent::Dated => Order::dated,
            },
        })
    }
}

impl<S, B> Burst for Loop<S>
where
    S: Service<Call, Response = Response<B>, Error = BoxError>,
{
    fn run(&mut self, calls: u32) {
        let Self {
            service,
            order,
            make,
        } = self;
        let burst = pin!(async {
            for _ in 0..calls {
                let request = make(order);
                let ready = service.ready().await.expect("is always ready");
                // Looked at where it is: to move the response is no cost of a layer.
                assert!(black_box(&ready.call(request).await).is_ok(), "never fails");
            }
        });
        // Nothing here ever waits, so no executor takes part in the figures.
        let polled = burst.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready(), "the bare service never waits");
    }
}
