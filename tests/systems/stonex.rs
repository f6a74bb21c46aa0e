//! A client for StoneX: sessions that die, a window that everything shares, and bounded retries.

use http::{HeaderName, StatusCode, header, response};
use tokio::time::advance;
use tower_outcome::{
    self as outcome, Backoff, BodyRule, Class, ConnectionLimitLayer, Credential, Credentials,
    FetchError, HintPolicy, Hints, HttpCall, HttpClassifier, Jitter, Judged, Limit, RateBudget,
    RateLimitLayer, Reason, Replay, RetryBudget, RetryLayer, Timeouts, TokenSource,
    auth_refresh::Headers,
};
use tower_outcome_testkit::{Demand, Sessions};

use super::*;

mod documented;

const USER: &str = "DM123456";
const USERNAME: HeaderName = HeaderName::from_static("username");
const SESSION: HeaderName = HeaderName::from_static("session");
/// Before the server ends it.
const SESSION_AGE: Duration = Duration::from_secs(20 * 60);

/// The design, and what there is to see of it.
struct Stonex<B = Full<Bytes>> {
    client: OutboundClient<B>,
    budget: RateBudget,
    credentials: Credentials,
}

/// What the API says in its bodies, whatever the status.
struct ErrorCode;

fn stonex<C, B>(wire: &Wire<C>, venue: &Venue, retries: u32, jitter: Always) -> Stonex<B>
where
    C: Clone,
    WitnessConnector<ConnectTimeout<C>>: Connect + Clone + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Replay + Send + Unpin + 'static,
{
    let classifier = HttpClassifier::builder()
        .transient([502, 503, 504].map(|code| StatusCode::from_u16(code).unwrap()))
        .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS])
        // Too early is a refusal as any other: it is not listed.
        .head_rule(|seen: Judged<'_>| {
            let reason = Reason::Rejected;
            let is_it = seen.head.status == StatusCode::TOO_EARLY;
            is_it.then_some(outcome::Answer::Rejected { reason })
        })
        .body_rule(ErrorCode)
        .build()
        .unwrap();
    let hints = Hints::new()
        .policy(HintPolicy::Replace)
        .longest(Duration::MAX)
        .throttled_floor(secs(1));
    // What is not idempotent is sent again after a 429 alone, not even where it provably never left.
    let careful = RetryBudget::builder().unsent(0).build().unwrap();
    let retry = RetryLayer::builder()
        .max_attempts(retries + 1)
        .elapsed(secs(30))
        .backoff(backoff())
        .hints(hints)
        .budget_by(move |head| match head.method.is_idempotent() {
            true => RetryBudget::unlimited(),
            false => careful.clone(),
        })
        .random(Arc::new(jitter));
    // One class: nobody leaves anything to anybody.
    let budget = RateBudget::builder("stonex")
        .class(Class::new("all"))
        .limit(Limit::sliding("requests", 500, secs(5)))
        .build()
        .unwrap();
    // A refusal is between its own call and the venue, as there.
    let limit = RateLimitLayer::builder(budget.clone()).closes_gate(false);
    let limit = limit.build().unwrap();
    let timeouts = timeouts();
    let connections = ConnectionLimitLayer::builder(20).timeouts(&timeouts);
    let connections = connections.build().unwrap();
    // Log-ins share the window and the connections.
    let log_in = Outbound::builder()
        .timeouts(timeouts)
        .rate_limit(limit.clone())
        .connection_limit(connections.clone())
        .build()
        .unwrap();
    let log_in = log_in.boxed(wire.client(&log_in));
    let credentials = Credentials::builder("stonex", log_in_by(log_in, venue))
        .origin(venue.url(""))
        .attach(Headers::new().field(USERNAME, "username").token(SESSION))
        .max_age(SESSION_AGE)
        .build()
        .unwrap();
    let outbound = Outbound::builder()
        .classifier(classifier)
        .timeouts(timeouts)
        .retry(retry)
        .auth_refresh(credentials.clone())
        .rate_limit(limit)
        .connection_limit(connections)
        .build()
        .unwrap();
    Stonex {
        client: outbound.boxed(wire.client(&outbound)),
        budget,
        credentials,
    }
}

fn backoff() -> Backoff {
    Backoff::new()
        .base(secs(1))
        .throttled_base(secs(1))
        .cap(secs(30))
        .jitter(Jitter::Equal)
}

fn timeouts() -> Timeouts {
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

/// `POST /session` with name and password, which pays for itself as everything does.
fn log_in_by(client: Client, venue: &Venue) -> impl TokenSource {
    let url = venue.url("/session");
    move |_| {
        let (client, url) = (client.clone(), url.clone());
        async move {
            let form = serde_json::json!({ "UserName": USER, "Password": "secret" });
            let request = Request::post(url)
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::from(form.to_string()))
                .map_err(FetchError::transient)?;
            let answer = client.send(request).await;
            let body = answer.map_err(FetchError::transient)?.into_body();
            let body = body.collect().await.map_err(FetchError::transient)?;
            let answer: serde_json::Value =
                serde_json::from_slice(&body.to_bytes()).map_err(FetchError::transient)?;
            match answer["Session"].as_str() {
                Some(session) => Ok(Credential::new(session).with_field("username", USER)),
                None => Err(FetchError::dead(answer.to_string())),
            }
        }
    }
}

// === impl ErrorCode ===

impl BodyRule for ErrorCode {
    /// A document of an error is short, and a price history is not.
    fn wants(&self, _: &HttpCall, head: &response::Parts) -> bool {
        let length = head.headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        !head.status.is_success() || length.is_some_and(|length| length < 1024)
    }

    fn judge(&self, seen: Judged<'_>) -> Option<outcome::Answer> {
        let document: serde_json::Value = serde_json::from_slice(seen.body).ok()?;
        let reason = match document["ErrorCode"].as_u64()? {
            4010 => Reason::Rejected,
            4011 => Reason::AuthRejected,
            _ => return None,
        };
        Some(outcome::Answer::Rejected { reason })
    }
}

/// Where the client under test calls.
struct Floor {
    venue: Venue,
    wire: Wire,
    sessions: Sessions,
    stonex: Stonex,
}

// === impl Floor ===

impl Floor {
    /// A venue that refuses the first requests with these, and a client that has a session with it.
    async fn open(refusals: impl IntoIterator<Item = Answer>, retries: u32) -> Self {
        Self::with(Answer::status(401), refusals, retries, Always::MOST).await
    }

    async fn with(
        rejection: Answer,
        refusals: impl IntoIterator<Item = Answer>,
        retries: u32,
        jitter: Always,
    ) -> Self {
        let sessions = Sessions::new("session");
        // The one with which the session is begun is taken.
        let mut refuses = refuses(refusals);
        let after_the_first = move |request: &testkit::Request| match request.path == "/warm" {
            true => Ok(()),
            false => refuses(request),
        };
        let venue = Venue::builder()
            .demand(desk(&sessions, rejection))
            .demand(after_the_first);
        let venue = venue.start().unwrap();
        let wire = Wire::to(&venue);
        let stonex = stonex(&wire, &venue, retries, jitter);
        let floor = Self {
            venue,
            wire,
            sessions,
            stonex,
        };
        let warm = request(Method::GET, &floor.venue, "/warm");
        floor.make(warm).await.0.unwrap();
        floor.wire.departures.lock().unwrap().clear();
        // Nobody logs in twice within a second.
        advance(secs(2)).await;
        floor
    }

    async fn make(&self, call: Call) -> (Output, Option<CallReport>) {
        make(&self.stonex.client, call).await
    }

    fn call(&self, method: &Method) -> Call {
        request(method.clone(), &self.venue, "/order/123")
    }

    fn log_ins(&self) -> usize {
        let ledger = self.venue.ledger();
        ledger.select(|entry| entry.path == "/session").len()
    }

    fn granted(&self) -> u64 {
        self.stonex.budget.snapshot().classes[0].granted
    }
}

/// Opens sessions at `/session`, and rejects whoever has none that lives.
fn desk(
    sessions: &Sessions,
    rejection: Answer,
) -> impl FnMut(&testkit::Request) -> Result<(), Answer> + Send + 'static {
    let mut sessions = sessions.clone();
    let mut opened = 0;
    move |request| {
        if request.path == "/session" {
            opened += 1;
            let session = format!("session-{opened}");
            sessions.open(&session);
            let document = serde_json::json!({ "Session": session });
            return Err(Answer::json(200, document.to_string()));
        }
        assert_eq!(request.header("username"), Some(USER));
        sessions.check(request).map_err(|_| rejection.clone())
    }
}

fn error(status: u16, code: u32) -> Answer {
    let document = serde_json::json!({ "HttpStatus": 401, "ErrorCode": code });
    Answer::json(status, document.to_string())
}

fn throttled(retry_after: u64) -> Answer {
    Answer::status(429).header("retry-after", retry_after.to_string())
}
