//! Bounds over real sockets, against a venue that hangs in every way it knows.
//!
//! The bounds are short and the clock is real, since a paused clock would not wait for a socket. No
//! test says how long anything took: what it asserts is *which* bound struck.

mod connections;
mod each_bound;
mod framing;
mod grpc;
mod retry;
mod stack;
mod trouble;
