//! tower's own `Retry`, with the policy that one finds in most programs.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::retry::Retry;
use tower::retry::backoff::{
    Backoff, ExponentialBackoff, ExponentialBackoffMaker, InvalidBackoff, MakeBackoff,
};
use tower::util::rng::HasherRng;
use tower::{Layer, ServiceExt, retry};

use super::{Belief, Strategy};
use crate::scenario::SECOND;

const RETRIES: usize = 3;

/// Retries errors, 429 and 5xx, with exponential backoff.
#[derive(Clone)]
pub(crate) struct TowerRetry {
    service: Retry<Policy, Client<HttpConnector, Full<Bytes>>>,
}

#[derive(Clone)]
struct Policy {
    left: usize,
    backoff: ExponentialBackoff,
}

// === impl TowerRetry ===

impl TowerRetry {
    pub(crate) fn new() -> Result<Self, InvalidBackoff> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let mut backoff =
            ExponentialBackoffMaker::new(SECOND / 2, 30 * SECOND, 0.5, HasherRng::default())?;
        let policy = Policy {
            left: RETRIES,
            backoff: backoff.make_backoff(),
        };
        Ok(Self {
            service: retry::RetryLayer::new(policy).layer(client),
        })
    }
}

impl Strategy for TowerRetry {
    const NAME: &'static str = "tower-retry";

    async fn send(&self, request: Request<Full<Bytes>>) -> Belief {
        match self.service.clone().oneshot(request).await {
            Ok(response) if response.status().is_success() => {
                match response.into_body().collect().await {
                    Ok(body) => Belief::Done(body.to_bytes()),
                    Err(_) => Belief::Failed,
                }
            }
            _ => Belief::Failed,
        }
    }
}

// === impl Policy ===

impl retry::Policy<Request<Full<Bytes>>, Response<Incoming>, Error> for Policy {
    type Future = <ExponentialBackoff as Backoff>::Future;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<Incoming>, Error>,
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
