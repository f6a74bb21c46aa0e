//! A conversation with a mock server.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Full};
use tokio::{task::JoinHandle, time::Instant};
use tower::{Layer, ServiceExt};
use tower_outcome_core::{
    BoxError, BrokenBody, CallReport, Classify, Delivery, Failure, Outcome, Reason, peek::PeekBody,
};
use tower_outcome_retry::{Backoff, Jitter, Retry, RetryLayer, RetryLayerBuilder};
use tower_test::mock::{self, Mock, SendResponse};

pub(crate) type Req = Request<Full<Bytes>>;
pub(crate) type Res = Response<Full<Bytes>>;
pub(crate) type Reply = Response<PeekBody<Full<Bytes>, BrokenBody>>;
pub(crate) type Outcomes = Result<Reply, BoxError>;
pub(crate) type Service<C> = Retry<Mock<Req, Res>, C>;

/// The server's side.
pub(crate) struct Server(pub(crate) mock::Handle<Req, Res>);

/// Defaults, but the waits do not depend on chance.
pub(crate) fn steady() -> RetryLayerBuilder<tower_outcome_core::HttpClassifier> {
    RetryLayer::builder().backoff(Backoff::new().jitter(Jitter::None))
}

pub(crate) fn pair<C>(layer: &RetryLayer<C>) -> (Service<C>, Server) {
    let (mock, handle) = mock::pair();
    (layer.layer(mock), Server(handle))
}

pub(crate) fn start<C>(service: &Service<C>, request: Req) -> JoinHandle<Outcomes>
where
    C: Classify + Send + Sync + 'static,
{
    tokio::spawn(service.clone().oneshot(request))
}

pub(crate) fn get() -> Req {
    Request::get("http://venue.test/price")
        .body(Full::default())
        .unwrap()
}

pub(crate) fn post() -> Req {
    Request::post("http://venue.test/orders")
        .body(Full::from("buy 100"))
        .unwrap()
}

pub(crate) fn keyed_post() -> Req {
    let mut request = post();
    request
        .headers_mut()
        .insert("idempotency-key", "order-1".parse().unwrap());
    request
}

pub(crate) fn delete() -> Req {
    Request::delete("http://venue.test/orders/1")
        .body(Full::default())
        .unwrap()
}

pub(crate) fn status(code: u16) -> Res {
    Response::builder()
        .status(code)
        .body(Full::from(code.to_string()))
        .unwrap()
}

pub(crate) fn hinted(code: u16, retry_after: &str) -> Res {
    let mut response = status(code);
    response
        .headers_mut()
        .insert("retry-after", retry_after.parse().unwrap());
    response
}

pub(crate) fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// What a layer below says of a request that never left.
pub(crate) fn unsent() -> BoxError {
    Failure::not_sent(Reason::Transport, "no connection").into()
}

pub(crate) fn refused() -> BoxError {
    Failure::new(
        Outcome::Retryable {
            reason: Reason::Transport,
            after: None,
        },
        Delivery::Refused,
        "refused stream",
    )
    .into()
}

// === impl Server ===

impl Server {
    /// The next attempt, and the time since `start` at which it came.
    pub(crate) async fn attempt(&mut self) -> (request::Parts, Bytes, SendResponse<Res>) {
        let (request, send) = self.0.next_request().await.expect("another attempt");
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head, body, send)
    }

    pub(crate) async fn answer(&mut self, code: u16) -> request::Parts {
        self.respond(status(code)).await
    }

    pub(crate) async fn respond(&mut self, response: Res) -> request::Parts {
        let (head, _, send) = self.attempt().await;
        send.send_response(response);
        head
    }

    pub(crate) async fn fail(&mut self, error: BoxError) -> request::Parts {
        let (head, _, send) = self.attempt().await;
        send.send_error(error);
        head
    }

    /// Waits for the attempt and says how long it was in coming.
    pub(crate) async fn answer_timed(&mut self, code: u16) -> Duration {
        let start = Instant::now();
        let (_, _, send) = self.attempt().await;
        let waited = start.elapsed();
        send.send_response(status(code));
        waited
    }

    /// Asserts that the call is over: every client is gone and no attempt is left unanswered.
    pub(crate) async fn expect_no_more(mut self) {
        assert!(
            self.0.next_request().await.is_none(),
            "an attempt that nobody should have made"
        );
    }
}

pub(crate) async fn finish(call: JoinHandle<Outcomes>) -> Outcomes {
    call.await.expect("the call panicked")
}

pub(crate) fn report(result: &Outcomes) -> &CallReport {
    CallReport::in_result(result).expect("a report")
}

pub(crate) fn code(result: &Outcomes) -> StatusCode {
    result.as_ref().expect("a response").status()
}

pub(crate) fn not_retried(result: &Outcomes) -> &'static str {
    report(result).not_retried().expect("a reason").label()
}
