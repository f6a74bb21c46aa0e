//! The behaviour of the layers that bound, against scripted servers on paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod abandoned;
mod attempt;
mod bodies;
mod cancel;
mod config;
mod connect;
mod connection_limit;
mod contract;
mod deadline;
mod grpc_timeout;
mod support;
