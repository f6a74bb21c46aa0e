//! What the signing layer sends once more, and who pays for it.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_outcome::{
    Answer, BoxError, ClockOffset, DeadlineLayer, Draft, Fresh, HttpClassifier, Judged, Limit,
    ManualClock, Priority, RateBudget, RateLimitLayer, Reason, RetryLayer, Sign, SignError,
    SignLayer, Timeouts, sign::Validity,
};

const TIME: HeaderName = HeaderName::from_static("x-time");
const START: SystemTime = SystemTime::UNIX_EPOCH;
const WINDOW: Duration = Duration::from_secs(10);
const LIMIT: u32 = 10;

/// Writes down the time.
struct Stamp;

impl Sign for Stamp {
    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        draft.set_header(TIME, fresh.time().as_secs().into())?;
        Ok(Validity::for_window(fresh.time(), Duration::from_secs(30)))
    }
}

/// A venue whose clock is ten minutes ahead. It notes when it was sent something, and fails once where
/// it is told to.
#[derive(Clone, Default)]
struct Ahead {
    seen: Arc<Mutex<Vec<Instant>>>,
    fails_at: Option<usize>,
    calls: Arc<AtomicUsize>,
}

impl Ahead {
    const SECONDS: u64 = 1_700_000_600;

    /// The most that it was sent within one window.
    fn most(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        let within = |from: &Instant| {
            let later = seen.iter().filter(|at| *at >= from);
            later.filter(|at| **at < *from + WINDOW).count()
        };
        seen.iter().map(within).max().unwrap_or(0)
    }
}

impl<B: Send + 'static> Service<Request<B>> for Ahead {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().unwrap().push(Instant::now());
        let fails = self.fails_at == Some(call);
        Box::pin(async move {
            // Time is paused.
            sleep(Duration::from_millis(10)).await;
            if fails {
                return Err("reset".into());
            }
            let time = request.headers()[TIME].to_str().unwrap();
            let accepted = time.parse::<u64>().unwrap() > Self::SECONDS - 100;
            let response = Response::builder().header("date", "Tue, 14 Nov 2023 22:23:20 GMT");
            let response = if accepted {
                response
            } else {
                response.status(400).header("x-error", "skew")
            };
            Ok(response.body(Full::default()).unwrap())
        })
    }
}

fn sign() -> SignLayer<Stamp> {
    let classifier = HttpClassifier::builder().head_rule(|seen: Judged<'_>| {
        let skew = seen.head.headers.get("x-error").is_some();
        skew.then_some(Answer::Rejected {
            reason: Reason::ClockSkew,
        })
    });
    let wall = START + Duration::from_secs(Ahead::SECONDS - 600);
    SignLayer::builder(Stamp)
        .origin("https://venue.test")
        .clock(Arc::new(ManualClock::new(wall)))
        .clock_offset(ClockOffset::new())
        .classifier(classifier.build().unwrap())
        .build()
        .unwrap()
}

fn budget() -> RateBudget {
    let limit = Limit::sliding("requests", LIMIT, WINDOW);
    RateBudget::builder("venue").limit(limit).build().unwrap()
}

fn order() -> Request<Full<Bytes>> {
    let order = Request::post("https://venue.test/orders");
    // Of the highest class, which leaves nothing to others.
    order
        .extension(Priority::HIGHEST)
        .body(Full::from("buy 1"))
        .unwrap()
}

/// Ten calls at once, all signed with the wrong time, and ten later ones.
async fn twenty_calls(venue: &Ahead) {
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new())
        .layer(RateLimitLayer::new(budget()))
        .layer(sign())
        .service(venue.clone());
    let mut calls = JoinSet::new();
    for call in 0..20 {
        if call == 10 {
            // The first ten were answered, both times.
            sleep(Duration::from_secs(1)).await;
        }
        let stack = stack.clone();
        calls.spawn(async move { stack.oneshot(order()).await.map(drop).unwrap() });
    }
    calls.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_for_its_time_is_counted_by_the_limiter() {
    let venue = Ahead::default();
    let began = Instant::now();
    twenty_calls(&venue).await;
    // Each of the first ten was sent twice, and nothing more often: the later ones are signed right.
    assert_eq!(venue.seen.lock().unwrap().len(), 30);
    // What was sent again did not wait, so there were twenty at once; but it counts, and those that
    // came later waited until all twenty were forgotten.
    assert_eq!(venue.most(), 20);
    let seen = venue.seen.lock().unwrap();
    assert!(seen[19] - began < WINDOW && seen[20] - began >= WINDOW);
}

#[tokio::test(start_paused = true)]
async fn one_rejection_cures_those_that_follow() {
    // While the first is being cured, each of the others is sent again at most once, and none at all
    // that is signed afterwards.
    let venue = Ahead::default();
    let stack = sign().layer(venue.clone());
    for _ in 0..10 {
        stack.clone().oneshot(order()).await.unwrap();
    }
    assert_eq!(venue.seen.lock().unwrap().len(), 11);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_in_vain_is_counted_too_below_a_deadline() {
    let venue = Ahead {
        fails_at: Some(1),
        ..Ahead::default()
    };
    let budget = budget();
    let timeouts = Timeouts::builder().call(Duration::from_secs(60));
    let timeouts = timeouts.build().unwrap();
    let stack = ServiceBuilder::new()
        .layer(DeadlineLayer::new(&timeouts))
        .layer(RateLimitLayer::new(budget.clone()))
        .layer(sign())
        .service(venue.clone());
    let result: Result<_, BoxError> = stack.oneshot(order()).await.map(drop);
    result.unwrap_err();
    assert_eq!(venue.seen.lock().unwrap().len(), 2);
    let limit = &budget.snapshot().limits[0];
    assert_eq!(limit.used + limit.held, 2);
}
