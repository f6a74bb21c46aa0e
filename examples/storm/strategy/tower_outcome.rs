//! tower-outcome: sends again what is safe to send again, and says what it cannot know.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_outcome::auth_refresh::{Credential, FetchError, TokenSource};
use tower_outcome::{
    AuthRefreshLayer, Backoff, BoxError, CallReport, Class, ConfigError, ConnectTimeoutLayer,
    Credentials, Deadline, DeadlineLayer, Failure, Guard, HttpClassifier, Limit, Outcome,
    RateBudget, RateLimitLayer, Reason, Repeatable, RepeatableBecause, RetryBudget, RetryLayer,
    Routes, Scope, SignLayer, Template, Ticket, TimeoutLayer, Timeouts, WitnessConnector,
    WitnessLayer,
};

use tower_outcome_testkit::Venue;

use super::{Belief, Strategy};
use crate::limiter::{Limiter, Watch};
use crate::road::Road;
use crate::scenario::{Call, MINUTE, PATIENCE, REQUESTS_A_MINUTE, SECOND};
use crate::{session, signing};

/// How many answers may break off or stall.
const ANSWERS: usize = 3;

/// What the sweep leaves to orders and questions: 40 requests of 200. So many go out at once, however
/// much the sweep has used, and the orders of a minute with the questions about them are fewer.
const SWEEP_LEAVES_PERCENT: u8 = 20;

/// A log-in that takes longer than two seconds is tried again: everybody waits for it.
const LOG_IN_WITHIN: Duration = Duration::from_millis(2 * 50);

/// An order is worthless fifteen seconds after it was due.
const ORDER_WITHIN: Duration = Duration::from_millis(15 * 50);

/// The layers of tower-outcome around hyper-util's client.
#[derive(Clone)]
pub(crate) struct TowerOutcome {
    service: BoxCloneSyncService<Request<Full<Bytes>>, Answer, BoxError>,
    limiter: Limiter,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

// === impl TowerOutcome ===

impl TowerOutcome {
    pub(crate) fn new(venue: &Venue) -> Result<Self, Box<dyn Error>> {
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
        let watch = limiter.watch.clone();
        let timeouts = timeouts()?;
        let connector = ConnectTimeoutLayer::new(&timeouts).layer(Road::new()?);
        let connector = WitnessConnector::new(connector);
        let mut client = Client::builder(TokioExecutor::new());
        // hyper-util would otherwise resend behind the layers' back.
        client.retry_canceled_requests(false);

        // Log-ins are requests like others: they pay, and are sent again, since they do nothing else.
        let log_ins = watch.clone();
        let log_in = ServiceBuilder::new()
            .layer(retry.clone())
            .layer(rate_limit.clone())
            .map_future(move |request| log_ins.clone().until_over(request))
            .layer(TimeoutLayer::new(&log_in_timeouts()?))
            .layer(WitnessLayer::new())
            .service(client.build(connector.clone()));
        let credentials = Credentials::builder("venue", source(log_in, venue)?)
            .origin(venue.url(""))
            // Room for several tries, and the default interval in market time.
            .timeout(3 * PATIENCE)
            .min_interval(SECOND)
            .build()?;

        let service = ServiceBuilder::new()
            .map_response(|answer: Response<_>| answer.map(BodyExt::boxed_unsync))
            // On top: all attempts, all waits and the answer's body share it.
            .layer(DeadlineLayer::new(&timeouts))
            .layer(retry)
            // One log-in for all who meet a 401, and one replay for each of them.
            .layer(AuthRefreshLayer::new(credentials))
            // Below Retry: every attempt counts.
            .layer(rate_limit)
            // For the table only: when a permit is no longer in use.
            .map_future(move |request| watch.clone().until_over(request))
            // Below everything that waits: each attempt is signed when it goes out.
            .layer(sign(venue)?)
            // Below the limiter: time in its queue is nobody's attempt.
            .layer(TimeoutLayer::new(&timeouts))
            .layer(WitnessLayer::new())
            .service(client.build(connector));
        Ok(Self {
            service: BoxCloneSyncService::new(service),
            limiter,
        })
    }
}

impl Strategy for TowerOutcome {
    const NAME: &'static str = "tower-outcome";

    async fn send(&self, request: Request<Bytes>) -> Belief {
        let mut request = request.map(Full::new);
        if request.method() == Method::POST {
            let deadline = Deadline::after(ORDER_WITHIN);
            request.extensions_mut().insert(deadline);
        }
        for _ in 0..ANSWERS {
            let result = self.service.clone().oneshot(request.clone()).await;
            let answer = match (CallReport::outcome_of(&result), result) {
                (Outcome::Success, Ok(answer)) => answer,
                (outcome, _) => return belief(outcome),
            };
            match answer.into_body().collect().await {
                Ok(body) => return Belief::Done(body.to_bytes()),
                // The answer broke off or stalled after its head had been handed out, which no layer
                // can take back. Where that was harmless, as with a query, it is known all the same.
                Err(error) => match outcome_of(&error) {
                    Outcome::Retryable { .. } => {}
                    outcome => return belief(outcome),
                },
            }
        }
        Belief::Failed
    }

    fn limiter(&self) -> Option<Limiter> {
        Some(self.limiter.clone())
    }
}

/// How long everything may take: the defaults, in market time, but for a call. A sweep waits for the
/// limiter, and its answers are still wanted minutes later; orders bring their own deadline.
fn timeouts() -> Result<Timeouts, ConfigError> {
    Timeouts::builder()
        .call(5 * MINUTE)
        .attempt(PATIENCE)
        .connect(SECOND * 31 / 10)
        .read_idle(20 * SECOND)
        .build()
}

/// Where sessions come from.
fn source<S, B>(log_in: S, venue: &Venue) -> Result<impl TokenSource, http::Error>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send,
{
    let mut request = Call::log_in().request(venue)?.map(Full::new);
    request
        .extensions_mut()
        .insert(Repeatable::Yes(RepeatableBecause::Marked));
    Ok(move |_: Option<Credential>| {
        let (log_in, request) = (log_in.clone(), request.clone());
        async move {
            let mut answers = 1;
            let body = loop {
                let answer = log_in.clone().oneshot(request.clone()).await;
                let body = answer.map_err(FetchError::transient)?.into_body();
                match body.collect().await {
                    Ok(body) => break body.to_bytes(),
                    // It broke off after its head, when no layer can send the log-in again any more.
                    Err(_) if answers < ANSWERS => answers += 1,
                    Err(error) => return Err(FetchError::transient(error)),
                }
            };
            let token = session::token(&body).map_err(FetchError::transient)?;
            Ok(Credential::new(token))
        }
    })
}

fn sign(venue: &Venue) -> Result<SignLayer<Template>, ConfigError> {
    SignLayer::builder(signing::template()?)
        .origin(venue.url(""))
        // The default, half a second, in market time.
        .margin(SECOND / 2)
        .build()
}

fn log_in_timeouts() -> Result<Timeouts, ConfigError> {
    Timeouts::builder()
        .attempt(LOG_IN_WITHIN)
        .read_idle(LOG_IN_WITHIN)
        .build()
}

/// What the venue publishes, and who goes first.
fn limiter() -> Result<Limiter, ConfigError> {
    let watch = Arc::new(Watch::default());
    let budget = RateBudget::builder("venue")
        .limit(Limit::sliding("requests", REQUESTS_A_MINUTE, MINUTE))
        .class(Class::new("log-in"))
        .class(Class::new("order"))
        .class(Class::new("question"))
        .class(Class::new("sweep").leave_percent(SWEEP_LEAVES_PERCENT))
        // The default, in market time: a request that was given up on may arrive this late.
        .guard(Guard::UntilResponse { late: SECOND })
        .observer(watch.clone())
        .build()?;
    let left = REQUESTS_A_MINUTE * u32::from(SWEEP_LEAVES_PERCENT) / 100;
    Ok(Limiter {
        budget,
        watch,
        lowest: "sweep",
        allowed: REQUESTS_A_MINUTE - left,
    })
}

/// The class of each request, as its place among those of the budget.
fn tickets() -> Routes {
    let [log_in, order, question, sweep] = [0, 1, 2, 3].map(|class| Ticket::new().class(class));
    Routes::new()
        .route(Method::POST, session::PATH, log_in)
        .route(Method::POST, "/orders", order)
        .route(Method::GET, "/orders/{id}", question)
        .otherwise(sweep)
}

fn belief(outcome: Outcome) -> Belief {
    match outcome {
        Outcome::Unknown { .. } => Belief::Unknown,
        // Refused, or proven not to have been acted on.
        Outcome::Success | Outcome::Permanent { .. } | Outcome::Retryable { .. } => Belief::Failed,
    }
}

/// What became of a call whose answer broke off or stalled.
fn outcome_of(error: &BoxError) -> Outcome {
    let reason = Reason::ResponseBody;
    Failure::of(&**error).map_or(Outcome::Unknown { reason }, Failure::outcome)
}
