//! Answers whose body decides.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use tower::{Layer, ServiceExt};
use tower_outcome_core::{
    Answer, BoxError, CallReport, Delivery, Failure, GrpcClassifier, HttpClassifier, Judged,
    Outcome, Reason,
};
use tower_test::mock;

use crate::support::*;

/// An API that says in the body of a 200 what became of an order.
fn venue() -> HttpClassifier {
    HttpClassifier::builder()
        .body_rule(|seen: Judged<'_>| match seen.body {
            b"rejected" => Some(Answer::Rejected {
                reason: Reason::Rejected,
            }),
            b"throttled" => Some(Answer::NotApplied {
                reason: Reason::RateLimited,
                after: None,
            }),
            b"unknown" => Some(Answer::Unclear {
                reason: Reason::ServerError,
                after: None,
                transient: true,
            }),
            b"duplicate" => Some(Answer::Duplicate),
            _ => None,
        })
        .body_limit(100)
        .build()
        .unwrap()
}

fn said(text: &'static str) -> Res {
    Response::new(Full::from(text))
}

async fn text(result: Outcomes) -> String {
    let body = result.unwrap().into_body().collect().await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

async fn one(request: Req, answer: Res) -> Outcomes {
    let layer = steady().classifier(venue()).build().unwrap();
    let (service, mut server) = pair(&layer);
    let call = start(&service, request);
    server.respond(answer).await;
    finish(call).await
}

#[tokio::test(start_paused = true)]
async fn a_200_with_a_refusal_inside_is_not_a_success() {
    let result = one(post(), said("rejected")).await;
    assert!(report(&result).outcome().is_permanent());
    assert_eq!(text(result).await, "rejected", "and the caller sees it all");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_no_body_is_not_looked_into() {
    let strict = HttpClassifier::builder()
        .body_rule(|seen: Judged<'_>| {
            (!seen.body.starts_with(b"ok")).then_some(Answer::Rejected {
                reason: Reason::Rejected,
            })
        })
        .build()
        .unwrap();
    let layer = steady().classifier(strict).build().unwrap();
    let mut head = get();
    *head.method_mut() = http::Method::HEAD;
    for (request, code) in [(head, 200), (post(), 204)] {
        let (service, mut server) = pair(&layer);
        let call = start(&service, request);
        let answer = Response::builder().status(code).body(Full::default());
        server.respond(answer.unwrap()).await;
        assert_eq!(
            CallReport::outcome_of(&finish(call).await),
            Outcome::Success
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_statuses_that_contradict_each_other_are_no_success() {
    let mut twice = grpc(vec![], Some(0));
    twice.headers_mut().append("grpc-status", 14.into());
    let (waits, outcome) = grpc_attempts(WRITE, vec![twice]).await;
    assert_eq!(waits, [0]);
    assert!(outcome.is_unknown());
}

#[tokio::test(start_paused = true)]
async fn an_error_status_that_nobody_looked_at_is_unknown() {
    let result: Result<_, BoxError> = Ok(status(502));
    assert!(CallReport::outcome_of(&result).is_unknown());
}

#[tokio::test(start_paused = true)]
async fn a_200_with_an_unclear_answer_inside_is_unknown_for_an_order() {
    let result = one(post(), said("unknown")).await;
    assert!(report(&result).outcome().is_unknown());
    assert_eq!(text(result).await, "unknown");
}

#[tokio::test(start_paused = true)]
async fn a_200_with_a_confirmation_inside_is_a_success() {
    let result = one(post(), said("filled at 17")).await;
    assert_eq!(CallReport::outcome_of(&result), Outcome::Success);
    assert_eq!(text(result).await, "filled at 17");
}

#[tokio::test(start_paused = true)]
async fn a_throttled_order_inside_a_200_is_sent_again() {
    let layer = steady().classifier(venue()).build().unwrap();
    let (service, mut server) = pair(&layer);
    let call = start(&service, post());
    server.respond(said("throttled")).await;
    server.respond(said("filled")).await;
    let result = finish(call).await;
    assert_eq!(report(&result).attempts(), 2);
    assert_eq!(text(result).await, "filled");
}

#[tokio::test(start_paused = true)]
async fn an_answer_too_long_to_look_at_is_unknown_for_an_order() {
    let long = "x".repeat(101);
    let answer = Response::new(Full::from(long.clone()));
    let result = one(post(), answer).await;
    assert!(report(&result).outcome().is_unknown());
    assert_eq!(text(result).await, long);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_the_callers_mistake_at_first_and_evidence_later() {
    let result = one(keyed_post(), said("duplicate")).await;
    assert_eq!(
        report(&result).outcome(),
        Outcome::Permanent {
            reason: Reason::Duplicate
        }
    );
    let layer = steady().classifier(venue()).build().unwrap();
    let (service, mut server) = pair(&layer);
    let call = start(&service, keyed_post());
    server.fail(reset()).await;
    server.respond(said("duplicate")).await;
    assert_eq!(
        report(&finish(call).await).outcome(),
        Outcome::Unknown {
            reason: Reason::Duplicate
        }
    );
}

/// A body that fails after its first frame.
struct Cut(Option<Bytes>);

impl Body for Cut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(match self.0.take() {
            Some(bytes) => Ok(Frame::data(bytes)),
            None => Err(reset()),
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_short_after_a_200_is_unknown_for_an_order() {
    for (request, unknown) in [(post(), true), (get(), false)] {
        let (mock, mut handle) = mock::pair::<Req, Response<Cut>>();
        let service = steady().build().unwrap().layer(mock);
        let call = tokio::spawn(service.oneshot(request));
        let (_, send) = handle.next_request().await.unwrap();
        send.send_response(Response::new(Cut(Some(Bytes::from_static(b"fil")))));
        let mut body = call.await.unwrap().unwrap().into_body();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "fil"
        );
        let error = body.frame().await.unwrap().unwrap_err();
        let failure = Failure::of(&*error).unwrap();
        assert_eq!(failure.outcome().is_unknown(), unknown);
        assert_eq!(failure.outcome().is_retryable(), !unknown);
        assert_eq!(failure.delivery(), Delivery::Answered);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_short_while_a_rule_looks_at_it_is_retried_where_that_is_harmless() {
    for (request, attempts) in [(post(), 1), (get(), 2)] {
        let (mock, mut handle) = mock::pair::<Req, Response<Cut>>();
        let layer = steady()
            .classifier(venue())
            .max_attempts(2)
            .build()
            .unwrap();
        let call = tokio::spawn(layer.layer(mock).oneshot(request));
        for _ in 0..attempts {
            let (_, send) = handle.next_request().await.unwrap();
            send.send_response(Response::new(Cut(Some(Bytes::from_static(b"fil")))));
        }
        let response = call.await.unwrap().unwrap();
        let report = CallReport::of(response.extensions()).unwrap();
        assert_eq!(report.attempts(), attempts);
        // The frames that were read, and then the error, reach the caller.
        let mut body = response.into_body();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "fil"
        );
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(
            Failure::of(&*error).unwrap().outcome(),
            report_outcome(attempts)
        );
    }
}

fn report_outcome(attempts: u32) -> Outcome {
    let reason = Reason::ResponseBody;
    match attempts {
        1 => Outcome::Unknown { reason },
        _ => Outcome::Retryable {
            reason,
            after: None,
        },
    }
}

type GrpcBody = StreamBody<
    futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, std::convert::Infallible>>>,
>;

fn grpc(frames: Vec<Frame<Bytes>>, head_status: Option<u32>) -> Response<GrpcBody> {
    let frames: Vec<_> = frames.into_iter().map(Ok).collect();
    let mut response = Response::new(StreamBody::new(futures_util::stream::iter(frames)));
    if let Some(code) = head_status {
        response.headers_mut().insert("grpc-status", code.into());
    }
    response
}

fn trailers(code: u32, pushback: Option<&'static str>) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    if let Some(pushback) = pushback {
        trailers.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    }
    Frame::trailers(trailers)
}

fn grpc_call(path: &str) -> Req {
    Request::post(format!("http://venue.test{path}"))
        .header("content-type", "application/grpc")
        .body(Full::from("\0\0\0\0\0"))
        .unwrap()
}

const READ: &str = "/venue.Orders/Get";
const WRITE: &str = "/venue.Orders/Place";

/// Runs one call against these answers and returns how many of them were asked for, with the waits.
async fn grpc_attempts(path: &str, answers: Vec<Response<GrpcBody>>) -> (Vec<u128>, Outcome) {
    let classifier = GrpcClassifier::builder()
        .repeatable([READ])
        .unary([WRITE])
        .build()
        .unwrap();
    let (mock, mut handle) = mock::pair::<Req, Response<GrpcBody>>();
    let service = steady().classifier(classifier).build().unwrap().layer(mock);
    let call = tokio::spawn(service.oneshot(grpc_call(path)));
    let mut answers = answers.into_iter();
    let mut waits = Vec::new();
    loop {
        let start = tokio::time::Instant::now();
        let Some((_, send)) = handle.next_request().await else {
            break;
        };
        waits.push(start.elapsed().as_millis());
        send.send_response(answers.next().expect("an attempt too many"));
    }
    let result = call.await.unwrap();
    (waits, CallReport::outcome_of(&result))
}

#[tokio::test(start_paused = true)]
async fn unavailable_in_a_trailers_only_answer_is_retried_for_a_repeatable_method_alone() {
    let unavailable = || grpc(vec![], Some(14));
    let ok = || {
        grpc(
            vec![Frame::data(Bytes::from_static(b"m")), trailers(0, None)],
            None,
        )
    };
    let (waits, outcome) = grpc_attempts(READ, vec![unavailable(), ok()]).await;
    assert_eq!((waits, outcome), (vec![0, 50], Outcome::Success));
    let (waits, outcome) = grpc_attempts(WRITE, vec![unavailable()]).await;
    assert_eq!(waits, [0]);
    assert!(outcome.is_unknown());
}

#[tokio::test(start_paused = true)]
async fn a_status_in_trailers_before_any_message_is_seen() {
    let unavailable = || grpc(vec![trailers(14, None)], None);
    let ok = || grpc(vec![trailers(0, None)], None);
    let (waits, outcome) = grpc_attempts(READ, vec![unavailable(), ok()]).await;
    assert_eq!((waits, outcome), (vec![0, 50], Outcome::Success));
    let (waits, outcome) = grpc_attempts(WRITE, vec![unavailable()]).await;
    assert_eq!(waits, [0]);
    assert!(outcome.is_unknown());
}

#[tokio::test(start_paused = true)]
async fn a_status_after_the_first_message_is_left_to_the_caller() {
    let late = grpc(
        vec![Frame::data(Bytes::from_static(b"m")), trailers(14, None)],
        None,
    );
    let (waits, outcome) = grpc_attempts(READ, vec![late]).await;
    assert_eq!((waits, outcome), (vec![0], Outcome::Success));
}

#[tokio::test(start_paused = true)]
async fn pushback_is_the_wait_and_anything_else_in_it_forbids_a_retry() {
    let pushed = |text| grpc(vec![trailers(14, Some(text))], None);
    let ok = || grpc(vec![trailers(0, None)], None);
    let (waits, _) = grpc_attempts(READ, vec![pushed("10"), ok()]).await;
    assert_eq!(waits, [0, 10], "shorter than the backoff");
    for stop in ["-1", "soon", ""] {
        let (waits, outcome) = grpc_attempts(READ, vec![pushed(stop)]).await;
        assert_eq!(waits, [0], "{stop:?}");
        assert!(outcome.is_permanent());
    }
}
