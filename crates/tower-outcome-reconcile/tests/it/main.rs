//! Tests by what the crate promises, against scripted servers on paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod absent;
mod cancel;
mod duplicate;
mod found;
mod passes;
mod query;
mod settings;
mod support;
mod told;
mod watched;
