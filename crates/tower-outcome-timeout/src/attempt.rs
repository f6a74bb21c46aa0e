//! The bounds of one attempt.

mod body;
mod bounds;
mod future;
mod layer;
mod limits;
mod pace;
mod sent_body;
mod service;

pub use self::{
    body::TimeoutBody,
    bounds::{AttemptBounds, AttemptBoundsBuilder},
    future::TimeoutFuture,
    layer::TimeoutLayer,
    sent_body::SentBody,
    service::Timeout,
};
