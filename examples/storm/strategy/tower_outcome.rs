//! tower-outcome: sends again what is safe to send again, and says what it cannot know.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, response};
use http_body_util::{BodyExt, Full};
use tower::util::MapFutureLayer;
use tower_outcome::auth_refresh::{Credential, FetchError, TokenSource};
use tower_outcome::reconcile::ReconcileLayerBuilder;
use tower_outcome::reconcile::{ByQuery, Counts, Finding, Inquiry, Schedule};
use tower_outcome::sign::SignLayerBuilder;
use tower_outcome::timeout::TimeoutsBuilder;
use tower_outcome::{
    Answer, Backoff, BodyRule, BoxError, CallReport, Class, ConfigError, Credentials, Deadline,
    Failure, Guard, HttpCall, HttpClassifier, Judged, Limit, Outbound, OutboundClient, Outcome,
    RateBudget, RateLimitLayer, Reason, ReconcileLayer, Repeatable, RepeatableBecause, RetryBudget,
    RetryLayer, Routes, Scope, SignLayer, Template, Ticket, Timeouts,
};

use tower_outcome_testkit::{Ledger, Venue};

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

/// An order is worthless fifteen seconds after it was due: it is not sent any more.
const ORDER_WITHIN: Duration = Duration::from_millis(15 * 50);

/// What became of an order is worth knowing for longer than that.
const ORDER_KNOWN_WITHIN: Duration = Duration::from_secs(3);

/// The layers of tower-outcome around hyper-util's client, once for what is ordered and once for what
/// is asked: orders are never late, and sweeps wait. Both have the same limit and the same session.
#[derive(Clone)]
pub(crate) struct TowerOutcome {
    orders: OutboundClient<Full<Bytes>>,
    queries: OutboundClient<Full<Bytes>>,
    limiter: Limiter,
    asked: Counts,
}

/// An order is answered when its answer is there, not when it begins: then what is cut off can still be
/// asked about.
struct WholeAnswers;

/// Asks in that way, and reads the answer in that.
type Ask<M> = ReconcileLayerBuilder<ByQuery<M, fn(&Inquiry, Response<Bytes>) -> Finding>>;

// === impl TowerOutcome ===

impl TowerOutcome {
    pub(crate) fn new(venue: &Venue) -> Result<Self, Box<dyn Error>> {
        // This venue documents that whatever it answers with these was not looked at.
        let classifier = HttpClassifier::builder()
            .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS, StatusCode::IM_A_TEAPOT])
            .body_rule(WholeAnswers)
            .build()?;
        let limiter = limiter()?;
        let rate_limit =
            RateLimitLayer::builder(Scope::of(limiter.budget.clone()).tickets(tickets()))
                .classifier(classifier.clone())
                .build()?;
        // A sweep fails and recovers together, more calls at once than the default expects.
        let budget = RetryBudget::builder().capacity(2000).build()?;
        let retry = || {
            RetryLayer::builder()
                .max_attempts(8)
                // The defaults, in market time.
                .backoff(
                    Backoff::new()
                        .base(SECOND / 20)
                        .throttled_base(SECOND)
                        .cap(20 * SECOND),
                )
                .budget(budget.clone())
        };
        let road = Road::new()?;
        // For the table only: when a permit is no longer in use.
        let [log_ins_over, queries_over, orders_over] = [(); 3].map(|()| limiter.watch.clone());

        // Log-ins are requests like others: they pay, and are sent again, since they do nothing else.
        let log_ins = Outbound::builder()
            .timeouts(log_in_timeouts())
            .retry(retry())
            .rate_limit(rate_limit.clone())
            .each_request(MapFutureLayer::new(move |sent| {
                log_ins_over.clone().until_over(sent)
            }))
            .build()?;
        let log_in = log_ins.boxed(log_ins.hyper_client(road.clone()));
        let credentials = Credentials::builder("venue", source(log_in, venue)?)
            .origin(venue.url(""))
            // Room for several tries, and the default interval in market time.
            .timeout(3 * PATIENCE)
            .min_interval(SECOND)
            .build()?;

        let queries = Outbound::builder()
            .classifier(classifier.clone())
            .timeouts(timeouts())
            .retry(retry())
            .auth_refresh(credentials.clone())
            .rate_limit(rate_limit.clone())
            .each_request(MapFutureLayer::new(move |sent| {
                queries_over.clone().until_over(sent)
            }))
            .sign(sign(venue)?)
            .build()?;
        let asked = Counts::new();
        let orders = Outbound::builder()
            .classifier(classifier)
            .timeouts(timeouts())
            .retry(retry().elapsed(ORDER_WITHIN))
            .reconcile(reconcile(venue.url(""), &asked))
            .auth_refresh(credentials)
            .rate_limit(rate_limit)
            .each_request(MapFutureLayer::new(move |sent| {
                orders_over.clone().until_over(sent)
            }))
            .sign(sign(venue)?)
            .build()?;
        Ok(Self {
            queries: queries.boxed(queries.hyper_client(road.clone())),
            orders: orders.boxed(orders.hyper_client(road.clone())),
            limiter,
            asked,
        })
    }
}

impl Strategy for TowerOutcome {
    const NAME: &'static str = "tower-outcome";

    async fn send(&self, request: Request<Bytes>) -> Belief {
        let mut request = request.map(Full::new);
        let client = if request.method() == Method::POST {
            let deadline = Deadline::after(ORDER_KNOWN_WITHIN);
            request.extensions_mut().insert(deadline);
            &self.orders
        } else {
            &self.queries
        };
        for _ in 0..ANSWERS {
            let result = client.send(request.clone()).await;
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

    fn asked_about(&self) -> Option<u64> {
        Some(self.asked.unknown())
    }
}

impl BodyRule for WholeAnswers {
    fn wants(&self, call: &HttpCall, _: &response::Parts) -> bool {
        !call.repeatable().is_yes()
    }

    fn judge(&self, _: Judged<'_>) -> Option<Answer> {
        None
    }
}

/// How long everything may take: the defaults, in market time, but for a call. A sweep waits for the
/// limiter, and its answers are still wanted minutes later; orders bring their own deadline.
fn timeouts() -> TimeoutsBuilder {
    Timeouts::builder()
        .call(5 * MINUTE)
        .attempt(PATIENCE)
        .connect(SECOND * 31 / 10)
        .read_idle(20 * SECOND)
}

/// What to ask of an order whose outcome is unknown: whether it is in the venue's book. The defaults, in
/// market time.
fn reconcile(
    venue: String,
    counts: &Counts,
) -> Ask<impl Fn(&Inquiry) -> Result<Request<Full<Bytes>>, http::Error> + use<>> {
    let ask = ByQuery::new(
        move |inquiry: &Inquiry| {
            let order = inquiry.id().to_path_segment();
            let question = Call::question_about(&order).request_to(&venue)?;
            Ok(question.map(Full::new))
        },
        (|_, answer| in_the_book(answer)) as fn(&Inquiry, Response<Bytes>) -> Finding,
    );
    ReconcileLayer::builder(ask)
        .id_header(HeaderName::from_static(Ledger::OPERATION_HEADER))
        .schedule(
            Schedule::new()
                .first(SECOND / 2)
                .cap(5 * SECOND)
                .each(5 * SECOND)
                .deadline(MINUTE),
        )
        .min_age(10 * SECOND)
        .processing_limit(10 * SECOND)
        .observer(counts.clone())
}

/// Reads how often the order is in the book. What is not a number with a 200 says nothing of it.
fn in_the_book(answer: Response<Bytes>) -> Finding {
    let times = match answer.status() {
        StatusCode::OK => std::str::from_utf8(answer.body()).ok(),
        _ => None,
    };
    match times.and_then(|times| times.parse::<u32>().ok()) {
        Some(0) => Finding::NotFound,
        Some(_) => Finding::Applied(answer),
        None => Finding::Unclear,
    }
}

/// Where sessions come from.
fn source(
    log_in: OutboundClient<Full<Bytes>>,
    venue: &Venue,
) -> Result<impl TokenSource, http::Error> {
    let mut request = Call::log_in().request(venue)?.map(Full::new);
    request
        .extensions_mut()
        .insert(Repeatable::Yes(RepeatableBecause::Marked));
    Ok(move |_: Option<Credential>| {
        let (log_in, request) = (log_in.clone(), request.clone());
        async move {
            let mut answers = 1;
            let body = loop {
                let answer = log_in.send(request.clone()).await;
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

fn sign(venue: &Venue) -> Result<SignLayerBuilder<Template>, ConfigError> {
    let sign = SignLayer::builder(signing::template()?)
        .origin(venue.url(""))
        // The default, half a second, in market time.
        .margin(SECOND / 2);
    Ok(sign)
}

fn log_in_timeouts() -> TimeoutsBuilder {
    Timeouts::builder()
        .attempt(LOG_IN_WITHIN)
        .read_idle(LOG_IN_WITHIN)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_with_a_200_says_whether_an_order_is_in_the_book() {
        let ask = |code: u16, body: &'static str| {
            let mut answer = Response::new(Bytes::from_static(body.as_bytes()));
            *answer.status_mut() = StatusCode::from_u16(code).unwrap();
            in_the_book(answer)
        };
        assert!(matches!(ask(200, "2"), Finding::Applied(_)));
        assert!(matches!(ask(200, "0"), Finding::NotFound));
        for (code, body) in [
            (403, "0"),
            (403, "1"),
            (400, "no such page"),
            (200, "<html>"),
        ] {
            assert!(matches!(ask(code, body), Finding::Unclear), "{code} {body}");
        }
    }
}
