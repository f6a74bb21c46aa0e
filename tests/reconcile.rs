//! A client that asks the venue what became of an order, over sockets.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_outcome::{
    Answer, Backoff, BoxError, ByQuery, Finding, HttpClassifier, Inquiry, Jitter, Judged,
    ReconcileLayer, RetryLayer, WitnessConnector, WitnessLayer,
    reconcile::{ReconcileLayerBuilder, Schedule},
    retry::RetryLayerBuilder,
};
use tower_outcome_testkit::{Fault, Index, Ledger, Venue};

mod held;
mod nested;
mod random;
mod stack;
mod told;

type Body = Full<Bytes>;
type Below<B> = BoxCloneSyncService<Request<B>, Response<Incoming>, BoxError>;

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// What goes wrong with the orders, one after the other; questions are answered.
#[derive(Clone, Default)]
struct Faults(Arc<Mutex<VecDeque<Fault>>>);

impl Faults {
    fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self(Arc::new(Mutex::new(faults.into_iter().collect())))
    }

    fn put_on<B>(&self, mut request: Request<B>) -> Request<B> {
        if request.method() == http::Method::POST {
            if let Some(fault) = self.0.lock().unwrap().pop_front() {
                let value = fault.header_value();
                request.headers_mut().insert(Fault::HEADER, value);
            }
        }
        request
    }
}

/// A client that sends each request once.
fn below<B>(faults: Faults) -> Below<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let client = Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .build(WitnessConnector::new(HttpConnector::new()));
    let service = ServiceBuilder::new()
        .map_request(move |request| faults.put_on(request))
        .layer(WitnessLayer::new())
        .service(client);
    BoxCloneSyncService::new(service.map_err(BoxError::from))
}

fn venue(index: Index) -> Venue {
    let duplicate = tower_outcome_testkit::Answer::status(409).header("x-duplicate", "1");
    let builder = Venue::builder().index(index).duplicates(duplicate);
    builder.start().unwrap()
}

fn index() -> Index {
    Index::new("/operations/")
}

fn classifier() -> HttpClassifier {
    HttpClassifier::builder()
        .head_rule(|seen: Judged<'_>| {
            let is_duplicate = seen.head.headers.contains_key("x-duplicate");
            is_duplicate.then_some(Answer::Duplicate)
        })
        .build()
        .unwrap()
}

fn retry() -> RetryLayerBuilder<HttpClassifier> {
    RetryLayer::builder().classifier(classifier()).backoff(
        Backoff::new()
            .base(MILLI)
            .throttled_base(MILLI)
            .jitter(Jitter::None),
    )
}

/// Asks for the operation, in milliseconds in the place of seconds.
fn reconcile<R>(reconciler: R) -> ReconcileLayerBuilder<R, HttpClassifier> {
    let schedule = Schedule::new().first(MILLI).cap(10 * MILLI);
    ReconcileLayer::builder(reconciler)
        .classifier(classifier())
        .id_header(http::HeaderName::from_static(Ledger::OPERATION_HEADER))
        .schedule(schedule)
        .min_age(20 * MILLI)
        .processing_limit(20 * MILLI)
}

#[expect(clippy::type_complexity, reason = "closures have no shorter name")]
fn by_query(
    venue: &Venue,
) -> ByQuery<
    impl Fn(&Inquiry) -> Result<Request<Body>, http::Error> + use<>,
    impl Fn(&Inquiry, Response<Bytes>) -> Finding + use<>,
> {
    let base = venue.url("/operations/");
    ByQuery::new(
        move |inquiry: &Inquiry| question(&base, inquiry),
        |_: &Inquiry, answer| read(answer),
    )
}

fn question(base: &str, inquiry: &Inquiry) -> Result<Request<Body>, http::Error> {
    let id = inquiry.id().to_path_segment();
    Request::get(format!("{base}{id}")).body(Body::default())
}

fn read(answer: Response<Bytes>) -> Finding {
    match answer.status() {
        StatusCode::OK => Finding::Applied(answer),
        StatusCode::NOT_FOUND => Finding::NotFound,
        _ => Finding::Unclear,
    }
}

fn order(venue: &Venue, id: &str) -> Request<Body> {
    Request::post(venue.url("/orders"))
        .header(Ledger::OPERATION_HEADER, id)
        .body(Body::from("buy 100"))
        .unwrap()
}

/// How many orders of that name the venue saw, and how many it applied.
fn seen(venue: &Venue, id: &str) -> (usize, usize) {
    let ledger = venue.ledger();
    (ledger.of_operation(id).len(), ledger.applied(id))
}

async fn text<B>(response: Response<B>) -> String
where
    B: http_body::Body<Data = Bytes, Error = BoxError>,
{
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
