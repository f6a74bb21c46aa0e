#![doc = include_str!("../README.md")]

mod attempt;
mod connect;
mod connection_limit;
mod deadline;
mod elapsed;
mod grpc_timeout;
mod timeouts;
mod timer;

pub use self::{
    attempt::{
        AttemptBounds, AttemptBoundsBuilder, SentBody, Timeout, TimeoutBody, TimeoutFuture,
        TimeoutLayer,
    },
    connect::{ConnectTimeout, ConnectTimeoutFuture, ConnectTimeoutLayer},
    connection_limit::{
        ConnectionLimit, ConnectionLimitBody, ConnectionLimitBuilder, ConnectionLimitFuture,
        ConnectionLimitLayer,
    },
    deadline::{
        Abandoned, DeadlineBody, DeadlineFuture, DeadlineLayer, DeadlineLayerBuilder,
        DeadlineService, OnAbandoned,
    },
    elapsed::{Bound, Elapsed},
    timeouts::{Timeouts, TimeoutsBuilder},
};
