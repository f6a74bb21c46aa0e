//! The loop that everybody writes first.

use std::error::Error;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::{sleep, timeout};
use tower_outcome::Template;

use super::{Belief, Strategy};
use crate::road::Road;
use crate::scenario::{PATIENCE, SECOND};
use crate::signing;

const TRIES: usize = 3;

/// Tries three times, a second apart, whatever went wrong, and waits ten seconds for each answer. Signs once.
#[derive(Clone)]
pub(crate) struct Naive {
    client: Client<Road, Full<Bytes>>,
    template: Template,
}

// === impl Naive ===

impl Naive {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            template: signing::template()?,
            client: Client::builder(TokioExecutor::new()).build(Road::new()?),
        })
    }

    /// Sends a request once and reads the answer.
    async fn attempt(&self, request: Request<Full<Bytes>>) -> Option<Bytes> {
        let response = self.client.request(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        Some(response.into_body().collect().await.ok()?.to_bytes())
    }
}

impl Strategy for Naive {
    const NAME: &'static str = "naive";

    async fn send(&self, request: Request<Bytes>) -> Belief {
        // Before the loop, as one does.
        let Ok(request) = signing::sign(&self.template, request) else {
            return Belief::Failed;
        };
        for _ in 0..TRIES {
            if let Ok(Some(answer)) = timeout(PATIENCE, self.attempt(request.clone())).await {
                return Belief::Done(answer);
            }
            sleep(SECOND).await;
        }
        Belief::Failed
    }
}
