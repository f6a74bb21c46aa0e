//! The bounds of two published clients, as settings: each strikes when that client's would.
//!
//! The clock is paused; what hangs here is a service and not a venue, since nothing but the settings
//! is asked about.

use std::{convert::Infallible, future::pending, time::Duration};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};
use tower_outcome::{
    Bound, BoxError, ConnectTimeoutLayer, ConnectionLimitLayer, Deadline, DeadlineLayer, Elapsed,
    TimeoutLayer, Timeouts, timeout::SentBody,
};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// StoneX's client: connect 10 s, read and write 30 s each, 5 s for one of 20 connections. Reading and
/// writing are bounded by the gap, and there is no bound on a call.
fn stonex() -> Timeouts {
    Timeouts::builder()
        .call(None)
        .attempt(None)
        .connect(secs(10))
        .read_idle(secs(30))
        .head(secs(30))
        .write_idle(secs(30))
        .acquire(secs(5))
        .build()
        .unwrap()
}

/// The course's bot: connect 3.05 s, 15 s between two pieces of an answer, and one deadline over all
/// attempts.
fn course() -> Timeouts {
    Timeouts::builder()
        .call(secs(60))
        .attempt(None)
        .connect(Duration::from_millis(3050))
        .head(secs(15))
        .read_idle(secs(15))
        .build()
        .unwrap()
}

fn request() -> Request<Full<Bytes>> {
    Request::post("http://venue.test/orders")
        .body(Full::from("buy 100"))
        .unwrap()
}

/// Which bound struck, and how long that took.
fn struck(start: Instant, error: &BoxError) -> (Bound, Duration) {
    let elapsed = Elapsed::of(&**error).expect("a bound struck");
    (elapsed.bound(), start.elapsed())
}

async fn connecting(timeouts: &Timeouts) -> (Bound, Duration) {
    let nowhere = service_fn(|_: Uri| pending::<Result<(), Infallible>>());
    let start = Instant::now();
    let connect = ConnectTimeoutLayer::new(timeouts).layer(nowhere);
    let error = connect.oneshot(Uri::from_static("http://venue.test")).await;
    struck(start, &error.unwrap_err())
}

/// A transport that takes the request and gets no answer.
async fn waiting(timeouts: &Timeouts) -> (Bound, Duration) {
    let silent = service_fn(|request: Request<SentBody<Full<Bytes>>>| async {
        request.into_body().collect().await?;
        pending::<Result<Response<Empty<Bytes>>, BoxError>>().await
    });
    let start = Instant::now();
    let error = TimeoutLayer::new(timeouts)
        .layer(silent)
        .oneshot(request())
        .await;
    struck(start, &error.err().unwrap())
}

/// An answer that stops after its head.
async fn reading(timeouts: &Timeouts) -> (Bound, Duration) {
    let stalled = service_fn(|request: Request<SentBody<Full<Bytes>>>| async {
        request.into_body().collect().await?;
        let body = StreamBody::new(futures_util::stream::pending::<
            Result<http_body::Frame<Bytes>, BoxError>,
        >());
        Ok::<_, BoxError>(Response::new(body))
    });
    let response = TimeoutLayer::new(timeouts)
        .layer(stalled)
        .oneshot(request())
        .await;
    let start = Instant::now();
    let error = response.unwrap().into_body().collect().await.err().unwrap();
    struck(start, &error)
}

#[tokio::test(start_paused = true)]
async fn stonex_gives_up_connecting_waiting_and_reading_when_it_says() {
    assert_eq!(connecting(&stonex()).await, (Bound::Connect, secs(10)));
    assert_eq!(waiting(&stonex()).await, (Bound::Head, secs(30)));
    assert_eq!(reading(&stonex()).await, (Bound::ReadIdle, secs(30)));
}

#[tokio::test(start_paused = true)]
async fn stonex_waits_five_seconds_for_one_of_twenty_connections() {
    let layer = ConnectionLimitLayer::builder(20)
        .timeouts(&stonex())
        .build()
        .unwrap();
    let silent =
        service_fn(|_: Request<Full<Bytes>>| pending::<Result<Response<Empty<Bytes>>, BoxError>>());
    let service = layer.layer(silent);
    let under_way: Vec<_> = (0..20)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    tokio::task::yield_now().await;
    let start = Instant::now();
    let error = service.oneshot(request()).await.err().unwrap();
    assert_eq!(struck(start, &error), (Bound::Acquire, secs(5)));
    under_way.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn the_courses_bot_gives_up_when_it_says() {
    let connect = Duration::from_millis(3050);
    assert_eq!(connecting(&course()).await, (Bound::Connect, connect));
    assert_eq!(waiting(&course()).await, (Bound::Head, secs(15)));
    assert_eq!(reading(&course()).await, (Bound::ReadIdle, secs(15)));
}

#[tokio::test(start_paused = true)]
async fn the_courses_bot_has_one_deadline_and_an_order_its_own() {
    let silent =
        service_fn(|_: Request<Full<Bytes>>| pending::<Result<Response<Empty<Bytes>>, BoxError>>());
    let service = DeadlineLayer::new(&course()).layer(silent);
    let start = Instant::now();
    let error = service.clone().oneshot(request()).await.err().unwrap();
    assert_eq!(struck(start, &error), (Bound::Deadline, secs(60)));

    // Worthless after two seconds, and then not sent at all.
    let mut order = request();
    order.extensions_mut().insert(Deadline::after(secs(2)));
    let start = Instant::now();
    let error = service.clone().oneshot(order.clone()).await.err().unwrap();
    assert_eq!(struck(start, &error), (Bound::Deadline, secs(2)));
    let start = Instant::now();
    let error = service.oneshot(order).await.err().unwrap();
    assert_eq!(struck(start, &error), (Bound::Deadline, Duration::ZERO));
}
