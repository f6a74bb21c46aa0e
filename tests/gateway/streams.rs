//! Bodies on their way, and callers that go away.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::yield_now,
};
use tower_outcome_testkit::{Fault, Point, Venue};

use crate::running::{Gateway, send};

/// Sends the beginning of a request.
async fn begin(gateway: &Gateway, operation: &str, fault: &Fault, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address()).await.unwrap();
    let fault = fault.to_string();
    let head = format!(
        "POST /venue/orders HTTP/1.1\r\nhost: gateway\r\nx-operation-id: {operation}\r\nx-fault: {fault}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_nothing_behind() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, "connection_limit = 1\n").await;
    let stall = Fault::Stall { at: Point::Applied };
    let whole = "content-length: 3\r\n\r\nbuy";
    let stream = begin(&gateway, "order-1", &stall, whole).await;
    while venue.ledger().applied("order-1") == 0 {
        yield_now().await;
    }
    assert_eq!(gateway.status().await["in_flight"], 1);
    drop(stream);
    let status = loop {
        let status = gateway.status().await;
        if status["open"] == 0 {
            break status;
        }
    };
    assert_eq!(status["in_flight"], 0);
    assert_eq!(status["abandoned"]["unknown"], 1);
    assert_eq!(status["answered"]["unknown"], 0);
    // There is but one slot.
    let got = send(gateway.post("/venue/orders", "order-2"), "buy").await;
    assert_eq!(got.status, 200);
    assert_eq!(venue.ledger().attempts("order-1"), 1);
    gateway.terminate().await;
    let ended = gateway.ended().await;
    let told = "venue POST /orders: the caller went away; unknown (timed_out), maybe_sent";
    assert!(ended.errors.contains(told), "{}", ended.errors);
}

#[tokio::test]
async fn a_request_body_is_sent_on_as_it_comes() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, "").await;
    let early = Fault::EarlyAnswer {
        code: 413,
        drain: true,
    };
    // The end of the body never comes, and the answer does.
    let some = "transfer-encoding: chunked\r\n\r\n3\r\nbuy\r\n";
    let mut stream = begin(&gateway, "order-1", &early, some).await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let read = stream.read_buf(&mut answer).await.unwrap();
        assert_ne!(read, 0);
        if answer.windows(4).any(|four| four == b"\r\n\r\n") {
            break;
        }
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("x-outcome: permanent\r\n"), "{answer}");
}

#[tokio::test]
async fn a_body_over_the_bound_passes_and_is_not_sent_again() {
    let venue = Venue::start().unwrap();
    let more = "replay_bytes = 4\n[upstream.idempotency_key]\n[upstream.retry]\nmax_attempts = 3\n\
                backoff = { base = \"1ms\" }\n";
    let gateway = Gateway::before(&venue, more).await;
    let fault = Fault::status(503, false).header_value();
    for (operation, body, attempts) in [("small", "buy", 3), ("large", "buy 100", 1)] {
        let order = gateway
            .post("/venue/orders", operation)
            .header("idempotency-key", operation)
            .header(Fault::HEADER, fault.clone());
        let got = send(order, body).await;
        assert_eq!(got.status, 503);
        assert_eq!(venue.ledger().attempts(operation), attempts);
        if attempts == 1 {
            assert_eq!(got.header("x-outcome-not-retried"), "body_not_replayable");
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_whole() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, "").await;
    let fault = Fault::Close {
        at: Point::Response,
    };
    let order = gateway.post("/venue/orders", "order-1");
    let order = order.header(Fault::HEADER, fault.header_value());
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let response = client.request(order.body(Full::from("buy")).unwrap()).await;
    // The head went on before there was an end.
    let response = response.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(gateway.status().await["cut_short"], 1);
}
