//! What needs more than one crate: real clients against servers that misbehave.

#![expect(
    clippy::unwrap_used,
    reason = "functions that tests call may panic as the tests may"
)]

mod auth;
mod bodiless;
mod clock_cases;
#[path = "soak/codec.rs"]
mod codec;
mod grpc;
mod limits;
mod messages;
mod order;
mod outbound;
mod reconcile;
mod resent;
mod reuse;
mod signing;
mod systems;
mod timeout;
mod transport;
