//! tower's own `Retry`, with the policy that one finds in most programs.

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time;
use tower::retry::Retry;
use tower::retry::backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff};
use tower::timeout::Timeout;
use tower::util::rng::HasherRng;
use tower::{BoxError, ServiceBuilder, ServiceExt, retry};
use tower_outcome::Template;

use super::{Belief, Strategy};
use crate::road::Road;
use crate::scenario::{PATIENCE, SECOND};
use crate::signing;

const RETRIES: usize = 3;

/// Retries errors, timeouts, 429 and 5xx, with exponential backoff.
#[derive(Clone)]
pub(crate) struct TowerRetry {
    service: Retry<Policy, Timeout<Client<Road, Full<Bytes>>>>,
    template: Template,
}

#[derive(Clone)]
struct Policy {
    left: usize,
    backoff: ExponentialBackoff,
}

// === impl TowerRetry ===

impl TowerRetry {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let client = Client::builder(TokioExecutor::new()).build(Road::new()?);
        let mut backoff =
            ExponentialBackoffMaker::new(SECOND / 2, 30 * SECOND, 0.5, HasherRng::default())?;
        let policy = Policy {
            left: RETRIES,
            backoff: backoff.make_backoff(),
        };
        Ok(Self {
            template: signing::template()?,
            service: ServiceBuilder::new()
                .layer(retry::RetryLayer::new(policy))
                .timeout(PATIENCE)
                .service(client),
        })
    }
}

impl Strategy for TowerRetry {
    const NAME: &'static str = "tower-retry";

    async fn send(&self, request: Request<Bytes>) -> Belief {
        // A policy is shown a copy of the request, so it is signed above.
        let Ok(request) = signing::sign(&self.template, request) else {
            return Belief::Failed;
        };
        match self.service.clone().oneshot(request).await {
            Ok(response) if response.status().is_success() => {
                // tower's Timeout ends with the head of the answer.
                match time::timeout(PATIENCE, response.into_body().collect()).await {
                    Ok(Ok(body)) => Belief::Done(body.to_bytes()),
                    _ => Belief::Failed,
                }
            }
            _ => Belief::Failed,
        }
    }
}

// === impl Policy ===

impl retry::Policy<Request<Full<Bytes>>, Response<Incoming>, BoxError> for Policy {
    type Future = <ExponentialBackoff as Backoff>::Future;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<Incoming>, BoxError>,
    ) -> Option<Self::Future> {
        let failed = match result {
            Ok(response) => {
                let status = response.status();
                status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
            }
            Err(_) => true,
        };
        if !failed || self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}
