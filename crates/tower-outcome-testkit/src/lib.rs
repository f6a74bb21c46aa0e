#![doc = include_str!("../README.md")]

mod answer;
mod course;
mod demand;
mod desk;
mod fault;
mod http1;
mod http2;
mod index;
mod ledger;
mod limit;
mod logins;
mod plan;
mod probe;
pub mod raw;
mod script;
mod signature;
mod socket;
mod venue;

pub use self::answer::{Answer, Request};
pub use self::demand::{Demand, FreshTimestamp, RisingNonce, Sessions};
pub use self::fault::{Fault, GrpcForm, Last, ParseFaultError, Point};
pub use self::index::Index;
pub use self::ledger::{Entry, Ledger, Protocol, Received, fnv1a};
pub use self::limit::{Ban, Limit, Window};
pub use self::logins::Logins;
pub use self::plan::{AtAccept, Plan};
pub use self::probe::{Probe, ProbeHandle, ProbeLayer, ResponseFuture};
pub use self::script::{Exhausted, Script};
pub use self::signature::{Signature, Signed};
pub use self::venue::{Builder, StartError, Venue};
