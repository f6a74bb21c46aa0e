//! What becomes of calls, and what their callers are told.

use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
};

use http::StatusCode;
use tower_outcome_testkit::{self as testkit, Answer, Fault, Point, Venue};

use crate::running::{Gateway, send};

/// Retries without waits that anybody would notice.
const RETRY: &str = "[upstream.retry]\nmax_attempts = 3\nbackoff = { base = \"1ms\", throttled_base = \"1ms\", cap = \"2ms\", jitter = \"none\" }\n";

fn lost() -> http::HeaderValue {
    Fault::Close { at: Point::Applied }.header_value()
}

/// A venue that refuses as many requests before it acts on one.
fn busy_at_first(times: usize) -> Venue {
    let mut left = times;
    Venue::builder()
        .demand(move |_: &testkit::Request| {
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            Err(Answer::status(503))
        })
        .start()
        .unwrap()
}

#[tokio::test]
async fn requests_and_answers_pass_through_without_what_is_for_one_hop() {
    let seen: Arc<Mutex<Vec<testkit::Request>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let venue = Venue::builder()
        .answer(move |request| {
            kept.lock().unwrap().push(request.clone());
            Answer::status(201)
                .header("x-theirs", "1")
                .header("connection", "x-hop")
                .header("x-hop", "2")
                .header("keep-alive", "timeout=5")
                .header("x-outcome", "permanent")
                .header("x-outcome-not-retried", "made up")
                .body("placed")
        })
        .start()
        .unwrap();
    let gateway = Gateway::before(&venue, "").await;
    let order = gateway
        .post("/venue/orders/a%20b?side=buy&x=%2F", "order-1")
        .header("x-mine", "3")
        .header("connection", "x-mine-too")
        .header("x-mine-too", "4")
        .header("proxy-authorization", "Basic eA==")
        .header("authorization", "Bearer mine")
        .header("x-forwarded-for", "10.0.0.1")
        .header("forwarded", "for=10.0.0.1")
        .header("x-request-timeout", "10s")
        .header("x-priority", "urgent");
    let got = send(order, "buy 100").await;
    assert_eq!(got.status, StatusCode::CREATED);
    assert_eq!(got.body, "placed");
    assert_eq!(got.header("x-theirs"), "1");
    for gone in ["x-hop", "keep-alive", "x-outcome-not-retried"] {
        assert_eq!(got.header(gone), "", "{gone}");
    }
    assert_eq!(got.headers.get_all("x-outcome").iter().count(), 1);
    assert_eq!(got.header("x-outcome"), "success");
    assert_eq!(got.header("x-outcome-attempts"), "1");
    assert_eq!(got.header("x-outcome-delivery"), "answered");

    let request = seen.lock().unwrap().remove(0);
    assert_eq!(request.method, "POST");
    assert_eq!(request.path, "/orders/a%20b?side=buy&x=%2F");
    assert_eq!(request.body, "buy 100");
    assert_eq!(request.header("host"), Some(&*venue.addr().to_string()));
    assert_eq!(request.header("x-mine"), Some("3"));
    assert_eq!(request.header("authorization"), Some("Bearer mine"));
    assert_eq!(request.header("via"), Some("1.1 gateway"));
    assert_eq!(request.header("content-length"), Some("7"));
    let gone = [
        "x-mine-too",
        "proxy-authorization",
        "x-forwarded-for",
        "forwarded",
        "x-request-timeout",
        "x-priority",
        "transfer-encoding",
    ];
    for gone in gone {
        assert_eq!(request.header(gone), None, "{gone}");
    }
}

#[tokio::test]
async fn the_upstream_is_told_who_calls_only_if_the_file_says_so() {
    let seen: Arc<Mutex<Vec<testkit::Request>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let venue = Venue::builder()
        .answer(move |request| {
            kept.lock().unwrap().push(request.clone());
            Answer::status(200)
        })
        .start()
        .unwrap();
    let gateway = Gateway::before(&venue, "tells_peer = true\n").await;
    let asked = gateway.get("/venue").header("x-forwarded-for", "10.0.0.1");
    send(asked, "").await;
    let request = seen.lock().unwrap().remove(0);
    assert_eq!(request.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(request.path, "/");
}

#[tokio::test]
async fn a_lost_answer_is_a_502_that_says_unknown() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, RETRY).await;
    let order = gateway.post("/venue/orders", "order-1");
    let got = send(order.header(Fault::HEADER, lost()), "buy").await;
    let problem = got.assert_problem(502, "unknown");
    assert_eq!(problem["outcome"], "unknown");
    assert_eq!(problem["reason"], "transport");
    assert_eq!(problem["delivery"], "maybe_sent");
    assert_eq!(problem["attempts"], 1);
    assert_eq!(problem["not_retried"], "outcome");
    assert_eq!(problem["upstream"], "venue");
    assert_eq!(got.header("x-outcome"), "unknown");
    assert_eq!(got.header("x-outcome-reason"), "transport");
    assert_eq!(got.header("x-outcome-delivery"), "maybe_sent");
    assert_eq!(got.header("x-outcome-not-retried"), "outcome");
    assert_eq!(venue.ledger().attempts("order-1"), 1);
    assert_eq!(venue.ledger().applied("order-1"), 1);
    assert_eq!(gateway.status().await["answered"]["unknown"], 1);
}

#[tokio::test]
async fn a_bound_that_strikes_is_a_504_that_says_unknown() {
    let venue = Venue::start().unwrap();
    let stall = Fault::Stall { at: Point::Applied };
    let gateway = Gateway::before(&venue, RETRY).await;
    let order = gateway
        .post("/venue/orders", "order-1")
        .header("x-request-timeout", "300ms");
    let got = send(order.header(Fault::HEADER, stall.header_value()), "buy").await;
    let problem = got.assert_problem(504, "unknown");
    assert_eq!(problem["outcome"], "unknown");
    assert_eq!(problem["reason"], "timed_out");
    assert_eq!(problem["bound"], "deadline");
    assert_eq!(got.header("x-outcome"), "unknown");
    assert_eq!(venue.ledger().attempts("order-1"), 1);
    assert_eq!(venue.ledger().applied("order-1"), 1);
}

#[tokio::test]
async fn a_refusal_that_proves_nothing_is_no_4xx() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, RETRY).await;
    for code in [408, 429] {
        let operation = format!("order-{code}");
        let fault = Fault::Status {
            code,
            applied: true,
            retry_after: Some("7".to_owned()),
            headers: Vec::new(),
            body: None,
        };
        let order = gateway.post("/venue/orders", &operation);
        let got = send(order.header(Fault::HEADER, fault.header_value()), "buy").await;
        let problem = got.assert_problem(502, "unknown");
        assert_eq!(problem["upstream_status"], code);
        assert_eq!(problem["delivery"], "answered");
        assert_eq!(got.header("x-outcome"), "unknown");
        // It would be an invitation to do it twice.
        assert_eq!(got.header("retry-after"), "");
        assert_eq!(venue.ledger().applied(&operation), 1);
    }
}

#[tokio::test]
async fn a_refusal_that_the_api_vouches_for_passes() {
    let venue = Venue::start().unwrap();
    let more = format!(
        "[upstream.answers]\nrefused = [429]\n{}",
        RETRY.replace('3', "1")
    );
    let gateway = Gateway::before(&venue, &more).await;
    let order = gateway.post("/venue/orders", "order-1");
    let fault = Fault::retry_after(429, "7").header_value();
    let got = send(order.header(Fault::HEADER, fault), "buy").await;
    assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(got.header("x-outcome"), "retryable");
    assert_eq!(got.header("x-outcome-delivery"), "refused");
    assert_eq!(got.header("retry-after"), "7");
}

#[tokio::test]
async fn a_5xx_that_proves_nothing_does_not_look_like_a_refusal() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, RETRY).await;
    let order = gateway.post("/venue/orders", "order-1");
    let fault = Fault::retry_after(503, "7").header_value();
    let got = send(order.header(Fault::HEADER, fault), "buy").await;
    let problem = got.assert_problem(502, "unknown");
    assert_eq!(problem["upstream_status"], 503);
    assert_eq!(problem["reason"], "overloaded");
    assert_eq!(got.header("x-outcome"), "unknown");
    assert_eq!(got.header("x-outcome-reason"), "overloaded");
    assert_eq!(got.header("retry-after"), "");
    assert_eq!(venue.ledger().attempts("order-1"), 1);
    for (code, status) in [(500, 502), (504, 504), (599, 502)] {
        let order = gateway.post("/venue/orders", "order-3");
        let fault = Fault::status(code, true).header_value();
        let got = send(order.header(Fault::HEADER, fault), "buy").await;
        let problem = got.assert_problem(status, "unknown");
        assert_eq!(problem["upstream_status"], code);
        assert_eq!(got.header("x-outcome"), "unknown");
    }
    // Harmless to repeat: it is the upstream's.
    let quote = gateway.get("/venue/quote");
    let fault = Fault::status(503, false).header_value();
    let got = send(quote.header(Fault::HEADER, fault), "").await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(got.header("x-outcome"), "retryable");

    let order = gateway.post("/venue/orders", "order-2");
    let fault = Fault::status(404, false).header_value();
    let got = send(order.header(Fault::HEADER, fault), "buy").await;
    assert_eq!(got.status, StatusCode::NOT_FOUND);
    assert_eq!(got.header("x-outcome"), "permanent");
}

#[tokio::test]
async fn only_what_is_harmless_to_repeat_is_sent_again() {
    let venue = busy_at_first(3);
    let more = format!("[upstream.idempotency_key]\nheader = \"x-key\"\n{RETRY}");
    let gateway = Gateway::before(&venue, &more).await;
    let got = send(gateway.post("/venue/orders", "without"), "buy").await;
    got.assert_problem(502, "unknown");
    assert_eq!(venue.ledger().attempts("without"), 1);

    let keyed = gateway.post("/venue/orders", "keyed");
    let got = send(keyed.header("x-key", "k-1"), "buy").await;
    assert_eq!(got.status, StatusCode::OK);
    assert_eq!(got.header("x-outcome"), "success");
    assert_eq!(got.header("x-outcome-attempts"), "3");
    assert_eq!(venue.ledger().attempts("keyed"), 3);
    assert_eq!(venue.ledger().applied("keyed"), 1);
}

#[tokio::test]
async fn a_key_that_was_made_here_is_handed_back() {
    let venue = Venue::start().unwrap();
    let more = format!("[upstream.idempotency_key]\ngenerate = true\n{RETRY}");
    let gateway = Gateway::before(&venue, &more).await;
    let order = gateway.post("/venue/orders", "order-1");
    let got = send(order.header(Fault::HEADER, lost()), "buy").await;
    let problem = got.assert_problem(502, "not-done");
    assert_eq!(problem["outcome"], "retryable");
    let key = problem["idempotency_key"].as_str().unwrap();
    let sent = venue.ledger().of_operation("order-1");
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|entry| entry.key.as_deref() == Some(key)));
    assert_eq!(venue.ledger().applied("order-1"), 1);
}

#[tokio::test]
async fn a_connection_that_is_refused_is_a_502_and_was_not_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let file = format!(
        "listen = \"127.0.0.1:0\"\n[[upstream]]\nname = \"gone\"\nprefix = \"/\"\nbase = \"http://{}\"\n",
        closed.unwrap()
    );
    let gateway = Gateway::start(&file, &[]).await;
    let got = send(gateway.post("/orders", "order-1"), "buy").await;
    let problem = got.assert_problem(502, "not-done");
    assert_eq!(problem["outcome"], "retryable");
    assert_eq!(problem["delivery"], "not_sent");
    assert_eq!(got.header("x-outcome"), "retryable");
    assert_eq!(got.header("x-outcome-delivery"), "not_sent");
}

#[tokio::test]
async fn a_deadline_that_cannot_be_understood_is_refused_before_anything_is_sent() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, "").await;
    for garbage in ["", "soon", "10", "-1s", "1.5s", "1s ,2s", "123456789s"] {
        let order = gateway.post("/venue/orders", "order-1");
        let got = send(order.header("x-request-timeout", garbage), "buy").await;
        got.assert_problem(400, "bad-request");
        assert_eq!(got.header("x-outcome"), "permanent");
        assert_eq!(got.header("x-outcome-delivery"), "not_sent");
    }
    let twice = gateway
        .post("/venue/orders", "order-1")
        .header("x-request-timeout", "1s")
        .header("x-request-timeout", "2s");
    send(twice, "buy").await.assert_problem(400, "bad-request");
    let over = gateway.post("/venue/orders", "order-1");
    let got = send(over.header("x-request-timeout", "0s"), "buy").await;
    let problem = got.assert_problem(504, "timed-out");
    assert_eq!(problem["delivery"], "not_sent");
    assert!(venue.ledger().is_empty());
}

#[tokio::test]
async fn nobody_gets_longer_than_the_file_allows() {
    let venue = Venue::start().unwrap();
    let more = "[upstream.timeouts]\ncall = \"300ms\"\n";
    let gateway = Gateway::before(&venue, more).await;
    let stall = Fault::Stall { at: Point::Head };
    let quote = gateway.get("/venue/quote");
    let quote = quote.header("x-request-timeout", "99999999h");
    let got = send(quote.header(Fault::HEADER, stall.header_value()), "").await;
    let problem = got.assert_problem(504, "timed-out");
    assert_eq!(problem["outcome"], "retryable");
    assert_eq!(problem["bound"], "deadline");
}

#[tokio::test]
async fn paths_belong_to_the_longest_prefix_and_stay_below_the_base() {
    let (one, other) = (Venue::start().unwrap(), Venue::start().unwrap());
    let file = format!(
        "listen = \"127.0.0.1:0\"\n\
         [[upstream]]\nname = \"one\"\nprefix = \"/api\"\nbase = \"{}\"\n\
         [[upstream]]\nname = \"other\"\nprefix = \"/api/v2\"\nbase = \"{}\"\n",
        one.url("/base/"),
        other.url("/")
    );
    let gateway = Gateway::start(&file, &[]).await;
    for (path, status) in [
        ("/api/v1/x", 200),
        ("/api/v2/y", 200),
        ("/api/v22", 200),
        ("/apis", 404),
        ("/", 404),
        ("/api/v1/../../admin", 400),
        ("/api/%2e%2E/admin", 400),
        ("/api/v1/a%2eb", 400),
        ("/api/v1/a%2Fb", 400),
        ("/api/v1/a%5cb", 400),
        ("/api/v1/..;a=b/admin", 400),
        ("/api/v1/.%3Ba/admin", 400),
        ("/api/v1/a.b;c=d", 200),
        ("/api/%762/%7a", 200),
    ] {
        let got = send(gateway.get(path), "").await;
        assert_eq!(got.status, status, "{path}");
    }
    let paths = |venue: &Venue| {
        let entries = venue.ledger().entries().into_iter();
        entries.map(|entry| entry.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(&one), ["/base/v1/x", "/base/v22", "/base/v1/a.b;c=d"]);
    assert_eq!(paths(&other), ["/y", "/z"]);
}

#[tokio::test]
async fn a_key_proves_nothing_to_an_upstream_that_documents_none() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, RETRY).await;
    let order = gateway
        .post("/venue/orders", "order-1")
        .header("idempotency-key", "k-1");
    let got = send(order.header(Fault::HEADER, lost()), "buy").await;
    let problem = got.assert_problem(502, "unknown");
    assert_eq!(problem["attempts"], 1);
    assert_eq!(venue.ledger().attempts("order-1"), 1);
    assert_eq!(venue.ledger().applied("order-1"), 1);
}

#[tokio::test]
async fn a_change_of_protocol_that_nobody_asked_for_is_no_answer() {
    let venue = Venue::builder()
        .answer(|_| Answer::status(101).header("upgrade", "other"))
        .start()
        .unwrap();
    let gateway = Gateway::before(&venue, RETRY).await;
    let got = send(gateway.post("/venue/orders", "order-1"), "buy").await;
    let problem = got.assert_problem(502, "unknown");
    assert_eq!(problem["upstream_status"], 101);
    let got = send(gateway.get("/venue/quote"), "").await;
    let problem = got.assert_problem(502, "not-done");
    assert_eq!(problem["upstream_status"], 101);
    assert_eq!(problem["outcome"], "permanent");
}
