//! Whether time is up.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    task::coop::has_budget_remaining,
    time::{Instant, Sleep},
};

/// Polls a timer, and looks at the clock where the timer may not answer.
///
/// A timer takes part in tokio's cooperative scheduling: below a future that has used up what its task
/// may do in a turn, and does so in each, it would never be ready.
pub(crate) fn poll_due(mut timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
    match timer.as_mut().poll(cx) {
        Poll::Pending if has_budget_remaining() || Instant::now() < timer.deadline() => {
            Poll::Pending
        }
        _ => Poll::Ready(()),
    }
}
