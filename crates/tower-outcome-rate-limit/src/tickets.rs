//! From requests to tickets.

use http::request;

use crate::Ticket;

mod routes;

pub use self::routes::Routes;

/// Says what a request asks of a budget.
///
/// Closures work: `|head: &request::Parts| -> Ticket`. Where the ticket names no class, the
/// [`Priority`](tower_outcome_core::Priority) in the request's extensions decides, and the
/// [`Deadline`](tower_outcome_core::Deadline) there bounds every wait.
pub trait Tickets: Send + Sync {
    /// Says what the request asks.
    fn ticket(&self, head: &request::Parts) -> Ticket;

    /// Lists the tickets that are known beforehand, by default none. One that can never fit is an
    /// error when the layer is built.
    fn known(&self) -> Vec<Ticket> {
        Vec::new()
    }
}

/// One unit of each limit for every request, whatever it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flat;

// === impl Tickets ===

impl<F> Tickets for F
where
    F: Fn(&request::Parts) -> Ticket + Send + Sync,
{
    fn ticket(&self, head: &request::Parts) -> Ticket {
        self(head)
    }
}

// === impl Flat ===

impl Tickets for Flat {
    fn ticket(&self, _: &request::Parts) -> Ticket {
        Ticket::new()
    }
}
