//! tower-outcome: sends again what is safe to send again, and says what it cannot know.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::util::BoxCloneSyncService;
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::peek::PeekBody;
use tower_outcome::{
    Backoff, BoxError, BrokenBody, CallReport, Class, ConfigError, Failure, Guard, HttpClassifier,
    Limit, Outcome, RateBudget, RateLimitLayer, Reason, RetryBudget, RetryLayer, Routes, Scope,
    Ticket, WitnessConnector, WitnessLayer,
};

use super::{Belief, Strategy};
use crate::limiter::{Limiter, LongestWaits};
use crate::scenario::{MINUTE, REQUESTS_A_MINUTE, SECOND};

/// How many answers may break off.
const ANSWERS: usize = 3;

/// What the sweep leaves to orders and questions: 40 requests of 200. So many go out at once, however
/// much the sweep has used, and the orders of a minute with the questions about them are fewer.
const SWEEP_LEAVES_PERCENT: u8 = 20;

/// The layers of tower-outcome around hyper-util's client.
#[derive(Clone)]
pub(crate) struct TowerOutcome {
    service: BoxCloneSyncService<Request<Full<Bytes>>, Answer, BoxError>,
    limiter: Limiter,
}

/// Retry and the limiter may each look into a body, and put back what they have seen.
type Answer = Response<PeekBody<PeekBody<Incoming>, BrokenBody>>;

// === impl TowerOutcome ===

impl TowerOutcome {
    pub(crate) fn new() -> Result<Self, ConfigError> {
        // This venue documents that whatever it answers with these was not looked at.
        let classifier = HttpClassifier::builder()
            .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS, StatusCode::IM_A_TEAPOT])
            .build()?;
        let retry = RetryLayer::builder()
            .classifier(classifier.clone())
            .max_attempts(8)
            // The defaults, in market time.
            .backoff(
                Backoff::new()
                    .base(SECOND / 20)
                    .throttled_base(SECOND)
                    .cap(20 * SECOND),
            )
            // A sweep fails and recovers together, more calls at once than the default expects.
            .budget(RetryBudget::builder().capacity(2000).build()?)
            .build()?;
        let limiter = limiter()?;
        let rate_limit =
            RateLimitLayer::builder(Scope::of(limiter.budget.clone()).tickets(tickets()))
                .classifier(classifier)
                .build()?;
        let client = Client::builder(TokioExecutor::new())
            // hyper-util would otherwise resend behind the layers' back.
            .retry_canceled_requests(false)
            .build(WitnessConnector::new(HttpConnector::new()));
        let service = ServiceBuilder::new()
            .boxed_clone_sync()
            .layer(retry)
            // Below Retry: every attempt counts.
            .layer(rate_limit)
            .layer(WitnessLayer::new())
            .service(client);
        Ok(Self { service, limiter })
    }

    /// Sends a request through the layers and reads the answer.
    async fn call(&self, request: Request<Full<Bytes>>) -> Result<Bytes, Outcome> {
        let result = self.service.clone().oneshot(request).await;
        match (CallReport::outcome_of(&result), result) {
            (Outcome::Success, Ok(response)) => match response.into_body().collect().await {
                Ok(body) => Ok(body.to_bytes()),
                Err(error) => Err(outcome_of(&error)),
            },
            (outcome, _) => Err(outcome),
        }
    }
}

impl Strategy for TowerOutcome {
    const NAME: &'static str = "tower-outcome";

    async fn send(&self, request: Request<Full<Bytes>>) -> Belief {
        for _ in 0..ANSWERS {
            match self.call(request.clone()).await {
                Ok(answer) => return Belief::Done(answer),
                // The answer broke off after its head had been handed out, which no layer can take
                // back. That this was harmless is known all the same: it was a query.
                Err(Outcome::Retryable {
                    reason: Reason::ResponseBody,
                    ..
                }) => {}
                Err(Outcome::Unknown { .. }) => return Belief::Unknown,
                // Refused, or proven not to have been acted on.
                Err(Outcome::Success | Outcome::Permanent { .. } | Outcome::Retryable { .. }) => {
                    break;
                }
            }
        }
        Belief::Failed
    }

    fn limiter(&self) -> Option<Limiter> {
        Some(self.limiter.clone())
    }
}

/// What the venue publishes, and who goes first.
fn limiter() -> Result<Limiter, ConfigError> {
    let waits = Arc::new(LongestWaits::default());
    let budget = RateBudget::builder("venue")
        .limit(Limit::sliding("requests", REQUESTS_A_MINUTE, MINUTE))
        .class(Class::new("order"))
        .class(Class::new("question"))
        .class(Class::new("sweep").leave_percent(SWEEP_LEAVES_PERCENT))
        // The default, in market time: a request that was given up on may arrive this late.
        .guard(Guard::UntilResponse { late: SECOND })
        .observer(waits.clone())
        .build()?;
    let left = REQUESTS_A_MINUTE * u32::from(SWEEP_LEAVES_PERCENT) / 100;
    Ok(Limiter {
        budget,
        waits,
        lowest: "sweep",
        allowed: REQUESTS_A_MINUTE - left,
    })
}

/// The class of each request, as its place among those of the budget.
fn tickets() -> Routes {
    let [order, question, sweep] = [0, 1, 2].map(|class| Ticket::new().class(class));
    Routes::new()
        .route(Method::POST, "/orders", order)
        .route(Method::GET, "/orders/{id}", question)
        .otherwise(sweep)
}

/// What became of a call whose answer broke off.
fn outcome_of(error: &BoxError) -> Outcome {
    let reason = Reason::ResponseBody;
    Failure::of(&**error).map_or(Outcome::Unknown { reason }, Failure::outcome)
}
