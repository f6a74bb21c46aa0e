//! A conversation with a mock server, and a reconciler that is told what to find.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request};
use http_body_util::{BodyExt, Full};
use tokio::{task::JoinHandle, time::Instant};
use tower::{Layer, ServiceExt};
use tower_outcome_core::{
    Answer, BoxError, Delivery, Failure, HintForm, HttpClassifier, Judged, Outcome, Reason,
    RetryAfter,
};
use tower_outcome_reconcile::{
    Finding, Inquiry, Reconcile, ReconcileBody, ReconcileLayer, ReconcileLayerBuilder, Reconciled,
    Reconciler, Through,
};
use tower_test::mock::{self, Mock, SendResponse};

pub(crate) type Req = Request<Full<Bytes>>;
pub(crate) type Res = Response<Full<Bytes>>;
pub(crate) type Reply = Result<Response<ReconcileBody<Full<Bytes>>>, BoxError>;
pub(crate) type Stack<R> = Reconcile<Mock<Req, Res>, R, HttpClassifier>;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Finds what it is told, one after the other, and the last for ever; knows when it was asked.
#[derive(Clone)]
pub(crate) struct Script(Arc<Mutex<Told>>);

struct Told {
    say: VecDeque<Say>,
    asked: Vec<(Instant, Inquiry)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Say {
    Applied,
    Rejected,
    Denied,
    Missing,
    Pending,
    Fails,
    FailsFor(Duration),
    Hangs,
}

/// The server's side.
pub(crate) struct Server(pub(crate) mock::Handle<Req, Res>);

// === impl Script ===

impl Script {
    pub(crate) fn new(say: impl IntoIterator<Item = Say>) -> Self {
        Self(Arc::new(Mutex::new(Told {
            say: say.into_iter().collect(),
            asked: Vec::new(),
        })))
    }

    pub(crate) fn asked(&self) -> Vec<(Instant, Inquiry)> {
        self.0.lock().unwrap().asked.clone()
    }

    pub(crate) fn times(&self) -> usize {
        self.0.lock().unwrap().asked.len()
    }
}

impl<S: Send, B> Reconciler<S, B> for Script {
    async fn ask(&self, inquiry: Inquiry, _: Through<S>) -> Result<Finding, BoxError> {
        let say = {
            let mut told = self.0.lock().unwrap();
            told.asked.push((Instant::now(), inquiry));
            if told.say.len() > 1 {
                told.say.pop_front()
            } else {
                told.say.front().cloned()
            }
        };
        match say.expect("something to say") {
            Say::Applied => Ok(Finding::Applied(record("found"))),
            Say::Rejected => Ok(Finding::Rejected(record("rejected"))),
            Say::Denied => Ok(Finding::NotApplied),
            Say::Missing => Ok(Finding::NotFound),
            Say::Pending => Ok(Finding::Pending),
            Say::Fails => Err("the index is down".into()),
            Say::FailsFor(span) => {
                let after = RetryAfter::new(span, HintForm::Custom);
                let outcome = Outcome::Retryable {
                    reason: Reason::RateLimited,
                    after: Some(after),
                };
                Err(Failure::new(outcome, Delivery::Answered, "slow down").into())
            }
            Say::Hangs => std::future::pending().await,
        }
    }
}

pub(crate) fn record(text: &'static str) -> Response<Bytes> {
    Response::new(Bytes::from_static(text.as_bytes()))
}

pub(crate) fn builder<R>(reconciler: R) -> ReconcileLayerBuilder<R> {
    ReconcileLayer::builder(reconciler).id_header(http::HeaderName::from_static("x-order-id"))
}

/// Knows this venue's way to say that an order id was seen before.
pub(crate) fn classifier() -> HttpClassifier {
    HttpClassifier::builder()
        .head_rule(|seen: Judged<'_>| {
            let is_duplicate = seen.head.headers.contains_key("x-duplicate");
            is_duplicate.then_some(Answer::Duplicate)
        })
        .build()
        .unwrap()
}

pub(crate) fn pair<R>(builder: ReconcileLayerBuilder<R>) -> (Stack<R>, Server) {
    let (mock, handle) = mock::pair();
    let layer = builder.classifier(classifier()).build().unwrap();
    (layer.layer(mock), Server(handle))
}

pub(crate) fn start<R>(service: &Stack<R>, request: Req) -> JoinHandle<Reply>
where
    R: Reconciler<Mock<Req, Res>, Full<Bytes>>,
{
    tokio::spawn(service.clone().oneshot(request))
}

/// Has one order end in this way, and returns the result and how long it took.
pub(crate) async fn lost(builder: ReconcileLayerBuilder<Script>) -> (Reply, Duration) {
    let (service, mut server) = pair(builder);
    let call = start(&service, order());
    drop(service);
    server.fail(reset()).await;
    let began = Instant::now();
    let result = call.await.unwrap();
    (result, began.elapsed())
}

pub(crate) fn order() -> Req {
    Request::post("http://venue.test/orders?symbol=A")
        .header("x-order-id", "order-1")
        .body(Full::from("buy 100"))
        .unwrap()
}

pub(crate) fn status(code: u16) -> Res {
    Response::builder()
        .status(code)
        .body(Full::from(code.to_string()))
        .unwrap()
}

pub(crate) fn busy_for(seconds: u64) -> Res {
    let mut response = status(503);
    let headers = response.headers_mut();
    headers.insert(http::header::RETRY_AFTER, seconds.into());
    response
}

pub(crate) fn duplicate() -> Res {
    let mut response = status(400);
    response
        .headers_mut()
        .insert("x-duplicate", "1".parse().unwrap());
    response
}

/// What a layer that knows the transport says of a connection that broke.
pub(crate) fn reset() -> BoxError {
    let outcome = Outcome::Unknown {
        reason: Reason::Transport,
    };
    let source = io::Error::from(io::ErrorKind::ConnectionReset);
    Failure::new(outcome, Delivery::MaybeSent, source).into()
}

pub(crate) async fn text(response: Response<ReconcileBody<Full<Bytes>>>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn report(result: &Reply) -> &Reconciled {
    Reconciled::in_result(result).expect("a report")
}

// === impl Server ===

impl Server {
    pub(crate) async fn attempt(&mut self) -> (request::Parts, SendResponse<Res>) {
        let (request, send) = self.0.next_request().await.expect("another request");
        (request.into_parts().0, send)
    }

    pub(crate) async fn respond(&mut self, response: Res) -> request::Parts {
        let (head, send) = self.attempt().await;
        send.send_response(response);
        head
    }

    pub(crate) async fn fail(&mut self, error: BoxError) -> request::Parts {
        let (head, send) = self.attempt().await;
        send.send_error(error);
        head
    }

    /// Asserts that nobody sends anything any more.
    pub(crate) async fn expect_no_more(mut self) {
        assert!(
            self.0.next_request().await.is_none(),
            "a request that nobody should have made"
        );
    }
}
