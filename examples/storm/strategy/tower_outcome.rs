//! tower-outcome: sends again what is safe to send again, and says what it cannot know.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::util::BoxCloneSyncService;
use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::peek::PeekBody;
use tower_outcome::{
    Backoff, BoxError, BrokenBody, CallReport, ConfigError, Failure, HttpClassifier, Outcome,
    Reason, RetryBudget, RetryLayer, WitnessConnector, WitnessLayer,
};

use super::{Belief, Strategy};
use crate::scenario::SECOND;

/// How many answers may break off.
const ANSWERS: usize = 3;

/// The layers of tower-outcome around hyper-util's client.
#[derive(Clone)]
pub(crate) struct TowerOutcome {
    service: BoxCloneSyncService<
        Request<Full<Bytes>>,
        Response<PeekBody<Incoming, BrokenBody>>,
        BoxError,
    >,
}

// === impl TowerOutcome ===

impl TowerOutcome {
    pub(crate) fn new() -> Result<Self, ConfigError> {
        // This venue documents that whatever it answers with these was not looked at.
        let classifier = HttpClassifier::builder()
            .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS, StatusCode::IM_A_TEAPOT])
            .build()?;
        let retry = RetryLayer::builder()
            .classifier(classifier)
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
        let client = Client::builder(TokioExecutor::new())
            // hyper-util would otherwise resend behind the layers' back.
            .retry_canceled_requests(false)
            .build(WitnessConnector::new(HttpConnector::new()));
        let service = ServiceBuilder::new()
            .boxed_clone_sync()
            .layer(retry)
            .layer(WitnessLayer::new())
            .service(client);
        Ok(Self { service })
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
}

/// What became of a call whose answer broke off.
fn outcome_of(error: &BoxError) -> Outcome {
    let reason = Reason::ResponseBody;
    Failure::of(&**error).map_or(Outcome::Unknown { reason }, Failure::outcome)
}
