//! How long an attempt may take, and how long its signature is good for.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::Instant;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tower_outcome::{
    CallContext, Draft, Failure, Fresh, ManualClock, Outcome, Reason, Sign, SignError, SignLayer,
    TimeoutLayer, Timeouts, sign::Validity,
};

/// Signs nothing, for so long.
struct For(Duration);

impl Sign for For {
    fn sign(&self, _: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        Ok(Validity::for_window(fresh.time(), self.0))
    }
}

/// A stuck upload: what comes of it, how long it took, and whether its signature was still good then.
async fn stuck(attempt: Duration, window: Duration) -> (Outcome, Duration, bool) {
    let timeouts = Timeouts::builder().attempt(attempt).build().unwrap();
    let clock = ManualClock::new(std::time::SystemTime::UNIX_EPOCH);
    let sign = SignLayer::builder(For(window))
        .origin("https://venue.test")
        .clock(Arc::new(clock))
        .build()
        .unwrap();
    let stack = ServiceBuilder::new()
        .layer(sign)
        .layer(TimeoutLayer::new(&timeouts))
        .service(service_fn(|_: Request<_>| {
            pending::<Result<Response<Full<Bytes>>, BoxError>>()
        }));
    let mut upload = Request::put("https://venue.test/object")
        .body(Full::<Bytes>::from("a part"))
        .unwrap();
    let (context, began) = (CallContext::new(), Instant::now());
    context.put(upload.extensions_mut());
    let error = stack.oneshot(upload).await.map(drop).unwrap_err();
    let outcome = Failure::of(&*error).unwrap().outcome();
    let end = context.valid_until().unwrap();
    (outcome, began.elapsed(), !end.is_over(Instant::now()))
}

#[tokio::test(start_paused = true)]
async fn a_stuck_attempt_ends_before_its_signature_does() {
    let secs = Duration::from_secs;
    let (outcome, took, is_valid) = stuck(secs(4), secs(5)).await;
    let reason = Reason::TimedOut;
    assert_eq!((outcome.reason(), took), (Some(reason), secs(4)));
    assert!(is_valid);
    // The other way round, what arrives last is refused as stale, and the caller hears of the time-out.
    let (_, took, is_valid) = stuck(secs(10), secs(5)).await;
    assert_eq!((took, is_valid), (secs(10), false));
}
