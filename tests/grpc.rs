//! Code that tonic generates, over its channel and the whole stack.
//!
//! Against tonic's own server, which keeps a ledger; against the venue and raw HTTP/2 frames where a fault
//! is wanted that tonic's server cannot make.

mod stack;

mod deadline;
mod places;
mod pushback;
mod refused;
mod status;
mod streams;
mod unary;
