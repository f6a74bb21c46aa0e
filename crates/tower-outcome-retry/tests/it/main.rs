//! The behaviour of Retry and of the idempotency key layer, against scripted servers on paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod budget;
mod cancel;
mod contract;
mod hints;
mod idempotency_key;
mod outcomes;
mod peeking;
mod refusals;
mod resend;
mod settled;
mod support;
