//! What callers of generated code are told of a call.

use std::{
    collections::VecDeque,
    error::Error,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tonic::{Code, Status};
use tower_layer::Layer;
use tower_outcome_core::{
    BoxError, CallReport, Delivery, Failure, GrpcStatusBody, GrpcStatusLayer, NotRetried, Outcome,
    Reason, Repeatable, SettledBy,
};
use tower_service::Service;

use crate::support::{permanent, retryable, unknown};

const OVERLOADED: Outcome = unknown(Reason::Overloaded);

/// A response body that is here already.
#[derive(Debug, Default)]
struct Frames(VecDeque<Result<Frame<Bytes>, BoxError>>);

/// A client that knows its answer.
struct Answering(Option<Result<Response<Frames>, BoxError>>);

// === impl Frames ===

impl Frames {
    fn new(frames: impl IntoIterator<Item = Frame<Bytes>>) -> Self {
        Self(frames.into_iter().map(Ok).collect())
    }

    fn failing(error: impl Into<BoxError>) -> Self {
        Self([Err(error.into())].into())
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.0.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let data = |frame: &Result<Frame<Bytes>, _>| {
            let data = frame.as_ref().ok()?.data_ref()?;
            Some(data.len() as u64)
        };
        SizeHint::with_exact(self.0.iter().filter_map(data).sum())
    }
}

// === impl Answering ===

impl Service<Request<()>> for Answering {
    type Response = Response<Frames>;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Response<Frames>, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        std::future::ready(self.0.take().expect("one call"))
    }
}

fn told(
    answer: Result<Response<Frames>, BoxError>,
) -> Result<Response<GrpcStatusBody<Frames>>, Status> {
    let mut service = GrpcStatusLayer::new().layer(Answering(Some(answer)));
    let call = pin!(service.call(Request::new(())));
    match call.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("nothing is left to wait for"),
    }
}

#[track_caller]
fn refused(answer: Result<Response<Frames>, BoxError>) -> Status {
    told(answer).expect_err("no success")
}

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        let value = HeaderValue::from_str(value).unwrap();
        (HeaderName::from_static(name), value)
    };
    fields.iter().map(field).collect()
}

fn report(outcome: Outcome) -> CallReport {
    CallReport::new(outcome, Delivery::Answered, Repeatable::No)
        .with_attempts(2, Duration::from_millis(30))
}

/// An answer, and what a layer below has found out about it.
fn answer(
    fields: &[(&'static str, &str)],
    frames: Frames,
    report: Option<CallReport>,
) -> Result<Response<Frames>, BoxError> {
    let mut response = Response::new(frames);
    *response.headers_mut() = headers(fields);
    if let Some(report) = report {
        response.extensions_mut().insert(report);
    }
    Ok(response)
}

#[track_caller]
fn failure(status: &Status) -> &Failure {
    Failure::of(status).expect("a failure in the status")
}

#[test]
fn a_status_in_the_head_keeps_what_it_had_and_says_what_became_of_the_call() {
    let fields = [
        ("grpc-status", "14"),
        ("grpc-message", "the book is%20closed"),
        ("grpc-status-details-bin", "AQID"),
        ("x-desk", "7"),
    ];
    let status = refused(answer(&fields, Frames::default(), Some(report(OVERLOADED))));
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.message(), "the book is closed");
    assert_eq!(status.details(), [1, 2, 3]);
    assert_eq!(status.metadata().get("x-desk").unwrap(), "7");
    let failure = failure(&status);
    assert_eq!(failure.outcome(), OVERLOADED);
    assert_eq!(failure.delivery(), Delivery::Answered);
    assert_eq!(failure.report().unwrap().attempts(), 2);
    assert!(failure.source_ref().is_none());
}

#[test]
fn a_status_in_trailers_before_any_message_has_the_metadata_of_both() {
    let trailers = headers(&[("grpc-status", "8"), ("x-bid", "1"), ("x-both", "trailer")]);
    let fields = [("x-desk", "7"), ("x-both", "head")];
    let frames = Frames::new([Frame::trailers(trailers)]);
    let status = refused(answer(&fields, frames, Some(report(OVERLOADED))));
    assert_eq!(status.code(), Code::ResourceExhausted);
    // As tonic has it, the head counts where both say something.
    for (name, value) in [("x-desk", "7"), ("x-bid", "1"), ("x-both", "head")] {
        assert_eq!(status.metadata().get(name).unwrap(), value);
    }
    assert_eq!(failure(&status).outcome(), OVERLOADED);
}

#[test]
fn an_answer_without_a_status_is_unavailable_or_unknown_as_http_has_it() {
    let found = Some(report(OVERLOADED));
    for (http, code) in [
        (503, Code::Unavailable),
        (404, Code::Unimplemented),
        (401, Code::Unauthenticated),
        (500, Code::Unknown),
        // Trailers, or nothing at all, where a status should be.
        (200, Code::Unknown),
    ] {
        let bare = [
            Frames::default(),
            Frames::new([Frame::trailers(headers(&[]))]),
        ];
        for frames in bare {
            let mut answer = answer(&[], frames, found.clone());
            *answer.as_mut().unwrap().status_mut() = http.try_into().unwrap();
            let status = refused(answer);
            assert_eq!(status.code(), code, "{http}");
            assert_eq!(failure(&status).outcome(), OVERLOADED);
        }
    }
}

#[test]
fn a_success_and_its_report_pass_untouched() {
    let message = || Frames::new([Frame::data(Bytes::from_static(b"order"))]);
    for found in [None, Some(report(Outcome::Success))] {
        let attempts = found.as_ref().map(CallReport::attempts);
        let response = told(answer(&[], message(), found)).unwrap();
        let kept = CallReport::of(response.extensions()).map(CallReport::attempts);
        assert_eq!(kept, attempts);
        assert_eq!(response.body().size_hint().exact(), Some(5));
    }
}

/// Such as in a stack without Retry.
#[test]
fn a_status_in_a_head_that_nobody_has_looked_at_says_what_became_of_the_call() {
    for (code, outcome) in [
        (Code::Unavailable, OVERLOADED),
        (Code::InvalidArgument, permanent(Reason::Rejected)),
        (Code::Unauthenticated, permanent(Reason::AuthRejected)),
    ] {
        let number = (code as u32).to_string();
        let fields = [("grpc-status", number.as_str()), ("x-desk", "7")];
        let status = refused(answer(&fields, Frames::default(), None));
        assert_eq!(status.code(), code);
        assert_eq!(status.metadata().get("x-desk").unwrap(), "7");
        let failure = failure(&status);
        assert_eq!(
            (failure.outcome(), failure.delivery()),
            (outcome, Delivery::Answered)
        );
        assert_eq!(failure.report().unwrap().attempts(), 1);
    }
    let mut bare = answer(&[], Frames::default(), None);
    *bare.as_mut().unwrap().status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let status = refused(bare);
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(failure(&status).outcome(), OVERLOADED);
}

#[test]
fn a_message_that_was_looked_at_is_handed_on() {
    let trailers = Frame::trailers(headers(&[("grpc-status", "0")]));
    let frames = Frames::new([Frame::data(Bytes::from_static(b"order")), trailers]);
    let rejected = Some(report(permanent(Reason::Rejected)));
    let mut body = told(answer(&[], frames, rejected)).unwrap().into_body();
    assert_eq!(body.size_hint().exact(), Some(5));
    let mut next = || match Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(frame) => frame.map(Result::unwrap),
        Poll::Pending => panic!("nothing is left to wait for"),
    };
    assert_eq!(next().unwrap().into_data().unwrap(), "order");
    assert_eq!(next().unwrap().into_trailers().unwrap()["grpc-status"], "0");
    assert!(next().is_none() && body.is_end_stream());
}

#[test]
fn an_answer_that_was_read_whole_and_has_failed_is_no_success_for_its_caller() {
    let message = || Frame::data(Bytes::from_static(b"order"));
    let busy = Frame::trailers(headers(&[("grpc-status", "14")]));
    for (frames, code) in [
        (Frames::new([message(), busy]), Code::Unavailable),
        // Its status is lost.
        (Frames::new([message()]), Code::Unknown),
    ] {
        let mut body = told(answer(&[], frames, Some(report(OVERLOADED))))
            .unwrap()
            .into_body();
        let mut next =
            || match Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(frame) => frame,
                Poll::Pending => panic!("nothing is left to wait for"),
            };
        assert!(next().unwrap().unwrap().is_data());
        let status = next().unwrap().unwrap_err();
        assert_eq!(status.code(), code);
        assert_eq!(failure(&status).outcome(), OVERLOADED);
        assert!(next().is_none());
    }
}

#[test]
fn a_body_that_fails_before_any_status_keeps_what_was_known() {
    let frames = Frames::failing("the connection broke");
    let status = refused(answer(&[], frames, Some(report(OVERLOADED))));
    let failure = failure(&status);
    assert_eq!(
        (failure.outcome(), failure.delivery()),
        (OVERLOADED, Delivery::Answered)
    );
    assert_eq!(failure.report().unwrap().attempts(), 2);
    assert_eq!(
        failure.source_ref().unwrap().to_string(),
        "the connection broke"
    );
}

/// Frame by frame, until there is no more.
fn next(body: &mut GrpcStatusBody<Frames>) -> Option<Result<Frame<Bytes>, Status>> {
    let polled = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(frame) => frame,
        Poll::Pending => panic!("nothing is left to wait for"),
    }
}

#[test]
fn a_status_after_a_message_says_what_became_of_the_call() {
    for (code, outcome) in [
        ("14", OVERLOADED),
        ("3", permanent(Reason::Rejected)),
        ("99", unknown(Reason::Unrecognized)),
    ] {
        let trailers = headers(&[("grpc-status", code), ("x-desk", "7")]);
        let message = Frame::data(Bytes::from_static(b"order"));
        let frames = Frames::new([message, Frame::trailers(trailers)]);
        let after_retry = Some(report(Outcome::Success));
        let mut body = told(answer(&[], frames, after_retry)).unwrap().into_body();
        assert!(next(&mut body).unwrap().unwrap().is_data());
        let status = next(&mut body).unwrap().unwrap_err();
        assert_eq!(status.metadata().get("x-desk").unwrap(), "7");
        let failure = failure(&status);
        assert_eq!(
            (failure.outcome(), failure.delivery()),
            (outcome, Delivery::Answered)
        );
        assert_eq!(failure.report().unwrap().attempts(), 2);
        assert!(next(&mut body).is_none());
    }
}

/// It looks whole to whoever counts messages.
#[test]
fn a_record_that_was_asked_for_needs_no_status() {
    let settled = report(Outcome::Success).with_settled_by(Some(SettledBy::Inquiry));
    let frames = Frames::new([Frame::data(Bytes::from_static(b"order"))]);
    let mut body = told(answer(&[], frames, Some(settled)))
        .unwrap()
        .into_body();
    assert!(next(&mut body).unwrap().unwrap().is_data());
    assert!(next(&mut body).is_none());
}

#[test]
fn an_answer_that_ends_without_a_status_is_lost() {
    let outcome = unknown(Reason::ResponseBody);
    for found in [None, Some(report(Outcome::Success))] {
        for messages in [0, 2] {
            for trailers in [None, Some(headers(&[("x-desk", "7")]))] {
                let message = |_| Frame::data(Bytes::from_static(b"order"));
                let end = trailers.map(Frame::trailers);
                let frames = Frames::new((0..messages).map(message).chain(end));
                let mut body = told(answer(&[], frames, found.clone()))
                    .unwrap()
                    .into_body();
                for _ in 0..messages {
                    assert!(next(&mut body).unwrap().unwrap().is_data());
                }
                // Or nobody would ask what is left to be told.
                assert!(!body.is_end_stream());
                let status = next(&mut body).unwrap().unwrap_err();
                assert_eq!(status.code(), Code::Unknown);
                let failure = failure(&status);
                assert_eq!(
                    (failure.outcome(), failure.delivery()),
                    (outcome, Delivery::Answered)
                );
                let attempts = found.as_ref().map_or(1, CallReport::attempts);
                assert_eq!(failure.report().unwrap().attempts(), attempts);
                assert!(next(&mut body).is_none() && body.is_end_stream());
            }
        }
    }
}

#[test]
fn a_success_in_the_head_ends_without_any_trailers() {
    for found in [None, Some(report(Outcome::Success))] {
        let fields = [("grpc-status", "0")];
        let response = told(answer(&fields, Frames::default(), found)).unwrap();
        let mut body = response.into_body();
        assert!(body.is_end_stream());
        assert!(next(&mut body).is_none());
    }
}

/// An error of code `OK` is a success to many a caller.
#[test]
fn two_statuses_that_contradict_each_other_are_an_unknown_status_wherever_they_are() {
    let outcome = unknown(Reason::ServerError);
    for pair in [["0", "14"], ["14", "0"], ["3", "13"]] {
        let fields = pair.map(|status| ("grpc-status", status));
        let twice = || {
            let mut twice = HeaderMap::new();
            for (name, value) in fields {
                twice.append(name, value.parse().unwrap());
            }
            twice
        };
        let message = || Frame::data(Bytes::from_static(b"order"));
        let mut in_head = answer(&[], Frames::default(), Some(report(outcome)));
        *in_head.as_mut().unwrap().headers_mut() = twice();
        let before = Frames::new([Frame::trailers(twice())]);
        let before = answer(&[], before, Some(report(outcome)));
        for told in [refused(in_head), refused(before)] {
            assert_eq!(told.code(), Code::Unknown, "{pair:?}");
            assert_eq!(failure(&told).outcome(), outcome);
        }
        for found in [None, Some(report(Outcome::Success)), Some(report(outcome))] {
            let frames = Frames::new([message(), Frame::trailers(twice())]);
            let mut body = told(answer(&[], frames, found)).unwrap().into_body();
            assert!(next(&mut body).unwrap().unwrap().is_data());
            let told = next(&mut body).unwrap().unwrap_err();
            assert_eq!(told.code(), Code::Unknown, "{pair:?}");
            assert_eq!(failure(&told).outcome(), outcome);
        }
    }
}

/// Who has called it one has its own reasons, and they are in the report.
#[test]
fn a_success_that_a_layer_below_has_called_a_failure_is_no_error_of_code_ok() {
    let found = || Some(report(permanent(Reason::Rejected)));
    let ok = [("grpc-status", "0")];
    let response = told(answer(&ok, Frames::default(), found())).unwrap();
    assert_eq!(response.headers()["grpc-status"], "0");
    let kept = CallReport::of(response.extensions()).unwrap();
    assert_eq!(kept.outcome(), permanent(Reason::Rejected));
    assert!(response.body().is_end_stream());

    let frames = Frames::new([Frame::trailers(headers(&ok))]);
    let mut body = told(answer(&[], frames, found())).unwrap().into_body();
    let trailers = next(&mut body).unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
    assert!(next(&mut body).is_none());
}

#[test]
fn the_trailers_of_a_success_pass_untouched() {
    let trailers = headers(&[("grpc-status", "0"), ("x-desk", "7")]);
    let frames = Frames::new([Frame::trailers(trailers.clone())]);
    let mut body = told(answer(&[], frames, None)).unwrap().into_body();
    let passed = next(&mut body).unwrap().unwrap();
    assert_eq!(passed.into_trailers().unwrap(), trailers);
}

#[test]
fn a_stream_that_breaks_off_says_what_became_of_the_call() {
    let outcome = unknown(Reason::TimedOut);
    let late = Failure::new(outcome, Delivery::Answered, "late");
    let response = told(answer(&[], Frames::failing(late), None)).unwrap();
    let mut body = response.into_body();
    let status = next(&mut body).unwrap().unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(failure(&status).outcome(), outcome);
}

/// tonic itself panics at these.
#[test]
fn details_that_are_no_base64_are_left_out() {
    let fields = [("grpc-status", "14"), ("grpc-status-details-bin", "%%%")];
    let status = refused(answer(&fields, Frames::default(), Some(report(OVERLOADED))));
    assert_eq!(
        (status.code(), status.details()),
        (Code::Unavailable, &[][..])
    );
}

#[test]
fn details_that_are_no_base64_are_left_out_of_a_success_too() {
    const DETAILS: &str = "grpc-status-details-bin";
    for found in [
        None,
        Some(report(Outcome::Success)),
        Some(report(OVERLOADED)),
    ] {
        for (details, kept) in [("!!!", false), ("%%%", false), ("AQID", true)] {
            let fields = [("grpc-status", "0"), (DETAILS, details)];
            // A failure that was found in a head without messages is told as one.
            if found
                .as_ref()
                .is_none_or(|found| found.outcome().is_success())
            {
                let response = told(answer(&fields, Frames::default(), found.clone())).unwrap();
                assert_eq!(response.headers().contains_key(DETAILS), kept);
                let status = Status::from_header_map(response.headers()).unwrap();
                assert_eq!(status.code(), Code::Ok);
            }
            let message = Frame::data(Bytes::from_static(b"order"));
            let trailers = Frame::trailers(headers(&fields));
            let frames = Frames::new([message, trailers]);
            let mut body = told(answer(&[], frames, found.clone()))
                .unwrap()
                .into_body();
            assert!(next(&mut body).unwrap().unwrap().is_data());
            let trailers = next(&mut body).unwrap().unwrap().into_trailers().unwrap();
            assert_eq!(trailers.contains_key(DETAILS), kept);
            assert_eq!(trailers["grpc-status"], "0");
        }
    }
}

/// tonic looks at the first, and who knows which one the next version takes.
#[test]
fn details_of_which_one_is_no_base64_are_left_out() {
    let mut answer = answer(&[("grpc-status", "0")], Frames::default(), None);
    for details in ["AQID", "!!!"] {
        let headers = answer.as_mut().unwrap().headers_mut();
        headers.append("grpc-status-details-bin", details.parse().unwrap());
    }
    let response = told(answer).unwrap();
    assert!(!response.headers().contains_key("grpc-status-details-bin"));
}

#[test]
fn what_failed_on_this_side_has_a_code_that_says_no_more_than_is_known() {
    for (outcome, delivery, code) in [
        (
            unknown(Reason::TimedOut),
            Delivery::MaybeSent,
            Code::DeadlineExceeded,
        ),
        (
            retryable(Reason::TimedOut),
            Delivery::NotSent,
            Code::DeadlineExceeded,
        ),
        (
            unknown(Reason::Transport),
            Delivery::MaybeSent,
            Code::Unknown,
        ),
        (
            retryable(Reason::Transport),
            Delivery::NotSent,
            Code::Unavailable,
        ),
        (
            retryable(Reason::Transport),
            Delivery::Refused,
            Code::Unavailable,
        ),
        (
            retryable(Reason::LocalLimit),
            Delivery::NotSent,
            Code::ResourceExhausted,
        ),
        (
            permanent(Reason::InvalidRequest),
            Delivery::NotSent,
            Code::Internal,
        ),
        (
            permanent(Reason::WrongOrder),
            Delivery::NotSent,
            Code::Internal,
        ),
        (
            permanent(Reason::AuthRejected),
            Delivery::NotSent,
            Code::Unauthenticated,
        ),
        (
            permanent(Reason::Unrecognized),
            Delivery::MaybeSent,
            Code::Unknown,
        ),
    ] {
        let error = Failure::new(outcome, delivery, "the cause");
        let status = refused(Err(error.into()));
        assert_eq!(status.code(), code, "{outcome}");
        let failure = failure(&status);
        assert_eq!((failure.outcome(), failure.delivery()), (outcome, delivery));
        assert_eq!(failure.source().unwrap().to_string(), "the cause");
        assert_eq!(status.message(), failure.to_string());
    }
}

#[test]
fn a_call_that_was_not_started_for_want_of_time_is_late() {
    let outcome = retryable(Reason::LocalLimit);
    let report = CallReport::new(outcome, Delivery::NotSent, Repeatable::No)
        .with_not_retried(Some(NotRetried::Deadline));
    let error = Failure::new(outcome, Delivery::NotSent, "late").with_report(report);
    assert_eq!(refused(Err(error.into())).code(), Code::DeadlineExceeded);
}

#[test]
fn a_status_that_a_layer_below_has_made_keeps_its_code_and_metadata() {
    let mut below = Status::aborted("not now");
    below.metadata_mut().insert("x-desk", "7".parse().unwrap());
    let outcome = permanent(Reason::Rejected);
    let wrapped = Failure::new(outcome, Delivery::NotSent, below.clone());
    for (error, has_failure) in [(below.into(), false), (wrapped.into(), true)] {
        let status = refused(Err(error));
        assert_eq!(status.code(), Code::Aborted);
        assert_eq!(status.metadata().get("x-desk").unwrap(), "7");
        assert_eq!(Failure::of(&status).is_some(), has_failure);
    }
}

/// Whoever sends again what is unavailable or was aborted would do it twice.
#[test]
fn a_status_that_a_layer_below_has_made_of_an_unknown_outcome_says_no_more_than_is_known() {
    for (reason, code) in [
        (Reason::Transport, Code::Unknown),
        (Reason::Overloaded, Code::Unknown),
        (Reason::TimedOut, Code::DeadlineExceeded),
    ] {
        for made in [Code::Unavailable, Code::ResourceExhausted, Code::Aborted] {
            let mut below = Status::new(made, "not now");
            below.metadata_mut().insert("x-desk", "7".parse().unwrap());
            let error = Failure::new(unknown(reason), Delivery::MaybeSent, below);
            let status = refused(Err(error.into()));
            assert_eq!((status.code(), status.message()), (code, "not now"));
            assert_eq!(status.metadata().get("x-desk").unwrap(), "7");
            assert_eq!(failure(&status).outcome(), unknown(reason));
        }
    }
}

/// What the server has said stays what the server has said, however often it is wrapped.
#[test]
fn a_status_of_the_server_keeps_its_code_through_another_layer() {
    let fields = [("grpc-status", "14")];
    let server = refused(answer(&fields, Frames::default(), Some(report(OVERLOADED))));
    let status = refused(Err(
        Failure::new(OVERLOADED, Delivery::Answered, server).into()
    ));
    assert_eq!(status.code(), Code::Unavailable);
}

/// tonic makes one of a stream that was reset, and its code is a guess.
#[test]
fn a_status_made_of_a_transport_error_is_no_word_of_the_server() {
    for (outcome, code) in [
        (unknown(Reason::ResponseBody), Code::Unknown),
        (retryable(Reason::Transport), Code::Unavailable),
        (permanent(Reason::Unrecognized), Code::Unknown),
    ] {
        for guess in [Code::Unavailable, Code::ResourceExhausted, Code::Cancelled] {
            let mut reset = Status::new(guess, "stream reset");
            reset.set_source(std::sync::Arc::new(std::io::Error::other("reset")));
            let broken = Failure::new(outcome, Delivery::Answered, reset);
            let response = told(answer(&[], Frames::failing(broken), None)).unwrap();
            let status = next(&mut response.into_body()).unwrap().unwrap_err();
            assert_eq!(status.code(), code, "{guess:?}");
            assert_eq!(failure(&status).outcome(), outcome);
        }
    }
}

#[test]
fn an_error_that_nobody_has_looked_at_is_what_tonic_makes_of_it() {
    let status = refused(Err("strange".into()));
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unknown, "strange")
    );
    assert!(Failure::of(&status).is_none());
}
