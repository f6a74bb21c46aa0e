//! An order desk over gRPC: generated code, and a server that keeps a ledger.
//!
//! The proto file is compiled by `build.rs` without a `protoc`. The server is tonic's own. It can be told
//! what goes wrong with the next call of a method; what a server of tonic cannot do wrong is a matter for
//! the venue and the raw servers of `tower-outcome-testkit`.

mod desk;
mod ledger;
mod service;

pub use self::{
    desk::Desk,
    ledger::{Seen, Trouble},
    orders::{
        Event, GetRequest, Order, PlaceRequest, Summary, WatchRequest, orders_client::OrdersClient,
        orders_server,
    },
};

/// What is generated from `desk.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::exhaustive_structs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::str_to_string,
    clippy::use_self,
    reason = "generated code has a style of its own, and each version of the generator another"
)]
mod orders {
    tonic::include_proto!("desk.v1");
}

/// The path of each method.
pub mod path {
    /// Unary; each call is an order.
    pub const PLACE: &str = "/desk.v1.Orders/Place";
    /// Unary; asks and changes nothing.
    pub const GET: &str = "/desk.v1.Orders/Get";
    /// One request, a stream of answers.
    pub const WATCH: &str = "/desk.v1.Orders/Watch";
    /// A stream of requests, one answer.
    pub const PLACE_ALL: &str = "/desk.v1.Orders/PlaceAll";
    /// Streams both ways.
    pub const TRADE: &str = "/desk.v1.Orders/Trade";
}
