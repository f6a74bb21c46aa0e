//! Tests by what the crate promises.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod cancel;
mod contract;
mod doubt;
mod events;
#[cfg(all(unix, feature = "file-store"))]
mod file_store;
mod login;
#[cfg(feature = "oauth2")]
mod oauth2;
mod queued;
mod rejection;
mod source;
mod stores;
mod support;
mod timetable;
