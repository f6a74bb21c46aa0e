//! The course of asking.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use http::request;
use tokio::time::{Instant, sleep_until, timeout_at};
use tower_outcome_core::{
    BoxError, CallContext, Decision, Failure, Reason, RetryAfter, Stage, ValidUntil,
    replay::HeadCopy,
};

use crate::{
    Inquiry, Reconciled, Reconciler, Through, Unknown,
    config::Config,
    evidence::{Evidence, Known},
    kept::{Copy, Kept},
    observer::Watch,
    resolutions::Registration,
};

/// Asking about one call.
pub(crate) type Asking = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// What it came to.
pub(crate) struct Ended {
    pub(crate) known: Option<Known>,
    pub(crate) report: Reconciled,
    /// What is left of the wait that the server asked for with the lost answer.
    pub(crate) after: Option<RetryAfter>,
}

/// What an inquiry that hangs fails with.
const HANGS: &str = "the inquiry took too long";

/// Asks until it is known what became of the call, or time is up.
pub(crate) async fn ask<S, B, R, C, T>(
    config: Arc<Config<R, C>>,
    kept: Kept<S, T>,
    copy: Copy<S>,
    decision: Decision,
) -> Ended
where
    S: Clone + Send,
    R: Reconciler<S, B>,
{
    let began = Instant::now();
    let Kept {
        id,
        attempt,
        registration,
        ..
    } = kept;
    let reason = decision.outcome.reason().unwrap_or(Reason::Unrecognized);
    config.observer.unknown(&Unknown { id: &id, reason });
    let mut watch = Watch {
        observer: &*config.observer,
        id: &id,
        since: began,
        reason,
        inquiries: 0,
        is_over: false,
    };

    let limit = far(began, config.schedule.deadline);
    let limit = match copy.deadline {
        Some(deadline) => limit.min(deadline.instant()),
        None => limit,
    };
    let starts_until = copy.context.as_ref().and_then(CallContext::valid_until);
    let starts_until = starts_until.map(ValidUntil::instant);
    let by_age = far(began, config.min_age);
    let mut evidence = Evidence {
        absent_from: starts_until
            .map_or(by_age, |end| by_age.max(far(end, config.processing_limit))),
        forgotten_from: config.retention.map(|span| {
            // Of an earlier attempt nobody knows how old it is.
            if attempt.maybe_applied_before() {
                copy.sent
            } else {
                far(copy.sent, span)
            }
        }),
        needed: config.misses,
        misses: 0,
        is_received: reason == Reason::Duplicate,
    };
    let head = copy.head.as_ref().and_then(head_of);
    let sent_at = config.clock.now();
    let sent_at = sent_at
        .checked_sub(began.saturating_duration_since(copy.sent))
        .unwrap_or(sent_at);

    let mut report = Reconciled::new(reason);
    report.is_received = evidence.is_received;
    let registration = registration.as_ref();
    // The wait that the server asked for, with the lost answer or when it was asked.
    let resend_from = decision.after.map(|hint| far(began, hint.delay()));
    let mut not_before = resend_from.unwrap_or(began);
    let known = loop {
        let now = Instant::now();
        let next = next_at(
            now,
            far(now, config.schedule.delay(report.inquiries)),
            &evidence,
        );
        let next = next.max(not_before);
        if next >= limit {
            // What cannot be asked in time can still be told.
            break match registration {
                Some(_) => told(registration, sleep_until(limit)).await.err(),
                None => None,
            };
        }
        if let Err(known) = told(registration, sleep_until(next)).await {
            break Some(known);
        }
        let asked = Instant::now();
        report.inquiries = report.inquiries.saturating_add(1);
        watch.inquiries = report.inquiries;
        let until = limit.min(far(asked, config.schedule.each));
        let inquiry = Inquiry {
            id: id.clone(),
            head: head.clone(),
            outcome: decision.outcome,
            delivery: decision.delivery,
            attempt,
            number: report.inquiries,
            sent: copy.sent,
            sent_at,
            starts_until,
            absent_from: evidence.absent_from,
            is_received: evidence.is_received,
            deadline: limit,
        };
        let through = Through::new(copy.service.clone(), config.priority, until);
        let asking = timeout_at(until, config.reconciler.ask(inquiry, through));
        let found = match told(registration, asking).await {
            Ok(found) => found.unwrap_or_else(|_| Err(HANGS.into())),
            Err(known) => break Some(known),
        };
        match found {
            Ok(finding) => {
                let known = evidence.weigh(finding, asked);
                report.misses = evidence.misses;
                report.is_received = evidence.is_received;
                if known.is_some() {
                    break known;
                }
            }
            Err(error) => {
                report.failures = report.failures.saturating_add(1);
                not_before = asked_to_wait(&error).map_or(not_before, |end| end.max(not_before));
                report.last_error = Some(error.into());
            }
        }
    };
    report.how = known.as_ref().map(Known::how);
    report.took = began.elapsed();
    watch.end(&report);
    let after = decision.after.and_then(|hint| {
        let left = resend_from?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| RetryAfter::new(left, hint.form()))
    });
    Ended {
        known,
        report,
        after,
    }
}

/// What it comes to where somebody had told by the time the attempt ended.
pub(crate) fn told_already(known: Known, decision: Decision) -> Ended {
    let mut report = Reconciled::new(decision.outcome.reason().unwrap_or(Reason::Unrecognized));
    report.how = Some(known.how());
    Ended {
        known: Some(known),
        report,
        after: decision.after,
    }
}

/// Waits for something, unless somebody tells what became of the call before that.
async fn told<T>(
    registration: Option<&Registration>,
    future: impl Future<Output = T>,
) -> Result<T, Known> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Some(registration) = registration {
            if let Poll::Ready(resolution) = registration.poll_take(cx) {
                return Poll::Ready(Err(resolution.into()));
            }
        }
        future.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// When to ask next: as planned, or as soon as a miss can mean something, if that is before.
fn next_at(now: Instant, planned: Instant, evidence: &Evidence) -> Instant {
    if evidence.absent_from > now && !evidence.is_received {
        planned.min(evidence.absent_from)
    } else {
        planned
    }
}

/// How long the server asked to be left alone when it was asked.
fn asked_to_wait(error: &BoxError) -> Option<Instant> {
    let after = Failure::of(&**error)?.outcome().after()?;
    Some(far(Instant::now(), after.delay()))
}

/// The head of the request, without what layers have left in it for this attempt.
fn head_of(copy: &HeadCopy) -> Option<request::Parts> {
    let (mut head, ()) = copy.restore(())?.into_parts();
    Stage::forget_all(&mut head.extensions);
    if CallContext::of(&head.extensions).is_some() {
        CallContext::new().put(&mut head.extensions);
    }
    Some(head)
}

/// The sum, or thirty years in its place, which is tokio's own notion of "far in the future".
fn far(instant: Instant, span: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    instant.checked_add(span).unwrap_or_else(|| instant + FAR)
}
