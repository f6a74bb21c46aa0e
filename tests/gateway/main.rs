//! The gateway of the examples as a program: its callers on one side, the venue on the other.

#![expect(
    clippy::unwrap_used,
    reason = "functions that tests call may panic as the tests may"
)]

use std::{ffi::OsString, iter::once};

mod calls;
mod credentials;
mod ending;
mod files;
mod limits;
#[expect(dead_code, reason = "a program starts with its main; here it does not")]
#[path = "../../examples/gateway/main.rs"]
mod program;
mod running;
mod streams;

/// The gateway itself, in a process of its own that a test has started from its own file: so it is always
/// the one that was built with the tests. By itself it does nothing.
#[test]
fn the_gateway() {
    let Ok(args) = std::env::var(running::ARGS) else {
        return;
    };
    let args = once("gateway").chain(args.lines()).map(OsString::from);
    std::process::exit(program::run(args).into());
}
