//! An upstream on this machine, for trying things out.

use std::sync::Arc;

use axum::{Router, body::Body, extract::State, routing::get};
use http::Response;
use serde_json::{Value, json};
use tower_outcome_testkit::{Ledger, StartError, Venue};

use super::status::json_page;

/// A venue on loopback. Requests tell it in the header `x-fault` how to misbehave, and it keeps a ledger of
/// what it did, shown at `/demo/ledger`.
#[derive(Debug)]
pub(crate) struct Demo(Arc<Venue>);

// === impl Demo ===

impl Demo {
    /// Starts it.
    pub(crate) fn start() -> Result<Self, StartError> {
        Venue::start().map(|venue| Self(Arc::new(venue)))
    }

    /// Returns where it is.
    pub(crate) fn base(&self) -> String {
        self.0.url("").trim_end_matches('/').to_owned()
    }

    /// Makes the page that shows the ledger.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/demo/ledger", get(ledger))
            .with_state(self.0)
    }
}

/// How often each operation was sent and applied: the truth of which callers may be told that it is unknown.
async fn ledger(State(venue): State<Arc<Venue>>) -> Response<Body> {
    json_page(&operations(&venue.ledger()))
}

fn operations(ledger: &Ledger) -> Value {
    let mut names: Vec<String> = Vec::new();
    for entry in ledger.entries() {
        names.extend(entry.operation.filter(|name| !names.contains(name)));
    }
    let operations = names.iter().map(|name| {
        json!({ "operation": name, "sent": ledger.attempts(name), "applied": ledger.applied(name) })
    });
    operations.collect()
}
