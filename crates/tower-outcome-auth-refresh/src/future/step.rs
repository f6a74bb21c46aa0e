//! What a call is in the midst of, and what comes next.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response, response};
use tokio::time::{Instant, Sleep, sleep_until};
use tower_outcome_core::{
    BoxError, CallReport, Classify, Deadline, Decision, NotReady, NotRetried, Repeatable, Replay,
    peek::{Inspect, PeekBody},
};
use tower_service::Service;

use crate::{
    course::{Course, Output, Rejection, Trail},
    flight::Want,
    held::Held,
    obtain::Obtain,
};

/// A response whose body is being looked at.
pub(super) struct Inspecting<RB> {
    pub(super) inspect: Inspect<RB>,
    pub(super) trail: Option<Box<Trail>>,
}

/// A call that waits for another credential.
pub(super) struct Renewing<RB> {
    pub(super) obtain: Obtain,
    pub(super) rejection: Rejection<RB>,
    pub(super) trail: Trail,
    pub(super) deadline: Option<Deadline>,
    pub(super) began: Instant,
}

/// A call that is about to be sent again. The rejection is its answer until it is.
pub(super) struct Returning<RB> {
    pub(super) held: Arc<Held>,
    pub(super) rejection: Rejection<RB>,
    pub(super) trail: Trail,
    pub(super) deadline: Option<Deadline>,
    /// Set once the service is not ready.
    pub(super) expiry: Option<Pin<Box<Sleep>>>,
}

/// What comes after a rejection.
pub(super) enum Next<RB> {
    Return(Output<RB>),
    Renew(Box<Renewing<RB>>),
}

/// Makes the inner service ready and sends the request for the first time.
#[inline]
pub(super) fn ready_to_send<S, B, C>(
    cx: &mut Context<'_>,
    course: &mut Course<S, B, C>,
) -> Poll<Result<S::Future, BoxError>>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
{
    if let Err(error) = ready!(course.service.poll_ready(cx)) {
        return Poll::Ready(Err(error.into()));
    }
    match course.unsent.take() {
        Some(unsent) => Poll::Ready(course.send(unsent)),
        None => Poll::Pending,
    }
}

/// What comes of a decision on a first answer.
pub(super) fn judged<S, B, C, RB>(
    course: &mut Course<S, B, C>,
    head: response::Parts,
    body: PeekBody<RB>,
    decision: Decision,
) -> Next<RB>
where
    C: Classify,
    B: Replay,
{
    match &course.held {
        // A layer below has sent it before, and knows that as little as anybody.
        Some(held) if Course::<S, B, C>::is_rejection(decision) && is_unknown(&head) => {
            course.shared().reject(held.generation);
            Next::Return(Ok(Response::from_parts(head, body)))
        }
        Some(_) if Course::<S, B, C>::is_rejection(decision) => rejected(course, head, body),
        held => {
            if let Some(held) = held {
                held.accept();
            }
            Next::Return(Ok(Response::from_parts(head, body)))
        }
    }
}

/// Whether a layer below has said that nobody knows what became of the call.
fn is_unknown(head: &response::Parts) -> bool {
    CallReport::of(&head.extensions).is_some_and(|report| report.outcome().is_unknown())
}

/// The first answer is a rejection.
#[cold]
pub(super) fn rejected<S, B, C, RB>(
    course: &mut Course<S, B, C>,
    head: response::Parts,
    body: PeekBody<RB>,
) -> Next<RB>
where
    C: Classify,
    B: Replay,
{
    let rejection = Rejection {
        head,
        peek: body.peek(course.config.drain_limit),
    };
    let Some(held) = course.held.clone() else {
        return Next::Return(Course::<S, B, C>::give_back(rejection, None));
    };
    match course.reject(&held) {
        Ok(trail) => {
            let deadline = course.deadline();
            let want = Want::NewerThan(held.generation);
            Next::Renew(Box::new(Renewing {
                obtain: course.shared().obtain(want, deadline),
                rejection,
                trail,
                deadline,
                began: Instant::now(),
            }))
        }
        Err(why) => {
            let report = Course::<S, B, C>::rejected_report(Repeatable::No, why);
            Next::Return(Course::<S, B, C>::give_back(rejection, Some(report)))
        }
    }
}

/// Makes the inner service ready and sends the request again, or says why not.
pub(super) fn poll_resend<S, B, C, RB>(
    cx: &mut Context<'_>,
    course: &mut Course<S, B, C>,
    returning: &mut Returning<RB>,
) -> Poll<Result<Result<S::Future, BoxError>, NotRetried>>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    C: Classify,
    B: Replay,
{
    if let Err(error) = ready!(course.service.poll_ready(cx)) {
        let why = NotReady::new(error.into());
        return Poll::Ready(Err(NotRetried::NotReady(why)));
    }
    // Becoming ready may have taken its time.
    let is_over = |deadline: Deadline| deadline.is_over(Instant::now());
    if returning.deadline.is_some_and(is_over) {
        return Poll::Ready(Err(NotRetried::Deadline));
    }
    if returning.expiry.is_some() {
        if let Some(held) = course.shared().servable() {
            returning.held = held;
        }
    }
    if course.shared().is_over(&returning.held) {
        return Poll::Ready(Err(NotRetried::Outcome));
    }
    let held = Arc::clone(&returning.held);
    let resent = course
        .again(&mut returning.trail)
        .map(|unsent| course.resend(unsent, &returning.trail, held));
    Poll::Ready(resent)
}

/// Waits until nothing is left of the call's time.
pub(super) fn poll_overdue<RB>(cx: &mut Context<'_>, returning: &mut Returning<RB>) -> Poll<()> {
    let instant = returning.deadline.map(Deadline::instant);
    // Without a deadline the same sleep says that there was a wait.
    let far = || Deadline::after(Duration::MAX).instant();
    let expiry = &mut returning.expiry;
    let expiry = expiry.get_or_insert_with(|| Box::pin(sleep_until(instant.unwrap_or_else(far))));
    expiry.as_mut().poll(cx)
}
