//! What became of a call, for those who get a `tonic::Status`.

mod body;
mod code;
mod future;
mod judge;
mod layer;

pub use self::{
    body::GrpcStatusBody,
    future::GrpcStatusFuture,
    layer::{GrpcStatus, GrpcStatusLayer},
};
