//! Pages about this gateway itself.

use std::sync::Arc;

use axum::{body::Body, extract::State};
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use super::{config::Config, upstream::Upstream};

/// Says that this process serves; of the upstreams it says nothing, or one that is down would take the
/// others along.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Shows counters and limits of all upstreams as JSON.
pub(crate) async fn status(State(config): State<Arc<Config>>) -> Response<Body> {
    let upstreams: Vec<Value> = config.upstreams.iter().map(upstream).collect();
    json_page(&json!({ "upstreams": upstreams }))
}

/// Makes a page of JSON.
pub(crate) fn json_page(value: &Value) -> Response<Body> {
    let mut page = Response::new(Body::from(format!("{value:#}\n")));
    let json = HeaderValue::from_static("application/json");
    page.headers_mut().insert(header::CONTENT_TYPE, json);
    page
}

fn upstream(upstream: &Upstream) -> Value {
    let mut page = upstream.counters.json();
    page["name"] = json!(upstream.name);
    if let Some(slots) = &upstream.slots {
        page["in_flight"] = json!(slots.in_flight(&()));
    }
    if let Some(budget) = &upstream.budget {
        let snapshot = budget.snapshot();
        page["queued"] = json!(snapshot.queued);
        let limits = snapshot.limits.iter().map(|limit| {
            json!({
                "name": limit.name,
                "capacity": limit.capacity,
                "used": limit.used,
                "held": limit.held,
            })
        });
        page["limits"] = limits.collect();
        let classes = snapshot.classes.iter().map(|class| {
            json!({ "name": class.name, "granted": class.granted, "refused": class.refused })
        });
        page["classes"] = classes.collect();
    }
    page
}
