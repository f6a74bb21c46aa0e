//! tower's own `Retry`, with the policy that one finds in most programs.

use std::error::Error;
use std::sync::Arc;

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
use tower_outcome_testkit::Venue;

use super::{Belief, Strategy};
use crate::road::Road;
use crate::scenario::{Call, PATIENCE, SECOND};
use crate::{session, signing};

const RETRIES: usize = 3;

/// Retries errors, timeouts, 429 and 5xx, with exponential backoff.
#[derive(Clone)]
pub(crate) struct TowerRetry {
    service: Retry<Policy, Timeout<Client<Road, Full<Bytes>>>>,
    template: Template,
    session: Arc<session::Shared>,
    log_in: Request<Bytes>,
}

#[derive(Clone)]
struct Policy {
    left: usize,
    backoff: ExponentialBackoff,
}

// === impl TowerRetry ===

impl TowerRetry {
    pub(crate) fn new(venue: &Venue) -> Result<Self, Box<dyn Error>> {
        let client = Client::builder(TokioExecutor::new()).build(Road::new()?);
        let mut backoff =
            ExponentialBackoffMaker::new(SECOND / 2, 30 * SECOND, 0.5, HasherRng::default())?;
        let policy = Policy {
            left: RETRIES,
            backoff: backoff.make_backoff(),
        };
        Ok(Self {
            session: Arc::default(),
            log_in: Call::log_in().request(venue)?,
            template: signing::template()?,
            service: ServiceBuilder::new()
                .layer(retry::RetryLayer::new(policy))
                .timeout(PATIENCE)
                .service(client),
        })
    }
}

impl TowerRetry {
    async fn log_in(&self) -> Option<Bytes> {
        let request = self.log_in.clone().map(Full::new);
        read(self.service.clone().oneshot(request).await.ok()?).await
    }
}

/// Reads an answer, if it is a good one.
async fn read(response: Response<Incoming>) -> Option<Bytes> {
    if !response.status().is_success() {
        return None;
    }
    // tower's Timeout ends with the head of the answer.
    let body = time::timeout(PATIENCE, response.into_body().collect()).await;
    Some(body.ok()?.ok()?.to_bytes())
}

impl Strategy for TowerRetry {
    const NAME: &'static str = "tower-retry";

    async fn send(&self, request: Request<Bytes>) -> Belief {
        // A policy is shown a copy of the request, so it is signed above.
        let Ok(mut request) = signing::sign(&self.template, request) else {
            return Belief::Failed;
        };
        self.session.put_on(&mut request, || self.log_in()).await;
        let mut result = self.service.clone().oneshot(request.clone()).await;
        let is_over = |response: &Response<_>| response.status() == StatusCode::UNAUTHORIZED;
        if result.as_ref().is_ok_and(is_over) {
            self.session.renew(|| self.log_in()).await;
            self.session.put_on(&mut request, || self.log_in()).await;
            result = self.service.clone().oneshot(request).await;
        }
        match result {
            Ok(response) => read(response).await.map_or(Belief::Failed, Belief::Done),
            Err(_) => Belief::Failed,
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
