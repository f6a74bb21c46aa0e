//! Whatever goes wrong: when the venue answers in the end nothing is left unknown, and nothing is applied
//! twice.

use tokio::task::JoinSet;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_outcome::{
    BoxError, CallReport, Reconciler, RetryBudget, TimeoutLayer, Timeouts,
    reconcile::{Counts, Ended, Through},
};
use tower_outcome_testkit::{Plan, Point};

use super::*;

/// Asks once the venue has read all that was sent, so that the least age may be short.
struct Settled {
    ledger: Ledger,
    base: String,
}

impl<S, RB> Reconciler<S, Body> for Settled
where
    S: Service<Request<Body>, Response = Response<RB>> + Send,
    S::Error: Into<BoxError>,
    S::Future: Send,
    RB: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send,
{
    async fn ask(&self, inquiry: Inquiry, through: Through<S>) -> Result<Finding, BoxError> {
        self.ledger.settled().await;
        let response = through.send(question(&self.base, &inquiry)?).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        Ok(read(Response::from_parts(head, body)))
    }
}

fn faults() -> Vec<Fault> {
    let mut faults = vec![Fault::CloseIdle, Fault::ResetIdle];
    for at in [Point::Head, Point::Body, Point::Applied, Point::Response] {
        faults.extend([Fault::Close { at }, Fault::Reset { at }]);
    }
    for at in [Point::Head, Point::Body, Point::Applied] {
        faults.push(Fault::Stall { at });
    }
    for code in [408, 429, 500, 502, 503, 504, 520] {
        faults.extend([Fault::status(code, false), Fault::status(code, true)]);
    }
    faults
}

async fn storm(seed: u64, calls: usize) {
    let venue = Venue::builder()
        .plan(Plan::new(seed).rate(0.7).faults(faults()))
        .index(index().misses(2))
        .start()
        .unwrap();
    let ledger = venue.ledger();
    let counts = Counts::new();
    let asks = Settled {
        ledger: ledger.clone(),
        base: venue.url("/operations/"),
    };
    let timeouts = Timeouts::builder()
        .attempt(100 * MILLI)
        .connect(100 * MILLI)
        .head(100 * MILLI);
    let timeouts = TimeoutLayer::new(&timeouts.build().unwrap());
    let client = ServiceBuilder::new()
        .layer(
            retry()
                .max_attempts(20)
                .budget(RetryBudget::unlimited())
                .build()
                .unwrap(),
        )
        .layer(
            reconcile(asks)
                .misses(3)
                .observer(counts.clone())
                .build()
                .unwrap(),
        )
        .layer(timeouts)
        .service(below(Faults::default()));
    let mut tasks = JoinSet::new();
    for number in 0..calls {
        let mut client = client.clone();
        let id = format!("order-{number}");
        let request = order(&venue, &id);
        tasks.spawn(async move {
            let result = client.ready().await.unwrap().call(request).await;
            (id, CallReport::outcome_of(&result))
        });
    }
    let mut ended = 0;
    while let Some(call) = tasks.join_next().await {
        let (id, outcome) = call.unwrap();
        ended += 1;
        let applied = ledger.applied(&id);
        assert!(!outcome.is_unknown(), "{id} is {outcome}");
        assert_eq!(
            applied,
            usize::from(outcome.is_success()),
            "{id} is {outcome}"
        );
    }
    assert_eq!(ended, calls);
    assert!(counts.unknown() > 0);
    assert_eq!(counts.unknown(), counts.all_resolved());
    assert_eq!(counts.unresolved(Ended::TimedOut), 0);
}

#[tokio::test]
async fn five_hundred_orders_in_random_trouble_are_all_known_and_none_is_applied_twice() {
    for seed in 0..5 {
        storm(seed, 100).await;
    }
}
