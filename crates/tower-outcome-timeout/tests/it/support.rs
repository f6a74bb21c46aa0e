//! A conversation with a mock server, and bodies that do what a test says.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};
use tower::{Layer, Service, ServiceExt};
use tower_outcome_core::{
    BoxError, Delivery, Failure, Outcome, Phase, Reason, WitnessBody, WitnessLayer,
    witness::Witness,
};
use tower_outcome_timeout::{Bound, Elapsed, SentBody, Timeout, TimeoutBody, TimeoutLayer};
use tower_test::mock::{self, Handle, Mock, SendResponse};

pub(crate) type Res = Response<Steps>;
pub(crate) type Req = Request<Steps>;

/// What the client below Timeout and Witness gets.
pub(crate) type Sent = Request<WitnessBody<SentBody<Steps>>>;
pub(crate) type Bounded = Timeout<Witness<Mock<Sent, Res>>>;
pub(crate) type Outcomes<B> = Result<Response<B>, BoxError>;

/// A body that does what a test says.
#[derive(Debug)]
pub(crate) struct Steps {
    known: bool,
    left: u64,
    steps: VecDeque<Step>,
    from: Option<mpsc::UnboundedReceiver<Step>>,
}

#[derive(Debug)]
pub(crate) enum Step {
    Data(&'static str),
    Trailers,
    Fail,
}

// === impl Steps ===

impl Steps {
    /// A body of these frames, whose length is known.
    pub(crate) fn new(frames: &[&'static str]) -> Self {
        Self {
            known: true,
            left: frames.iter().map(|data| data.len() as u64).sum(),
            steps: frames.iter().map(|data| Step::Data(data)).collect(),
            from: None,
        }
    }

    pub(crate) fn empty() -> Self {
        Self::new(&[])
    }

    /// A body of unknown length, whose frames the test sends when it likes.
    pub(crate) fn piped() -> (mpsc::UnboundedSender<Step>, Self) {
        let (to, from) = mpsc::unbounded_channel();
        let body = Self {
            known: false,
            left: 0,
            steps: VecDeque::new(),
            from: Some(from),
        };
        (to, body)
    }
}

impl Body for Steps {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let step = match (self.steps.pop_front(), &mut self.from) {
            (Some(step), _) => Some(step),
            (None, Some(from)) => match from.poll_recv(cx) {
                Poll::Ready(step) => step,
                Poll::Pending => return Poll::Pending,
            },
            (None, None) => None,
        };
        Poll::Ready(step.map(|step| match step {
            Step::Data(data) => {
                self.left = self.left.saturating_sub(data.len() as u64);
                Ok(Frame::data(Bytes::from_static(data.as_bytes())))
            }
            Step::Trailers => {
                let sum = ("x-sum".parse().unwrap(), "1".parse().unwrap());
                Ok(Frame::trailers(HeaderMap::from_iter([sum])))
            }
            Step::Fail => Err("the body broke".into()),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.known && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.known {
            SizeHint::with_exact(self.left)
        } else {
            SizeHint::new()
        }
    }
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn request(method: Method, body: Steps) -> Req {
    Request::builder()
        .method(method)
        .uri("http://venue.test/orders")
        .body(body)
        .unwrap()
}

/// A POST of two frames.
pub(crate) fn post() -> Req {
    request(Method::POST, Steps::new(&["buy ", "100"]))
}

pub(crate) fn get() -> Req {
    request(Method::GET, Steps::empty())
}

pub(crate) fn ok(body: Steps) -> Res {
    Response::new(body)
}

/// Timeout above a witness above a client that does what the test says.
pub(crate) fn bounded(layer: TimeoutLayer) -> (Bounded, Handle<Sent, Res>) {
    let (mock, handle) = mock::pair();
    (layer.layer(WitnessLayer::new().layer(mock)), handle)
}

/// Starts a call, and waits until it has come as far as it gets.
pub(crate) async fn start<S, B>(service: &S, request: Req) -> JoinHandle<Outcomes<B>>
where
    S: Service<Req, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    let call = tokio::spawn(service.clone().oneshot(request));
    settle().await;
    call
}

/// Lets the other tasks come to rest; no time passes.
pub(crate) async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn received<Q, R>(server: &mut Handle<Q, R>) -> (Q, SendResponse<R>) {
    server.next_request().await.expect("a request")
}

/// Takes the next frame of a request as a transport does; `false` if there is none to be had.
pub(crate) fn take<B>(request: &mut Request<B>) -> bool
where
    B: Body + Unpin,
{
    let mut cx = Context::from_waker(Waker::noop());
    let body = request.body_mut();
    if body.is_end_stream() {
        return false;
    }
    match Pin::new(&mut *body).poll_frame(&mut cx) {
        Poll::Ready(Some(Ok(_))) => {
            // As hyper does before it asks for more.
            let _ = body.is_end_stream();
            true
        }
        _ => false,
    }
}

/// What a bound that struck has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Struck {
    pub(crate) bound: Bound,
    pub(crate) phase: Phase,
    pub(crate) delivery: Delivery,
    pub(crate) outcome: Outcome,
    pub(crate) after: Duration,
}

/// Waits for the call to end by a bound, and says how long after `start` that was.
pub(crate) async fn struck<B>(start: Instant, call: JoinHandle<Outcomes<B>>) -> Struck {
    match call.await.expect("the call panicked") {
        Ok(response) => panic!("answered with {}", response.status()),
        Err(error) => read(start, &error),
    }
}

pub(crate) fn read(start: Instant, error: &BoxError) -> Struck {
    let failure = Failure::of(&**error).unwrap_or_else(|| panic!("no failure: {error}"));
    let elapsed = Elapsed::of(&**error).unwrap_or_else(|| panic!("no bound: {error}"));
    Struck {
        bound: elapsed.bound(),
        phase: elapsed.phase(),
        delivery: failure.delivery(),
        outcome: failure.outcome(),
        after: start.elapsed(),
    }
}

pub(crate) const fn retryable(reason: Reason) -> Outcome {
    Outcome::Retryable {
        reason,
        after: None,
    }
}

pub(crate) const fn unknown(reason: Reason) -> Outcome {
    Outcome::Unknown { reason }
}

/// Reads a body to its end, or to its error.
pub(crate) async fn read_body<B>(body: B) -> Result<Vec<&'static str>, BoxError>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    use http_body_util::BodyExt;
    let mut body = body;
    let mut seen = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        seen.push(if frame.is_data() { "data" } else { "trailers" });
    }
    Ok(seen)
}

/// A response body below Timeout, and the test's end of it.
pub(crate) async fn body_of(
    layer: TimeoutLayer,
) -> (mpsc::UnboundedSender<Step>, TimeoutBody<Steps>) {
    let (service, mut server) = bounded(layer);
    let call = start(&service, get()).await;
    let (_, send) = received(&mut server).await;
    let (to, body) = Steps::piped();
    send.send_response(ok(body));
    (to, call.await.unwrap().unwrap().into_body())
}
