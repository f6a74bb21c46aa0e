//! The venue against hyper-util's client, and everything else through the public interface.

#![expect(
    clippy::unwrap_used,
    reason = "functions that tests call may panic as the tests may"
)]

mod client;
mod demands;
mod faults;
mod http2;
mod index;
mod ledger;
mod limits;
mod load;
mod plan;
mod probe;
mod protocol;
mod raw;
mod wire;
