//! What budgets learn from answers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::Full;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tower_outcome_core::{
    Answer, CallReport, Classify, Deadline, Failure, HintForm, HttpClassifier, Judged, ManualClock,
    Outcome, Reason, ResetUnit, RetryAfter,
};
use tower_outcome_rate_limit::{
    Budget, Cost, KeyedBudget, Limit, RateLimitLayer, RateLimitLayerBuilder, Refused, Routes,
    Scope, Ticket, UsageHeaders,
};

use crate::support::{exact, ms, secs};

type Body = Full<Bytes>;

/// A venue that answers in ten milliseconds what it is told to, and notes when it was asked.
#[derive(Clone, Default)]
struct Venue {
    says: Arc<Mutex<(u16, HeaderMap, &'static str)>>,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Venue {
    fn says(&self, status: u16, headers: &[(&'static str, &str)], body: &'static str) {
        let headers = headers
            .iter()
            .map(|&(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        *self.says.lock().unwrap() = (status, headers.collect(), body);
    }

    async fn answer(self) -> Result<Response<Body>, BoxError> {
        self.asked.lock().unwrap().push(Instant::now());
        let (status, headers, body) = self.says.lock().unwrap().clone();
        sleep(ms(10)).await;
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        *response.headers_mut() = headers;
        Ok(response)
    }

    fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().clone()
    }
}

/// Sends a request through a layer to the venue.
async fn call<C>(
    layer: &RateLimitLayer<C>,
    venue: &Venue,
    request: Request<Body>,
) -> Result<StatusCode, BoxError>
where
    C: Classify,
{
    let venue = venue.clone();
    let inner = service_fn(move |_: Request<Body>| venue.clone().answer());
    let response = layer.layer(inner).oneshot(request).await?;
    Ok(response.status())
}

fn get(path: &str) -> Request<Body> {
    Request::get(format!("https://venue.test{path}"))
        .body(Body::default())
        .unwrap()
}

fn within(request: Request<Body>, span: Duration) -> Request<Body> {
    let mut request = request;
    request.extensions_mut().insert(Deadline::after(span));
    request
}

fn hundred() -> Budget {
    exact("key")
        .limit(Limit::sliding("weight", 100, secs(60)))
        .max_wait(secs(600))
        .build()
        .unwrap()
}

fn paused(budget: &Budget) -> Duration {
    budget.snapshot().paused_for
}

/// How long one answer closes the gate.
async fn pause_after(status: u16, headers: &[(&'static str, &str)]) -> Duration {
    let (budget, venue) = (hundred(), Venue::default());
    venue.says(status, headers, "");
    call(&RateLimitLayer::new(budget.clone()), &venue, get("/"))
        .await
        .unwrap();
    paused(&budget)
}

fn refused(result: Result<StatusCode, BoxError>) -> Failure {
    let failure = *result.unwrap_err().downcast::<Failure>().unwrap();
    assert!(failure.source_ref().unwrap().is::<Refused>());
    failure
}

// === gates ===

/// A bot whose every goroutine kept calling although all were told to wait for 35 s.
#[tokio::test(start_paused = true)]
async fn one_refusal_stops_two_hundred_callers_and_lets_them_out_one_by_one() {
    let budget = hundred();
    let venue = Venue::default();
    venue.says(429, &[("retry-after", "35")], "");
    let layer = RateLimitLayer::new(budget.clone());
    call(&layer, &venue, get("/")).await.unwrap();
    venue.says(200, &[], "");
    let start = Instant::now();

    let mut callers = JoinSet::new();
    for _ in 0..200 {
        let (layer, venue) = (layer.clone(), venue.clone());
        callers.spawn(async move { call(&layer, &venue, get("/")).await });
    }
    while let Some(answer) = callers.join_next().await {
        assert_eq!(answer.unwrap().unwrap(), 200);
    }
    let later: Vec<_> = venue.asked()[1..].iter().map(|&at| at - start).collect();
    assert_eq!(later.len(), 200);
    assert_eq!(later[0], secs(35));
    let gaps = later.windows(2).map(|pair| pair[1] - pair[0]);
    let shortest = gaps.min().unwrap();
    assert!(
        shortest >= ms(590),
        "100 a minute is one every 600 ms: {shortest:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_ban_without_a_warning_closes_the_gate_like_any_refusal() {
    assert_eq!(pause_after(418, &[("retry-after", "120")]).await, secs(120));
}

#[tokio::test(start_paused = true)]
async fn a_ban_of_three_days_is_believed_and_one_of_a_century_is_not() {
    let three_days = secs(3 * 24 * 60 * 60);
    assert_eq!(
        pause_after(418, &[("retry-after", "259200")]).await,
        three_days
    );
    let huge = [("retry-after", "99999999999999999999")];
    assert_eq!(pause_after(418, &huge).await, three_days);
}

/// Parse errors that skipped the code which sets the pause, and negative values that reached sleep.
#[tokio::test(start_paused = true)]
async fn a_hint_that_nobody_can_read_closes_the_gate_all_the_same() {
    for hint in ["-3", "-1", "+3", "120junk", "", "soon", "1e3", "0x10"] {
        assert_eq!(
            pause_after(429, &[("retry-after", hint)]).await,
            secs(1),
            "{hint:?}"
        );
    }
    assert_eq!(pause_after(429, &[]).await, secs(1));
}

/// Dates that were ignored, cut off to whole seconds, or read in one of their three forms only.
#[tokio::test(start_paused = true)]
async fn a_date_is_measured_by_the_venues_own_clock_and_rounded_up() {
    for date in [
        "Sun, 06 Nov 1994 08:50:37 GMT",
        "Sunday, 06-Nov-94 08:50:37 GMT",
        "Sun Nov  6 08:50:37 1994",
    ] {
        let headers = [
            ("date", "Sun, 06 Nov 1994 08:49:07 GMT"),
            ("retry-after", date),
        ];
        assert_eq!(pause_after(429, &headers).await, secs(90), "{date}");
    }
    assert_eq!(pause_after(429, &[("retry-after", "1.9")]).await, ms(1900));
}

#[tokio::test(start_paused = true)]
async fn a_bad_hint_does_not_hide_a_good_one() {
    let headers = [("retry-after-ms", "-5"), ("retry-after", "7")];
    assert_eq!(pause_after(429, &headers).await, secs(7));
}

/// Programs that slept for most of an hour without a word.
#[tokio::test(start_paused = true)]
async fn who_cannot_wait_for_the_gate_is_told_at_once_and_when() {
    let (budget, venue) = (hundred(), Venue::default());
    venue.says(429, &[("retry-after", "3300")], "");
    let layer = RateLimitLayer::new(budget);
    call(&layer, &venue, get("/")).await.unwrap();
    let start = Instant::now();
    let failure = refused(call(&layer, &venue, within(get("/"), secs(30))).await);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(failure.outcome().after().unwrap().delay(), secs(3300));
    assert_eq!(venue.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_already_are_sent_away_when_the_gate_closes_for_too_long() {
    let (budget, venue) = (hundred(), Venue::default());
    let _all = budget
        .try_acquire(&Ticket::new().class(0).cost(Cost::in_order([100])))
        .unwrap();
    let layer = RateLimitLayer::new(budget.clone());
    let waiting = tokio::spawn({
        let (layer, venue) = (layer.clone(), venue.clone());
        async move {
            let result = call(&layer, &venue, within(get("/"), secs(200))).await;
            (Instant::now(), result)
        }
    });
    sleep(secs(1)).await;
    let closed = Instant::now();
    budget.throttled(Some(secs(300)));
    let (sent_away, result) = waiting.await.unwrap();
    assert_eq!(sent_away, closed);
    let after = refused(result).outcome().after().unwrap().delay();
    assert!(after >= secs(300), "{after:?}");
}

/// A caller that asks not to wait gets an answer without the network.
#[tokio::test(start_paused = true)]
async fn a_call_during_the_pause_can_fail_at_once() {
    let (budget, venue) = (hundred(), Venue::default());
    budget.throttled(Some(secs(10)));
    let scope = Scope::of(budget)
        .tickets(|_: &http::request::Parts| Ticket::new().max_wait(Duration::ZERO));
    let layer = RateLimitLayer::builder(scope).build().unwrap();
    let failure = refused(call(&layer, &venue, get("/")).await);
    assert!(failure.outcome().is_retryable());
    assert!(failure.delivery().proves_not_applied());
    assert!(venue.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_refusal_closes_nothing() {
    for status in [200, 302, 400, 401, 403, 404, 500, 503] {
        assert_eq!(
            pause_after(status, &[("retry-after", "9")]).await,
            Duration::ZERO
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_gate_can_be_left_open() {
    let (budget, venue) = (hundred(), Venue::default());
    venue.says(429, &[("retry-after", "35")], "");
    let layer = RateLimitLayer::builder(budget.clone()).closes_gate(false);
    call(&layer.build().unwrap(), &venue, get("/"))
        .await
        .unwrap();
    assert_eq!(paused(&budget), Duration::ZERO);
}

// === rules of an API ===

fn with_rule(
    budget: &Budget,
    rule: impl Fn(Judged<'_>) -> Option<Answer> + Send + Sync + 'static,
) -> RateLimitLayer<HttpClassifier> {
    let classifier = HttpClassifier::builder().body_rule(rule).build().unwrap();
    RateLimitLayer::builder(budget.clone())
        .classifier(classifier)
        .build()
        .unwrap()
}

/// Bybit's 10006 inside a 200 passed for a success.
#[tokio::test(start_paused = true)]
async fn a_refusal_inside_a_success_closes_the_gate() {
    let (budget, venue) = (hundred(), Venue::default());
    let layer = with_rule(&budget, |seen| {
        seen.body.starts_with(br#"{"retCode":10006"#).then(|| {
            let reset = seen.head.headers.get("x-bapi-limit-reset-timestamp");
            let reset: u64 = reset.unwrap().to_str().unwrap().parse().unwrap();
            let delay = Duration::from_millis(reset - 1_700_000_000_000);
            Answer::NotApplied {
                reason: Reason::RateLimited,
                after: Some(RetryAfter::new(delay, HintForm::Custom)),
            }
        })
    });
    let reset = [("x-bapi-limit-reset-timestamp", "1700000002500")];
    venue.says(
        200,
        &reset,
        r#"{"retCode":10006,"retMsg":"Too many visits!"}"#,
    );
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(paused(&budget), ms(2500));
}

/// The end of a ban stood in the text alone, as milliseconds since 1970.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_ban_may_stand_in_the_text() {
    let (budget, venue) = (hundred(), Venue::default());
    let layer = with_rule(&budget, |seen| {
        if seen.head.status != StatusCode::IM_A_TEAPOT {
            return None;
        }
        let text = std::str::from_utf8(seen.body).ok()?;
        let (_, end) = text.split_once("banned until ")?;
        let end: u64 = end.get(..13)?.parse().ok()?;
        let delay = Duration::from_millis(end.saturating_sub(1_700_000_000_000));
        Some(Answer::NotApplied {
            reason: Reason::RateLimited,
            after: Some(RetryAfter::new(delay, HintForm::Custom)),
        })
    });
    let text = r#"{"code":-1003,"msg":"Way too many requests; IP banned until 1700000600000."}"#;
    venue.says(418, &[], text);
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(paused(&budget), secs(600));
}

/// An order whose outcome nobody knows still says that there were too many.
#[tokio::test(start_paused = true)]
async fn the_hint_of_an_answer_of_unknown_outcome_counts() {
    let (budget, venue) = (hundred(), Venue::default());
    venue.says(429, &[("retry-after", "35")], "");
    let order = Request::post("https://venue.test/orders")
        .body(Body::default())
        .unwrap();
    let layer = RateLimitLayer::new(budget.clone());
    call(&layer, &venue, order).await.unwrap();
    assert_eq!(paused(&budget), secs(35));
}

/// Two kinds of 403, told apart by the body.
#[tokio::test(start_paused = true)]
async fn a_403_is_a_refusal_only_where_the_body_says_so() {
    let (budget, venue) = (hundred(), Venue::default());
    let layer = with_rule(&budget, |seen| {
        let limited = seen.head.status == StatusCode::FORBIDDEN
            && seen.body.windows(15).any(|word| word == b"secondary limit");
        limited.then_some(Answer::NotApplied {
            reason: Reason::RateLimited,
            after: Some(RetryAfter::new(secs(60), HintForm::Custom)),
        })
    });
    venue.says(403, &[], r#"{"message":"must have admin rights"}"#);
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(paused(&budget), Duration::ZERO);
    venue.says(
        403,
        &[],
        r#"{"message":"you have exceeded a secondary limit"}"#,
    );
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(paused(&budget), secs(60));
}

/// A web application firewall answers 403 with a page, at which a JSON parser crashed.
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_edge_closes_the_gate_for_long() {
    let (budget, venue) = (hundred(), Venue::default());
    let classifier = HttpClassifier::builder().head_rule(|seen: Judged<'_>| {
        let html = seen.head.headers.get(header::CONTENT_TYPE)?;
        let edge =
            seen.head.status == StatusCode::FORBIDDEN && html.as_bytes().starts_with(b"text/html");
        edge.then_some(Answer::NotApplied {
            reason: Reason::RateLimited,
            after: Some(RetryAfter::new(secs(600), HintForm::Custom)),
        })
    });
    let layer = RateLimitLayer::builder(budget.clone())
        .classifier(classifier.build().unwrap())
        .build()
        .unwrap();
    venue.says(403, &[("content-type", "text/html")], "<html>403");
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(paused(&budget), secs(600));
}

// === whose gate ===

/// Two clients that each owned the whole limit of one account.
#[tokio::test(start_paused = true)]
async fn clients_of_one_account_share_what_it_may_use() {
    let accounts = KeyedBudget::<String>::try_new(
        exact("account")
            .limit(Limit::sliding("requests", 3, secs(60)))
            .max_wait(Duration::ZERO),
    )
    .unwrap();
    let venue = Venue::default();
    venue.says(200, &[], "");
    let layer = |accounts: &KeyedBudget<String>| {
        let scope = Scope::keyed(accounts.clone(), |head: &http::request::Parts| {
            head.uri.path().to_owned()
        })
        .tickets(|_: &http::request::Parts| Ticket::new().class(0));
        RateLimitLayer::builder(scope).build().unwrap()
    };
    let (one, other) = (layer(&accounts), layer(&accounts));
    for layer in [&one, &other, &one] {
        call(layer, &venue, get("/7")).await.unwrap();
    }
    refused(call(&other, &venue, get("/7")).await);
    call(&other, &venue, get("/8")).await.unwrap();
}

/// Endpoints without an entry went past the limiter.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_nobody_mapped_is_never_free() {
    let (budget, venue) = (hundred(), Venue::default());
    venue.says(200, &[], "");
    let free = Ticket::new().cost(Cost::NOTHING);
    let routes = Routes::new().any("/time", free);
    let layer = RateLimitLayer::builder(Scope::of(budget.clone()).tickets(routes));
    let layer = layer.build().unwrap();
    call(&layer, &venue, get("/time")).await.unwrap();
    assert_eq!(budget.snapshot().limits[0].used, 0);
    call(&layer, &venue, get("/brand/new")).await.unwrap();
    assert_eq!(budget.snapshot().limits[0].used, 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_closes_the_narrowest_gate_and_a_ban_all_of_them() {
    let venue = Venue::default();
    let (account, address) = (hundred(), hundred());
    let layer = RateLimitLayer::builder(account.clone())
        .within(address.clone())
        .build()
        .unwrap();
    venue.says(429, &[("retry-after", "5")], "");
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(
        (paused(&account), paused(&address)),
        (secs(5), Duration::ZERO)
    );
    sleep(secs(5)).await;
    venue.says(418, &[("retry-after", "50")], "");
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!((paused(&account), paused(&address)), (secs(50), secs(50)));
}

#[tokio::test(start_paused = true)]
async fn a_scope_can_say_which_refusals_are_its_own() {
    let venue = Venue::default();
    let (account, address) = (hundred(), hundred());
    let says = |kind: &'static str| {
        move |head: &http::response::Parts| head.headers.get("x-rate-limit-type").unwrap() == kind
    };
    let layer = RateLimitLayer::builder(Scope::of(account.clone()).closed_by(says("method")))
        .within(Scope::of(address.clone()).closed_by(says("application")))
        .build()
        .unwrap();
    let headers = [("retry-after", "5"), ("x-rate-limit-type", "application")];
    venue.says(429, &headers, "");
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(
        (paused(&account), paused(&address)),
        (Duration::ZERO, secs(5))
    );
}

// === what others use ===

fn learning(budget: &Budget, headers: UsageHeaders) -> RateLimitLayerBuilder {
    RateLimitLayer::builder(Scope::of(budget.clone()).usage("weight", headers))
}

/// Weights that the venue raised, and several programs on one address: the local count was right
/// and the ban came all the same.
#[tokio::test(start_paused = true)]
async fn the_higher_of_both_counts_wins() {
    let (budget, venue) = (hundred(), Venue::default());
    let layer = learning(&budget, UsageHeaders::mbx_used_weight("1m").unwrap());
    let layer = layer.build().unwrap();
    venue.says(200, &[("x-mbx-used-weight-1m", "80")], "");
    call(&layer, &venue, get("/")).await.unwrap();
    let weight = &budget.snapshot().limits[0];
    assert_eq!((weight.used, weight.phantom), (1, 79));

    // A lower number, as of an answer that was overtaken, takes nothing back.
    venue.says(200, &[("x-mbx-used-weight-1m", "3")], "");
    call(&layer, &venue, get("/")).await.unwrap();
    let weight = &budget.snapshot().limits[0];
    assert_eq!((weight.used, weight.phantom), (2, 79));

    sleep(secs(61)).await;
    assert_eq!(
        budget.snapshot().limits[0].phantom,
        0,
        "it is forgotten after a window"
    );
}

#[tokio::test(start_paused = true)]
async fn a_count_that_this_side_explains_makes_no_phantom() {
    let (budget, venue) = (hundred(), Venue::default());
    let layer = learning(&budget, UsageHeaders::mbx_used_weight("1m").unwrap());
    let layer = layer.build().unwrap();
    for used in ["1", "2", "3"] {
        venue.says(200, &[("x-mbx-used-weight-1m", used)], "");
        call(&layer, &venue, get("/")).await.unwrap();
    }
    // Two at once: the venue may have counted both when it answered the first.
    venue.says(200, &[("x-mbx-used-weight-1m", "5")], "");
    let (one, other) = tokio::join!(
        call(&layer, &venue, get("/")),
        call(&layer, &venue, get("/"))
    );
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(budget.snapshot().limits[0].phantom, 0);
}

#[tokio::test(start_paused = true)]
async fn a_smaller_limit_than_configured_leaves_only_what_the_venue_leaves() {
    let (budget, venue) = (hundred(), Venue::default());
    let layer = learning(&budget, UsageHeaders::x_rate_limit(ResetUnit::EpochSeconds));
    let layer = layer.build().unwrap();
    let headers = [("x-ratelimit-limit", "40"), ("x-ratelimit-remaining", "10")];
    venue.says(200, &headers, "");
    call(&layer, &venue, get("/")).await.unwrap();
    let weight = &budget.snapshot().limits[0];
    assert_eq!(weight.capacity - weight.used - weight.phantom, 10);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_used_up_opens_when_the_venue_says() {
    let (budget, venue) = (hundred(), Venue::default());
    let clock = Arc::new(ManualClock::new(
        SystemTime::UNIX_EPOCH + secs(1_700_000_000),
    ));
    let headers = UsageHeaders::x_rate_limit(ResetUnit::EpochSeconds);
    let layer = learning(&budget, headers).clock(clock).build().unwrap();
    let headers = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1700000020"),
    ];
    venue.says(200, &headers, "");
    call(&layer, &venue, get("/")).await.unwrap();
    assert_eq!(budget.snapshot().limits[0].closed_for, secs(20));
    assert_eq!(paused(&budget), Duration::ZERO, "others may go");
}

#[tokio::test(start_paused = true)]
async fn headers_that_make_no_sense_change_nothing() {
    let (budget, venue) = (hundred(), Venue::default());
    let layer = learning(&budget, UsageHeaders::mbx_used_weight("1m").unwrap());
    let layer = layer.build().unwrap();
    for used in ["-5", "many", "", "1e9", "18446744073709551616"] {
        venue.says(200, &[("x-mbx-used-weight-1m", used)], "");
        call(&layer, &venue, get("/")).await.unwrap();
        assert_eq!(budget.snapshot().limits[0].phantom, 0, "{used:?}");
    }
    venue.says(200, &[("x-mbx-used-weight-1m", "18446744073709551615")], "");
    call(&layer, &venue, get("/")).await.unwrap();
    let weight = &budget.snapshot().limits[0];
    assert!(weight.phantom <= weight.capacity);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_no_limit_is_an_error_when_the_layer_is_built() {
    let headers = UsageHeaders::shopify();
    let layer = RateLimitLayer::builder(Scope::of(hundred()).usage("wieght", headers));
    let error = layer.build().unwrap_err();
    assert_eq!(
        (error.field(), error.value()),
        ("scope.usage", "\"wieght\"")
    );
}

/// A venue that counts in minutes of its own clock is learned from its `Date`.
#[tokio::test(start_paused = true)]
async fn the_venues_clock_is_learned_from_its_dates() {
    let budget = exact("key")
        .limit(Limit::aligned("weight", 5, secs(60)))
        .max_wait(secs(600))
        .build()
        .unwrap();
    let start = Instant::now();
    let asked = Arc::new(AtomicU32::new(0));
    let layer = RateLimitLayer::new(budget.clone());
    let inner = service_fn({
        let asked = asked.clone();
        move |_: Request<Body>| {
            asked.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(ms(10)).await;
                // 08:49:37 when the test begins.
                let at = SystemTime::UNIX_EPOCH + secs(784_111_777) + start.elapsed();
                let mut response = Response::new(Body::default());
                let date = httpdate::fmt_http_date(at).parse().unwrap();
                response.headers_mut().insert(header::DATE, date);
                Ok::<_, BoxError>(response)
            }
        }
    });
    let order = |mut request: Request<Body>| {
        let highest = tower_outcome_core::Priority::HIGHEST;
        request.extensions_mut().insert(highest);
        request
    };
    for _ in 0..6 {
        let service = layer.layer(inner.clone());
        service.oneshot(order(get("/"))).await.unwrap();
    }
    // The minute ends after 23 seconds. A `Date` tells that to a second, and nothing goes before
    // the minute is over for certain; a sliding window would have opened after 60.
    let waited = start.elapsed();
    assert!(waited >= secs(23) && waited <= ms(24_200), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_typed_and_says_when_the_ban_ends() {
    let (budget, venue) = (hundred(), Venue::default());
    venue.says(418, &[("retry-after", "7200")], "");
    let layer = RateLimitLayer::new(budget);
    call(&layer, &venue, get("/")).await.unwrap();
    let failure = refused(call(&layer, &venue, within(get("/"), secs(1))).await);
    assert_eq!(failure.outcome().reason(), Some(Reason::LocalLimit));
    let refused = failure
        .source_ref()
        .unwrap()
        .downcast_ref::<Refused>()
        .unwrap();
    let after = refused.retry_after(Instant::now()).unwrap();
    assert_eq!(after, secs(7200));
    let report = failure.report().unwrap();
    assert_eq!(report.attempts(), 0, "nothing was sent");
    assert_eq!(
        CallReport::outcome_of::<Body>(&Err(failure.into())),
        Outcome::Retryable {
            reason: Reason::LocalLimit,
            after: Some(RetryAfter::new(secs(7200), HintForm::Custom)),
        }
    );
}

// === layers that cannot work ===

#[tokio::test(start_paused = true)]
async fn the_same_budget_twice_is_an_error_when_the_layer_is_built() {
    let budget = hundred();
    let layer = RateLimitLayer::builder(budget.clone()).within(budget);
    assert_eq!(layer.build().unwrap_err().field(), "scope");
}

#[tokio::test(start_paused = true)]
async fn a_route_that_can_never_go_is_an_error_when_the_layer_is_built() {
    let heavy = Ticket::new().cost(Cost::in_order([101]));
    let keyed =
        KeyedBudget::<String>::try_new(exact("key").limit(Limit::sliding("weight", 100, secs(60))))
            .unwrap();
    let by_key = Scope::keyed(keyed, |_: &http::request::Parts| String::new());
    for scope in [Scope::of(hundred()), by_key] {
        let scope = scope.tickets(Routes::new().any("/heavy", heavy));
        let error = RateLimitLayer::builder(scope).build().unwrap_err();
        assert_eq!(error.field(), "ticket.cost");
        assert!(error.value().contains("101 of \"weight\""), "{error}");
    }
    // What its class leaves is not its own.
    let query = Ticket::new().class(1).cost(Cost::in_order([91]));
    let scope = Scope::of(hundred()).tickets(Routes::new().any("/", query));
    RateLimitLayer::builder(scope).build().unwrap_err();
}
