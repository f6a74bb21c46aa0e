//! The bound of requests in flight.

mod body;
mod future;
mod layer;
mod service;
mod slots;

pub use self::{
    body::ConnectionLimitBody,
    future::ConnectionLimitFuture,
    layer::{ConnectionLimitBuilder, ConnectionLimitLayer},
    service::ConnectionLimit,
};
