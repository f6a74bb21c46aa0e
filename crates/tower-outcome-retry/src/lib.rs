#![doc = include_str!("../README.md")]

mod backoff;
mod budget;
mod config;
mod course;
mod future;
mod hints;
mod idempotency_key;
mod layer;
mod resend;
mod service;

pub use self::{
    backoff::{Backoff, Jitter},
    budget::{Budget, BudgetBuilder},
    future::ResponseFuture,
    hints::{HintPolicy, Hints},
    idempotency_key::{
        IdempotencyKey, IdempotencyKeyFuture, IdempotencyKeyLayer, IdempotencyKeyService,
    },
    layer::{RetryLayer, RetryLayerBuilder},
    resend::NoResend,
    service::Retry,
};
