//! Tests of the crate as its users see it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod aligned_window;
mod cancel;
mod feedback;
mod foresight;
mod gate;
mod keyed;
mod layer;
mod limits;
mod pitfalls;
mod promises;
mod queue;
mod refusals;
mod scopes;
mod server_window;
mod support;
mod venue;
mod venue_clock;
