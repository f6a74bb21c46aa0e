//! Three published client designs, each by configuration only: what they document is what is asserted.
//!
//! Client and venue talk over real sockets, and the client's clock is paused: it stands still while a
//! request is on the wire, and goes on where there is nothing to do but to wait. So the waits that a
//! design documents are exact, and take no time.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use tokio::{
    task::{spawn_blocking, yield_now},
    time::Instant,
};
use tower::{service_fn, util::BoxCloneSyncService};
use tower_outcome::{
    Bound, BoxError, CallReport, Elapsed, Outbound, OutboundBody, OutboundClient, Random,
    WitnessConnector, outbound::SharedClient, timeout::ConnectTimeout,
};
use tower_outcome_testkit::{self as testkit, Answer, Fault, Ledger, Venue};

mod course;
mod robinhood;
mod stonex;

type Call = Request<Full<Bytes>>;
/// What each design comes to.
type Client = OutboundClient<Full<Bytes>>;
type Output = Result<Response<OutboundBody>, BoxError>;
/// What comes off the wire.
type WireBody = UnsyncBoxBody<Bytes, BoxError>;

/// The way to a venue, with a clock that stands still while something is on it.
#[derive(Clone)]
struct Wire<C = HttpConnector> {
    connector: C,
    /// Whether anything is answered there.
    is_answered: bool,
    ledger: Ledger,
    start: Instant,
    departures: Arc<Mutex<Vec<Duration>>>,
}

/// Keeps a paused clock from going on for as long as it lives: tokio lets it stand while anything
/// blocks.
struct Still(#[expect(dead_code, reason = "what counts is when it is dropped")] mpsc::Sender<()>);

/// Draws the same every time.
#[derive(Debug)]
struct Always(u64);

// === impl Wire ===

impl Wire {
    fn to(venue: &Venue) -> Self {
        Self {
            connector: HttpConnector::new(),
            is_answered: true,
            ledger: venue.ledger(),
            start: Instant::now(),
            departures: Arc::default(),
        }
    }

    /// Through something that leads nowhere.
    fn through<C>(self, connector: C) -> Wire<C> {
        Wire {
            connector,
            is_answered: false,
            ledger: self.ledger,
            start: self.start,
            departures: self.departures,
        }
    }
}

impl<C> Wire<C> {
    /// When requests went out, counted from the beginning.
    fn departures(&self) -> Vec<Duration> {
        self.departures.lock().unwrap().clone()
    }

    /// How long each but the first went out after the one before.
    fn gaps(&self) -> Vec<Duration> {
        let departures = self.departures();
        departures.windows(2).map(|two| two[1] - two[0]).collect()
    }
}

impl<C: Clone> Wire<C>
where
    WitnessConnector<ConnectTimeout<C>>: Connect + Clone + Send + Sync + 'static,
{
    /// hyper-util's client, to be below a stack.
    fn client<L, B>(
        &self,
        outbound: &Outbound<L>,
    ) -> BoxCloneSyncService<Request<B>, Response<WireBody>, BoxError>
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let hyper = outbound.hyper_client(self.connector.clone());
        let (ledger, start) = (self.ledger.clone(), self.start);
        let departures = Arc::clone(&self.departures);
        let is_answered = self.is_answered;
        BoxCloneSyncService::new(service_fn(move |request| {
            departures.lock().unwrap().push(start.elapsed());
            let still = is_answered.then(Still::new);
            exchange(hyper.clone(), request, ledger.clone(), still)
        }))
    }
}

/// Sends a request and gets its answer while the clock stands still, or until the venue has gone
/// silent on purpose.
async fn exchange<C, B>(
    hyper: SharedClient<C, B>,
    request: Request<B>,
    ledger: Ledger,
    still: Option<Still>,
) -> Result<Response<WireBody>, BoxError>
where
    C: Connect + Clone + Send + Sync + 'static,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let silence = silence(&request, ledger);
    let mut answer = hyper.get_ref().request(request);
    let Some(silence) = silence else {
        let (head, body) = answer.await?.into_parts();
        let body = Full::new(body.collect().await?.to_bytes());
        return Ok(Response::from_parts(head, boxed(body)));
    };
    tokio::select! {
        biased;
        answer = &mut answer => return Ok(answer?.map(boxed)),
        () = silence => drop(still),
    }
    Ok(answer.await?.map(boxed))
}

/// Ends once the venue has gone silent over a request that tells it to.
fn silence<B>(request: &Request<B>, ledger: Ledger) -> Option<impl Future<Output = ()> + use<B>> {
    let text = |name| request.headers().get(name)?.to_str().ok();
    let fault: Fault = text(Fault::HEADER)?.parse().unwrap();
    let operation = text(Ledger::OPERATION_HEADER)
        .expect("a name by which the ledger knows it")
        .to_owned();
    let before = ledger.attempts(&operation);
    matches!(fault, Fault::Stall { .. }).then(|| async move {
        while ledger.attempts(&operation) == before {
            yield_now().await;
        }
        ledger.settled().await;
    })
}

fn boxed<B>(body: B) -> WireBody
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

// === impl Still ===

impl Still {
    fn new() -> Self {
        let (alive, gone) = mpsc::channel();
        drop(spawn_blocking(move || gone.recv().err()));
        Self(alive)
    }
}

// === impl Always ===

impl Always {
    const LEAST: Self = Self(0);
    const MOST: Self = Self(u64::MAX);
}

impl Random for Always {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

/// Refuses one request after the other with these, and the rest not at all.
fn refuses(
    answers: impl IntoIterator<Item = Answer>,
) -> impl FnMut(&testkit::Request) -> Result<(), Answer> + Send + 'static {
    let mut answers = answers.into_iter().collect::<Vec<_>>().into_iter();
    move |_| answers.next().map_or(Ok(()), Err)
}

/// More often than anybody sends.
fn always(answer: Answer) -> impl Iterator<Item = Answer> {
    std::iter::repeat_n(answer, 20)
}

fn request(method: Method, venue: &Venue, path: &str) -> Call {
    Request::builder()
        .method(method)
        .uri(venue.url(path))
        .body(Full::default())
        .unwrap()
}

fn get(venue: &Venue) -> Call {
    request(Method::GET, venue, "/prices/BTC-USD")
}

fn post(venue: &Venue) -> Call {
    request(Method::POST, venue, "/orders").map(|_| Full::from(r#"{"side":"buy"}"#))
}

/// Names the call, and tells the venue what to do wrong with it.
fn failing(fault: &Fault, mut call: Call) -> Call {
    let name = "call".parse().unwrap();
    call.headers_mut().insert(Ledger::OPERATION_HEADER, name);
    call.headers_mut()
        .insert(Fault::HEADER, fault.header_value());
    call
}

/// Makes a call, and returns its result with what it went through.
async fn make(client: &Client, call: Call) -> (Output, Option<CallReport>) {
    let result = client.send(call).await;
    let report = CallReport::in_result(&result).cloned();
    (result, report)
}

/// Which bound ended a call.
fn struck(error: &BoxError) -> Bound {
    Elapsed::of(&**error).expect("a bound struck").bound()
}

fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn secs(number: u64) -> Duration {
    Duration::from_secs(number)
}
