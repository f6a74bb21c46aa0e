//! The vocabulary of the family: what the classifiers decide, what errors and bodies prove, and what
//! layers tell each other.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod answers;
mod config;
#[cfg(feature = "hyper-util")]
mod connection;
mod context;
mod delivery;
mod failure;
mod grpc_classifier;
#[cfg(feature = "tonic")]
mod grpc_status;
mod http_classifier;
mod report;
mod rules;
mod support;
mod unread;
mod venues;
mod witness;
mod witness_body;
mod witness_race;
