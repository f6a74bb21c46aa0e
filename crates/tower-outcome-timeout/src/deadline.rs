//! The bound of a whole call.

mod abandoned;
mod body;
mod future;
mod layer;
mod service;

pub use self::{
    abandoned::{Abandoned, OnAbandoned},
    body::DeadlineBody,
    future::DeadlineFuture,
    layer::{DeadlineLayer, DeadlineLayerBuilder},
    service::DeadlineService,
};
