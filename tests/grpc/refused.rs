//! What a server disowns may be sent again whatever it is.

use std::{io, time::Duration};

use futures_util::stream;
use tonic::Code;
use tower_outcome::{CallReport, Delivery, NotRetried, Outcome, ReplayLayer};
use tower_outcome_desk::{PlaceRequest, WatchRequest};
use tower_outcome_testkit::raw::{Connection, Server, frame};

use super::stack::{
    endpoint, failure, get, order, orders, orders_with, place, report, timeouts, within,
};

/// A message without fields, in its frame.
const EMPTY: &[u8] = &[0; 5];

/// How a server says that it did not look at a stream.
type Refusal = fn(u32) -> Vec<u8>;

const REFUSALS: [Refusal; 2] = [
    |stream| frame::rst_stream(stream, frame::REFUSED_STREAM),
    |_| frame::goaway(0, frame::NO_ERROR),
];

async fn read(conn: &mut Connection) -> io::Result<u32> {
    let headers = conn.next_headers().await?;
    let headers = headers.ok_or(io::ErrorKind::UnexpectedEof)?;
    if !headers.end_stream {
        conn.read_body(headers.stream).await?;
    }
    Ok(headers.stream)
}

async fn answer_all(mut conn: Connection) -> io::Result<()> {
    conn.start_http2(&[]).await?;
    loop {
        let stream = read(&mut conn).await?;
        let head = [(":status", "200"), ("content-type", "application/grpc")];
        let mut answer = frame::headers(stream, &head, false);
        answer.extend(frame::data(stream, EMPTY, false));
        answer.extend(frame::trailers(stream, &[("grpc-status", "0")]));
        conn.write_all(&answer).await?;
    }
}

/// Refuses the first call, however that is done, and answers what comes on a new connection.
fn refusing(refusal: Refusal) -> Server {
    let script = Server::script().connection(move |mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = read(&mut conn).await?;
        conn.write_all(&refusal(stream)).await?;
        // So that the next call does not come here.
        conn.write_all(&frame::goaway(stream, frame::NO_ERROR))
            .await?;
        conn.drain().await;
        Ok(())
    });
    script.connection(answer_all).start().unwrap()
}

fn url(server: &Server) -> String {
    format!("http://{}", server.addr())
}

#[tokio::test]
async fn a_refused_call_is_sent_again_whatever_the_method() {
    for refusal in REFUSALS {
        let server = refusing(refusal);
        let placed = within(orders(url(&server)).place(place())).await.unwrap();
        let report = CallReport::of(placed.extensions()).unwrap();
        assert_eq!((report.attempts(), report.outcome()), (2, Outcome::Success));
        assert_eq!((server.requests(), server.connections()), (2, 2));

        let server = refusing(refusal);
        within(orders(url(&server)).get(get())).await.unwrap();
        assert_eq!(server.requests(), 2);

        // Of a stream, too, if nothing of an answer has come.
        let server = refusing(refusal);
        let watch = WatchRequest::default();
        let events = within(orders(url(&server)).watch(watch)).await.unwrap();
        let mut events = events.into_inner();
        assert!(within(events.message()).await.unwrap().is_some());
        assert!(within(events.message()).await.unwrap().is_none());
        assert_eq!(server.requests(), 2);
    }
}

fn basket(orders: usize) -> impl futures_util::Stream<Item = PlaceRequest> + Send + 'static {
    stream::iter((0..orders).map(|number| order(format!("order-{number}"))))
}

#[tokio::test]
async fn a_refused_stream_of_messages_is_sent_again_where_it_was_kept() {
    for refusal in REFUSALS {
        let server = refusing(refusal);
        within(orders(url(&server)).place_all(basket(3)))
            .await
            .unwrap();
        assert_eq!(server.requests(), 2);
    }
}

#[tokio::test]
async fn a_refused_stream_of_messages_that_was_not_kept_is_not_sent_again() {
    for refusal in REFUSALS {
        let server = refusing(refusal);
        let nothing_kept = ReplayLayer::with_limit(0);
        let mut orders = orders_with(endpoint(url(&server)), &timeouts(), nothing_kept);
        let status = within(orders.place_all(basket(3))).await.unwrap_err();
        // The caller may, who still has the messages.
        assert_eq!(failure(&status).delivery(), Delivery::Refused);
        assert!(failure(&status).outcome().is_retryable());
        let why = report(&status).not_retried();
        assert!(
            matches!(why, Some(NotRetried::BodyNotReplayable)),
            "{why:?}"
        );
        assert_eq!(server.requests(), 1);
    }
}

/// A server that means well and encodes its details badly; tonic panics at them.
#[tokio::test]
async fn details_that_are_no_base64_bring_nobody_down() {
    const STATUS: (&str, &str) = ("grpc-status", "0");
    const DETAILS: (&str, &str) = ("grpc-status-details-bin", "!!!");
    for message in [true, false] {
        let server = Server::start(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            let head = [(":status", "200"), ("content-type", "application/grpc")];
            loop {
                let stream = read(&mut conn).await?;
                let mut answer = Vec::new();
                if message {
                    answer.extend(frame::headers(stream, &head, false));
                    answer.extend(frame::data(stream, EMPTY, false));
                    answer.extend(frame::trailers(stream, &[STATUS, DETAILS]));
                } else {
                    let head = [head[0], head[1], STATUS, DETAILS];
                    answer.extend(frame::headers(stream, &head, true));
                }
                conn.write_all(&answer).await?;
            }
        });
        let server = server.unwrap();
        let placed = within(orders(url(&server)).place(place())).await;
        assert_eq!(placed.is_ok(), message, "{placed:?}");
        let watch = WatchRequest::default();
        let events = within(orders(url(&server)).watch(watch)).await.unwrap();
        let mut events = events.into_inner();
        if message {
            assert!(within(events.message()).await.unwrap().is_some());
        }
        assert!(within(events.message()).await.unwrap().is_none());
    }
}

/// Answers a call with a head and so many messages, and resets the stream when they are read.
async fn reset_an_answer(mut conn: Connection, messages: usize, reason: u32) -> io::Result<()> {
    conn.start_http2(&[]).await?;
    let stream = read(&mut conn).await?;
    let head = [(":status", "200"), ("content-type", "application/grpc")];
    let mut answer = frame::headers(stream, &head, false);
    for _ in 0..messages {
        answer.extend(frame::data(stream, EMPTY, false));
    }
    conn.write_all(&answer).await?;
    // The client has read all of it by then.
    conn.write_all(&frame::ping(*b"in order")).await?;
    loop {
        let frame = conn.read_frame().await?;
        let frame = frame.ok_or(io::ErrorKind::UnexpectedEof)?;
        if frame.kind == frame::PING && frame.flags & frame::ACK != 0 {
            break;
        }
    }
    conn.write_all(&frame::rst_stream(stream, reason)).await?;
    conn.drain().await;
    Ok(())
}

/// The trap: the code says that the server did not look at the stream, and it has answered it.
#[tokio::test]
async fn a_stream_that_is_refused_after_its_first_message_is_not_sent_again() {
    for reason in [frame::REFUSED_STREAM, frame::ENHANCE_YOUR_CALM] {
        let server = Server::start(move |conn| reset_an_answer(conn, 1, reason)).unwrap();
        let watch = WatchRequest::default();
        let events = within(orders(url(&server)).watch(watch)).await.unwrap();
        let mut events = events.into_inner();
        // A reset may overtake what has not been read.
        let mut message = within(events.message()).await;
        if matches!(message, Ok(Some(_))) {
            message = within(events.message()).await;
        }
        let status = message.unwrap_err();
        assert_eq!(status.code(), Code::Unknown);
        let failure = failure(&status);
        assert!(failure.outcome().is_unknown(), "{failure}");
        assert_eq!(failure.delivery(), Delivery::Answered);
        assert_eq!(server.requests(), 1);
    }
}

/// Nor does an order that was answered, if only with a head.
#[tokio::test]
async fn an_order_that_is_refused_after_the_head_of_its_answer_is_unknown_by_its_code_too() {
    for messages in [0, 1] {
        for reason in [frame::REFUSED_STREAM, frame::ENHANCE_YOUR_CALM] {
            let server = Server::start(move |conn| reset_an_answer(conn, messages, reason));
            let server = server.unwrap();
            let status = within(orders(url(&server)).place(place()))
                .await
                .unwrap_err();
            assert_eq!(status.code(), Code::Unknown);
            let failure = failure(&status);
            assert!(failure.outcome().is_unknown(), "{failure}");
            assert_eq!(failure.delivery(), Delivery::Answered);
            assert_eq!(server.requests(), 1);
        }
    }
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_is_bounded_all_the_same() {
    // A server that takes connections and never says a word.
    let server = Server::start(|mut conn| async move {
        conn.drain().await;
        Ok(())
    });
    let server = server.unwrap();
    let mut request = place();
    request.set_timeout(Duration::from_millis(200));
    let status = within(orders(url(&server)).place(request))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(!failure(&status).outcome().is_success());
}
