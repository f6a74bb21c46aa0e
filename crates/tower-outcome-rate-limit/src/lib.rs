#![doc = include_str!("../README.md")]

mod acquire;
mod budget;
mod builder;
mod class;
mod cost;
mod driver;
mod gate;
mod guard;
mod limit;
mod observer;
mod permit;
mod queue;
mod refused;
mod rule;
mod server_clock;
mod shared;
mod snapshot;
mod state;
mod ticket;

pub use self::{
    acquire::Acquire,
    budget::{Budget, Departure},
    builder::BudgetBuilder,
    class::Class,
    cost::Cost,
    guard::Guard,
    limit::Limit,
    observer::{Admitted, Observer, Paused, Queued},
    permit::Permit,
    refused::{Refused, RefusedKind},
    snapshot::{ClassQueue, LimitUsage, Snapshot},
    ticket::Ticket,
};
