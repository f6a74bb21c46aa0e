#![doc = include_str!("../README.md")]

mod acquire;
mod budget;
mod builder;
mod class;
mod cost;
mod driver;
mod feedback;
mod future;
mod gate;
mod guard;
mod keyed;
mod layer;
mod leave;
mod limit;
#[cfg(tower_outcome_model)]
mod model;
mod observer;
mod permit;
mod queue;
mod refused;
mod rule;
mod scope;
mod server_clock;
mod service;
mod shared;
mod snapshot;
mod state;
mod ticket;
mod tickets;
mod usage;

pub use self::{
    acquire::Acquire,
    budget::{Budget, Departure},
    builder::BudgetBuilder,
    class::Class,
    cost::Cost,
    future::ResponseFuture,
    guard::Guard,
    keyed::KeyedBudget,
    layer::{RateLimitLayer, RateLimitLayerBuilder},
    limit::Limit,
    observer::{Admitted, Observer, Paused, Queued},
    permit::Permit,
    refused::{Refused, RefusedKind},
    scope::Scope,
    service::RateLimit,
    snapshot::{ClassQueue, LimitUsage, Snapshot},
    ticket::Ticket,
    tickets::{Routes, Tickets},
    usage::{Reported, UsageHeaders, UsageNames},
};
