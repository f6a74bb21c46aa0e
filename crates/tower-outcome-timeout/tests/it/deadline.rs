//! The bound of a whole call.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use tokio::time::{Instant, advance};
use tower::{Layer, ServiceExt};
use tower_outcome_core::{
    CallContext, CallReport, Deadline, Delivery, Failure, NotRetried, Outcome, Phase, Reason,
    Repeatable, RepeatableBecause, WitnessBody, WitnessLayer, witness::Witness,
};
use tower_outcome_timeout::{Bound, DeadlineLayer, DeadlineService, Elapsed, Timeouts};
use tower_test::mock::{self, Handle, Mock};

use crate::support::*;

const TIMED_OUT: Reason = Reason::TimedOut;

type Plain = DeadlineService<Mock<Req, Res>>;
type Witnessed = DeadlineService<Witness<Mock<Request<WitnessBody<Steps>>, Res>>>;

fn plain() -> (Plain, Handle<Req, Res>) {
    let (mock, handle) = mock::pair();
    (DeadlineLayer::default().layer(mock), handle)
}

fn witnessed() -> (Witnessed, Handle<Request<WitnessBody<Steps>>, Res>) {
    let (mock, handle) = mock::pair();
    let layer = DeadlineLayer::default();
    (layer.layer(WitnessLayer::new().layer(mock)), handle)
}

fn context(sent: &Req) -> CallContext {
    CallContext::of(sent.extensions()).unwrap().clone()
}

// ## When it strikes

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_answers_ends_at_the_deadline() {
    let start_at = Instant::now();
    let (service, mut server) = plain();
    let call = start(&service, post()).await;
    let _kept = received(&mut server).await;
    let expected = Struck {
        bound: Bound::Deadline,
        phase: Phase::Connecting,
        delivery: Delivery::MaybeSent,
        outcome: unknown(TIMED_OUT),
        after: secs(30),
    };
    assert_eq!(struck(start_at, call).await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_caller_wins_in_both_directions() {
    for seconds in [1, 300] {
        let start_at = Instant::now();
        let (service, mut server) = plain();
        let mut post = post();
        let set = Deadline::after(secs(seconds));
        post.extensions_mut().insert(set);
        let call = start(&service, post).await;
        let (sent, _send) = received(&mut server).await;
        assert_eq!(Deadline::of(sent.extensions()), Some(set));
        assert_eq!(struck(start_at, call).await.after, secs(seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn time_before_the_call_counts_for_an_instant_that_was_set_before() {
    let start_at = Instant::now();
    let (service, _server) = plain();
    let mut post = post();
    post.extensions_mut().insert(Deadline::after(secs(10)));
    advance(secs(6)).await;
    assert_eq!(
        struck(start_at, start(&service, post).await).await.after,
        secs(10)
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_is_over_is_not_started() {
    let (service, mut server) = plain();
    let mut post = post();
    post.extensions_mut().insert(Deadline::after(secs(1)));
    advance(secs(1)).await;
    let start_at = Instant::now();
    let error = service.oneshot(post).await.unwrap_err();
    let expected = Struck {
        bound: Bound::Deadline,
        phase: Phase::Queued,
        delivery: Delivery::NotSent,
        outcome: retryable(Reason::LocalLimit),
        after: secs(0),
    };
    assert_eq!(read(start_at, &error), expected);
    let report = Failure::of(&*error).unwrap().report().unwrap();
    assert_eq!(report.attempts(), 0);
    assert!(matches!(report.not_retried(), Some(NotRetried::Deadline)));
    assert!(server.next_request().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_ready_wins_over_the_deadline() {
    let (service, mut server) = plain();
    let mut call = tokio_test::task::spawn(service.oneshot(post()));
    tokio_test::assert_pending!(call.poll());
    let (_sent, send) = received(&mut server).await;
    send.send_response(ok(Steps::empty()));
    advance(secs(60)).await;
    assert!(tokio_test::assert_ready!(call.poll()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_a_call_waits_for_ever() {
    let (mock, mut server) = mock::pair::<Req, Res>();
    let timeouts = Timeouts::builder().call(None).build().unwrap();
    let service = DeadlineLayer::new(&timeouts).layer(mock);
    let call = start(&service, post()).await;
    let (sent, send) = received(&mut server).await;
    assert_eq!(Deadline::of(sent.extensions()), None);
    advance(secs(86_400)).await;
    settle().await;
    assert!(!call.is_finished());
    send.send_response(ok(Steps::empty()));
    assert!(call.await.unwrap().is_ok());
}

// ## What had been delivered

#[tokio::test(start_paused = true)]
async fn what_the_witness_below_has_seen_decides() {
    for (taken, delivery, phase) in [
        (0, Delivery::NotSent, Phase::Connecting),
        (1, Delivery::NotSent, Phase::Sending),
        (2, Delivery::MaybeSent, Phase::AwaitingHead),
    ] {
        let start_at = Instant::now();
        let (service, mut server) = witnessed();
        let call = start(&service, post()).await;
        let (mut sent, _send) = received(&mut server).await;
        for _ in 0..taken {
            assert!(take(&mut sent));
        }
        let struck = struck(start_at, call).await;
        assert_eq!((struck.delivery, struck.phase), (delivery, phase));
        assert_eq!(struck.outcome.is_unknown(), taken == 2);
        // Nothing more of it leaves.
        assert!(!take(&mut sent));
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_be_repeated_is_not_unknown() {
    let marked = |mark| {
        let mut post = post();
        post.extensions_mut().insert(mark);
        post
    };
    let put = || request(Method::PUT, Steps::empty());
    let yes = Repeatable::Yes(RepeatableBecause::Marked);
    for (request, is_unknown) in [
        (get(), false),
        (marked(yes), false),
        (post(), true),
        // Whether that is harmless is a classifier's to say, and there is none here.
        (put(), true),
        (marked(Repeatable::No), true),
    ] {
        let start_at = Instant::now();
        let (service, mut server) = plain();
        let call = start(&service, request).await;
        let _kept = received(&mut server).await;
        let outcome = struck(start_at, call).await.outcome;
        assert_eq!(outcome.is_unknown(), is_unknown);
        assert_eq!(outcome.is_retryable(), !is_unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn the_word_of_a_layer_that_classifies_wins() {
    for (told, is_unknown) in [
        (Repeatable::Yes(RepeatableBecause::IdempotencyKey), false),
        (Repeatable::No, true),
    ] {
        let start_at = Instant::now();
        let (service, mut server) = plain();
        let call = start(&service, post()).await;
        let (sent, _send) = received(&mut server).await;
        context(&sent).note_repeatable(told);
        context(&sent).note_idempotency_key("k-1".parse().unwrap());
        let error = call.await.unwrap().unwrap_err();
        let struck = read(start_at, &error);
        assert_eq!(struck.outcome.is_unknown(), is_unknown);
        let key = Failure::of(&*error).unwrap().idempotency_key();
        assert_eq!(key.unwrap(), "k-1");
    }
}

#[tokio::test(start_paused = true)]
async fn between_two_attempts_the_last_one_says_what_became_of_the_call() {
    let start_at = Instant::now();
    let (service, mut server) = plain();
    let call = start(&service, get()).await;
    let (sent, _send) = received(&mut server).await;
    let context = context(&sent);
    context.begin_attempt();
    context.end_attempt(retryable(Reason::Overloaded), Delivery::Answered);
    context.enter(Phase::BackingOff);
    let error = call.await.unwrap().unwrap_err();
    let expected = Struck {
        bound: Bound::Deadline,
        phase: Phase::BackingOff,
        delivery: Delivery::Answered,
        outcome: retryable(Reason::Overloaded),
        after: secs(30),
    };
    assert_eq!(read(start_at, &error), expected);
    let report = Failure::of(&*error).unwrap().report().unwrap().clone();
    assert_eq!(report.attempts(), 1);
    assert_eq!(report.outcome(), retryable(Reason::Overloaded));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_layer_below_holds_was_not_sent() {
    let start_at = Instant::now();
    let (service, mut server) = plain();
    let call = start(&service, post()).await;
    let (sent, _send) = received(&mut server).await;
    let hold = context(&sent).hold("limiter", Phase::Queued);
    let struck = struck(start_at, call).await;
    assert_eq!(struck.delivery, Delivery::NotSent);
    assert_eq!(struck.phase, Phase::Queued);
    assert_eq!(struck.outcome, retryable(TIMED_OUT));
    drop(hold);
}

#[tokio::test(start_paused = true)]
async fn a_call_within_a_call_may_be_followed_by_another() {
    let (mock, mut server) = mock::pair::<Request<WitnessBody<Steps>>, Res>();
    let short = Timeouts::builder().call(secs(1)).build().unwrap();
    let inner = DeadlineLayer::new(&short).layer(WitnessLayer::new().layer(mock));
    let outer = CallContext::new();
    let mut service = inner;
    for expected_at in [1, 2] {
        let mut post = post();
        post.extensions_mut().insert(outer.clone());
        let call = start(&service, post).await;
        let (mut sent, _send) = received(&mut server).await;
        assert!(take(&mut sent), "not sealed before its time: {expected_at}");
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(Failure::of(&*error).unwrap().delivery(), Delivery::NotSent);
        outer.begin_attempt();
        service = service.clone();
    }
}

// ## The response body

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_ends_at_the_deadline() {
    let start_at = Instant::now();
    let (service, mut server) = plain();
    let call = start(&service, post()).await;
    let (_sent, send) = received(&mut server).await;
    advance(secs(12)).await;
    let (to, body) = Steps::piped();
    send.send_response(ok(body));
    let body = call.await.unwrap().unwrap().into_body();
    let reading = tokio::spawn(read_body(body));
    let dripping = tokio::spawn(async move {
        while to.send(Step::Data("a")).is_ok() {
            tokio::time::sleep(secs(5)).await;
        }
    });
    let error = reading.await.unwrap().unwrap_err();
    let expected = Struck {
        bound: Bound::Deadline,
        phase: Phase::ReadingBody,
        delivery: Delivery::Answered,
        outcome: unknown(TIMED_OUT),
        // Of the call, and not of its body.
        after: secs(30),
    };
    assert_eq!(read(start_at, &error), expected);
    assert_eq!(Elapsed::of(&*error).unwrap().limit(), secs(30));
    dripping.await.unwrap();
}

/// Data without end, that is always there.
struct Flood;

impl Body for Flood {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"a")))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_always_ready_ends_at_the_deadline_too() {
    use http_body_util::BodyExt;
    let (mock, mut server) = mock::pair::<Req, Response<Flood>>();
    let service = DeadlineLayer::default().layer(mock);
    let call = tokio::spawn(service.oneshot(get()));
    let (_sent, send) = received(&mut server).await;
    send.send_response(Response::new(Flood));
    let mut body = call.await.unwrap().unwrap().into_body();
    for _ in 0..100 {
        assert!(body.frame().await.unwrap().is_ok());
    }
    advance(secs(30)).await;
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(Elapsed::of(&*error).unwrap().bound(), Bound::Deadline);
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_body_wins_over_the_deadline() {
    use http_body_util::BodyExt;
    let (mock, mut server) = mock::pair::<Req, Response<Full<Bytes>>>();
    let service = DeadlineLayer::default().layer(mock);
    let call = tokio::spawn(service.oneshot(get()));
    let (_sent, send) = received(&mut server).await;
    send.send_response(Response::new(Full::from("all")));
    let body = call.await.unwrap().unwrap().into_body();
    advance(secs(60)).await;
    assert_eq!(body.collect().await.unwrap().to_bytes(), "all");
}

#[tokio::test(start_paused = true)]
async fn what_the_head_has_said_is_not_lost_with_the_body() {
    let (service, mut server) = plain();
    let call = start(&service, post()).await;
    let (_sent, send) = received(&mut server).await;
    let rejected = Outcome::Permanent {
        reason: Reason::Rejected,
    };
    let (_to, body) = Steps::piped();
    let mut response = ok(body);
    response.extensions_mut().insert(CallReport::new(
        rejected,
        Delivery::Answered,
        Repeatable::No,
    ));
    send.send_response(response);
    let body = call.await.unwrap().unwrap().into_body();
    let error = read_body(body).await.unwrap_err();
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.outcome(), rejected);
    assert_eq!(Elapsed::of(&*error).unwrap().bound(), Bound::Deadline);
}
