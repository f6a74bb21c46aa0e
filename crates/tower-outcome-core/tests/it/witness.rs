//! What the witness above a client makes of a failed attempt.

use std::{
    error::Error,
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Body, Frame};
use tokio_test::{assert_pending, assert_ready, assert_ready_ok, task};
use tower_outcome_core::{
    BoxError, Delivery, Failure, HttpClassifier, Phase, Reason, RequestBodyError, WitnessBody,
    WitnessLayer, Witnessed,
    witness::{LastWords, Witness, give_up},
};
use tower_test::mock::{self, Handle, Mock, SendResponse, Spawn};

use crate::{
    support::*,
    witness_body::{Scripted, Step},
};

type Sent = Request<WitnessBody<Scripted>>;
type Client = Mock<Sent, Response<()>>;

/// The witness above a client that does what the test says.
struct Pair {
    service: Spawn<Witness<Client>>,
    client: Handle<Sent, Response<()>>,
}

// === impl Pair ===

impl Pair {
    fn new(layer: WitnessLayer) -> Self {
        let (service, client) = mock::spawn_layer(layer);
        Self { service, client }
    }

    /// Sends the request, has the client take so many frames, and fails the attempt.
    fn fail(mut self, request: Request<Scripted>, frames: usize, error: BoxError) -> Failure {
        assert_ready_ok!(self.service.poll_ready());
        let mut call = task::spawn(self.service.call(request));
        assert_pending!(call.poll());
        let (mut sent, send) = self.received();
        for _ in 0..frames {
            let _ = take(&mut sent);
        }
        send.send_error(error);
        let error = assert_ready!(call.poll()).unwrap_err();
        *error.downcast::<Failure>().unwrap()
    }

    fn received(&mut self) -> (Sent, SendResponse<Response<()>>) {
        let mut request = task::spawn(self.client.next_request());
        assert_ready!(request.poll()).unwrap()
    }
}

fn take(request: &mut Sent) -> Option<Result<Frame<Bytes>, BoxError>> {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(request.body_mut()).poll_frame(&mut cx) {
        Poll::Ready(frame) => frame,
        Poll::Pending => panic!("a scripted body without a wait"),
    }
}

#[test]
fn a_client_that_goes_on_after_the_failure_gets_no_more_of_the_body() {
    let mut pair = Pair::new(WitnessLayer::new());
    assert_ready_ok!(pair.service.poll_ready());
    let mut call = task::spawn(pair.service.call(order(seven())));
    assert_pending!(call.poll());
    let (mut sent, send) = pair.received();
    assert!(take(&mut sent).is_some_and(|frame| frame.is_ok()));
    send.send_error(Stranger);
    assert_unsent(
        &assert_ready!(call.poll()).unwrap_err().downcast().unwrap(),
        "one frame of three",
    );
    let error = take(&mut sent).unwrap().unwrap_err();
    assert!(
        RequestBodyError::of(&*error).is_some(),
        "what was told stays true"
    );
}

fn order(body: Scripted) -> Request<Scripted> {
    Request::post("https://venue.test/orders")
        .body(body)
        .unwrap()
}

/// Taken with the third frame.
fn seven() -> Scripted {
    Scripted::new([Step::Data("buy"), Step::Data(" "), Step::Data("100")]).exact(7)
}

fn failed(request: Request<Scripted>, frames: usize) -> Failure {
    Pair::new(WitnessLayer::new()).fail(request, frames, Stranger.into())
}

fn assert_unsent(failure: &Failure, what: &str) {
    assert_eq!(failure.delivery(), Delivery::NotSent, "{what}");
    assert_eq!(failure.outcome(), retryable(Reason::Transport), "{what}");
    assert_eq!(failure.proven_by(), Some(Witnessed::Body), "{what}");
    assert!(failure.source_ref().unwrap().is::<Stranger>(), "{what}");
}

fn assert_maybe_sent(failure: &Failure, what: &str) {
    assert_eq!(failure.delivery(), Delivery::MaybeSent, "{what}");
    assert_eq!(failure.outcome(), unknown(Reason::Unrecognized), "{what}");
    assert_eq!(failure.proven_by(), None, "{what}");
    assert!(failure.source_ref().unwrap().is::<Stranger>(), "{what}");
}

#[test]
fn a_body_that_was_not_taken_to_its_end_was_not_sent() {
    for frames in 0..3 {
        assert_unsent(&failed(order(seven()), frames), &frames.to_string());
    }
    assert_maybe_sent(&failed(order(seven()), 3), "all of it");
}

#[test]
fn a_request_without_a_body_may_have_been_sent_at_any_time() {
    let empty = || Scripted::new([]).telling_end();
    assert_maybe_sent(&failed(order(empty()), 0), "empty");
    let mut get = order(Scripted::new([Step::Data("7")]));
    *get.method_mut() = http::Method::GET;
    assert_maybe_sent(&failed(get, 0), "GET of unknown length");
    let mut old = order(Scripted::new([Step::Data("7")]));
    *old.version_mut() = Version::HTTP_10;
    assert_maybe_sent(&failed(old, 0), "HTTP/1.0 of unknown length");
}

/// Requests that a server acts on while they arrive.
fn acted_on_in_parts() -> Vec<(&'static str, WitnessLayer, Request<Scripted>)> {
    let with = |name: &'static str, value: &'static str| {
        let mut request = order(seven());
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    let mut connect = order(seven());
    *connect.method_mut() = http::Method::CONNECT;
    let plain = WitnessLayer::new();
    vec![
        ("grpc", plain, with("content-type", "application/grpc")),
        (
            "grpc+proto",
            plain,
            with("content-type", "application/grpc+proto"),
        ),
        (
            "grpc-web",
            plain,
            with("content-type", "Application/gRPC-Web"),
        ),
        ("upgrade", plain, with("upgrade", "websocket")),
        ("connect", plain, connect),
        ("declared", plain.acts_on_parts(), order(seven())),
    ]
}

#[test]
fn a_part_may_have_been_acted_on_where_servers_do_that() {
    for (name, layer, request) in acted_on_in_parts() {
        let failure = Pair::new(layer).fail(request, 1, Stranger.into());
        assert_maybe_sent(&failure, name);
    }
}

#[test]
fn a_head_alone_may_have_been_acted_on_where_servers_do_that() {
    for (name, layer, request) in acted_on_in_parts() {
        let failure = Pair::new(layer).fail(request, 0, Stranger.into());
        // gRPC acts on messages, and none was taken.
        if name.starts_with("grpc") {
            assert_unsent(&failure, name);
        } else {
            assert_maybe_sent(&failure, name);
        }
    }
}

#[test]
fn another_content_type_is_not_grpc() {
    for value in ["application/json", "application/grp", "text/plain", ""] {
        let mut request = order(seven());
        let value = value.parse().unwrap();
        request.headers_mut().insert("content-type", value);
        assert_unsent(&failed(request, 1), "one frame");
    }
}

// ## An attempt that is dropped half-way

/// Sends the request, has the client take so many frames, and drops the attempt.
fn dropped(layer: WitnessLayer, request: Request<Scripted>, frames: usize) -> (LastWords, Sent) {
    let mut pair = Pair::new(layer);
    assert_ready_ok!(pair.service.poll_ready());
    let mut call = Some(task::spawn(pair.service.call(request)));
    assert_pending!(call.as_mut().unwrap().poll());
    let (mut sent, _send) = pair.received();
    for _ in 0..frames {
        let _ = take(&mut sent);
    }
    (give_up(|| call = None), sent)
}

#[test]
fn an_attempt_that_is_dropped_says_how_far_it_got() {
    for (frames, delivery, phase) in [
        (0, Delivery::NotSent, Phase::Connecting),
        (2, Delivery::NotSent, Phase::Sending),
        (3, Delivery::MaybeSent, Phase::AwaitingHead),
    ] {
        let (words, mut sent) = dropped(WitnessLayer::new(), order(seven()), frames);
        assert_eq!((words.delivery, words.phase), (delivery, phase));
        assert_eq!(words.by.is_some(), frames < 3);
        let failure = words.failure(Reason::TimedOut, Stranger);
        assert_eq!(failure.delivery(), delivery);
        assert_eq!(failure.proven_by(), words.by);
        assert_eq!(failure.outcome().is_unknown(), frames == 3);
        // What was said stays true.
        assert!(take(&mut sent).is_none_or(|frame| frame.is_err()));
    }
    for (name, layer, request) in acted_on_in_parts() {
        let (words, _sent) = dropped(layer, request, 1);
        assert_eq!(words.delivery, Delivery::MaybeSent, "{name}");
    }
}

#[test]
fn where_no_witness_is_dropped_nothing_is_proven() {
    assert_eq!(give_up(|| {}), LastWords::NONE);
    // One whose attempt is over has nothing more to say.
    let mut pair = Pair::new(WitnessLayer::new());
    assert_ready_ok!(pair.service.poll_ready());
    let mut call = Some(task::spawn(pair.service.call(order(seven()))));
    assert_pending!(call.as_mut().unwrap().poll());
    pair.received().1.send_error(Stranger);
    assert!(assert_ready!(call.as_mut().unwrap().poll()).is_err());
    assert_eq!(give_up(|| call = None), LastWords::NONE);
}

#[test]
fn of_several_attempts_the_furthest_is_heard_and_each_listener_hears_its_own() {
    let mut inner = None;
    let outer = give_up(|| {
        let (words, _sent) = dropped(WitnessLayer::new(), order(seven()), 0);
        inner = Some(words);
    });
    assert_eq!(inner.unwrap().delivery, Delivery::NotSent);
    assert_eq!(outer, LastWords::NONE);

    let mut calls = Vec::new();
    let mut kept = Vec::new();
    for frames in [0, 3, 1] {
        let mut pair = Pair::new(WitnessLayer::new());
        assert_ready_ok!(pair.service.poll_ready());
        let mut call = task::spawn(pair.service.call(order(seven())));
        assert_pending!(call.poll());
        let (mut sent, send) = pair.received();
        for _ in 0..frames {
            let _ = take(&mut sent);
        }
        calls.push(call);
        kept.push((pair, sent, send));
    }
    let words = give_up(|| calls.clear());
    assert_eq!(words.delivery, Delivery::MaybeSent);
    assert_eq!(words.phase, Phase::AwaitingHead);
}

// ## A request body that fails

fn broken() -> Scripted {
    Scripted::new([Step::Data("buy"), Step::Fails])
}

#[test]
fn a_body_that_failed_is_the_callers_error_and_permanent() {
    let error = io::Error::from(io::ErrorKind::BrokenPipe);
    let failure = Pair::new(WitnessLayer::new()).fail(order(broken()), 2, error.into());
    assert_eq!(failure.outcome(), permanent(Reason::RequestBody));
    assert_eq!(failure.delivery(), Delivery::NotSent);
    assert_eq!(failure.proven_by(), Some(Witnessed::Body));
    let error: BoxError = failure.into();
    let body = RequestBodyError::of(&*error).unwrap();
    assert!(body.source().unwrap().is::<Stranger>(), "the caller's own");
    assert!(body.transport().unwrap().is::<io::Error>());
    assert!(!body.to_string().contains(&Stranger.to_string()));
    for request in [get(), post(), keyed_post()] {
        let decision = by_error(&HttpClassifier::new(), &request, &*error);
        assert_eq!(decision.outcome, permanent(Reason::RequestBody));
    }
    assert!(RequestBodyError::of(&Stranger).is_none());
}

#[test]
fn a_body_that_failed_half_way_may_have_been_acted_on_where_servers_do_that() {
    let layer = WitnessLayer::new().acts_on_parts();
    let failure = Pair::new(layer).fail(order(broken()), 2, Stranger.into());
    assert_eq!(failure.outcome(), unknown(Reason::RequestBody));
    assert_eq!(failure.delivery(), Delivery::MaybeSent);
    assert!(failure.source_ref().unwrap().is::<RequestBodyError>());
    // And repeating it sends the same broken body.
    let decision = by_error(&HttpClassifier::new(), &get(), &failure);
    assert_eq!(decision.outcome, permanent(Reason::RequestBody));
}

// ## What a layer below knows already

#[test]
fn a_failure_from_below_is_passed_on() {
    for delivery in [Delivery::Refused, Delivery::MaybeSent, Delivery::Answered] {
        let make = || Failure::new(permanent(Reason::LocalLimit), delivery, Stranger);
        for frames in [0, 3] {
            let bare = Pair::new(WitnessLayer::new());
            let failure = bare.fail(order(seven()), frames, make().into());
            assert_eq!(failure.outcome(), permanent(Reason::LocalLimit));
            assert_eq!(failure.delivery(), delivery);
            assert_eq!(failure.proven_by(), None, "it is not the witness's word");
            assert!(failure.source_ref().unwrap().is::<Stranger>());
        }
    }
}

#[test]
fn a_failure_from_below_counts_even_if_somebody_has_wrapped_it() {
    let make = || -> BoxError {
        Failure::new(
            permanent(Reason::InvalidRequest),
            Delivery::NotSent,
            Stranger,
        )
        .into()
    };
    let wrapped: [BoxError; 3] = [
        Wrapper(make()).into(),
        io::Error::other(make()).into(),
        io::Error::new(io::ErrorKind::TimedOut, make()).into(),
    ];
    for error in wrapped {
        let failure = Pair::new(WitnessLayer::new()).fail(order(seven()), 3, error);
        assert_eq!(failure.outcome(), permanent(Reason::InvalidRequest));
        assert_eq!(failure.delivery(), Delivery::NotSent);
        // Nothing of the chain is lost.
        assert!(!failure.source_ref().unwrap().is::<Stranger>());
    }
}

// ## The contract

#[test]
fn an_answer_is_passed_on() {
    let mut pair = Pair::new(WitnessLayer::new());
    assert_ready_ok!(pair.service.poll_ready());
    let mut call = task::spawn(pair.service.call(order(seven())));
    assert_pending!(call.poll());
    let (_, send) = pair.received();
    send.send_response(Response::builder().status(503).body(()).unwrap());
    assert_eq!(assert_ready_ok!(call.poll()).status(), 503);
}

#[test]
fn readiness_and_its_errors_are_those_of_the_client() {
    let mut pair = Pair::new(WitnessLayer::new());
    pair.client.allow(0);
    assert_pending!(pair.service.poll_ready());
    pair.client.allow(1);
    assert!(pair.service.is_woken());
    assert_ready_ok!(pair.service.poll_ready());
    pair.client.send_error(Stranger);
    let mut other = pair.service.clone();
    let error = assert_ready!(other.poll_ready()).unwrap_err();
    // Nothing was called, so it is nobody's failed attempt.
    assert!(Failure::of(&*error).is_none());
}

#[test]
fn a_call_that_is_dropped_at_any_point_leaves_nothing_behind() {
    for polls in 0..3 {
        let mut pair = Pair::new(WitnessLayer::new());
        assert_ready_ok!(pair.service.poll_ready());
        let mut call = task::spawn(pair.service.call(order(seven())));
        for _ in 0..polls {
            assert_pending!(call.poll());
        }
        drop(call);
        // The client that is still at work on it finds nobody waiting, and is let go on.
        let (mut sent, send) = pair.received();
        let _ = take(&mut sent);
        send.send_response(Response::new(()));
        assert_ready_ok!(pair.service.poll_ready());
        assert!(!sent.body().is_end_stream());
    }
}

#[test]
fn the_layer_and_its_service_give_back_what_they_were_given() {
    let mut witness = tower_layer::Layer::layer(&WitnessLayer::default(), 7);
    *witness.get_mut() += 1;
    assert_eq!(*witness.get_ref(), 8);
    assert_eq!(witness.clone().into_inner(), 8);
}
