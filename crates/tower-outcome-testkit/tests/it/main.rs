//! The venue against hyper-util's client, and everything else through the public interface.

mod client;
mod demands;
mod faults;
mod ledger;
mod limits;
mod plan;
mod probe;
mod protocol;
mod raw;
