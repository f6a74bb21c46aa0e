//! Tests by what the crate promises.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod cancel;
mod contract;
mod rejection;
mod source;
mod support;
mod timetable;
