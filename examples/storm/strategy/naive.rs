//! The loop that everybody writes first.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::{sleep, timeout};
use tower_outcome::Template;
use tower_outcome_testkit::Venue;

use super::{Belief, Strategy};
use crate::road::Road;
use crate::scenario::{Call, PATIENCE, SECOND};
use crate::{session, signing};

const TRIES: usize = 3;

/// Tries three times, a second apart, whatever went wrong, and waits ten seconds for each answer. Signs once.
#[derive(Clone)]
pub(crate) struct Naive {
    client: Client<Road, Full<Bytes>>,
    template: Template,
    session: Arc<session::Shared>,
    log_in: Request<Bytes>,
}

// === impl Naive ===

impl Naive {
    pub(crate) fn new(venue: &Venue) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            session: Arc::default(),
            log_in: Call::log_in().request(venue)?,
            template: signing::template()?,
            client: Client::builder(TokioExecutor::new()).build(Road::new()?),
        })
    }

    /// Sends a request once and reads the answer.
    async fn attempt(&self, mut request: Request<Full<Bytes>>) -> Option<Bytes> {
        self.session.put_on(&mut request, || self.log_in()).await;
        let response = self.client.request(request).await.ok()?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.session.renew(|| self.log_in()).await;
        }
        read(response).await
    }

    async fn log_in(&self) -> Option<Bytes> {
        let request = self.log_in.clone().map(Full::new);
        let response = timeout(PATIENCE, self.client.request(request)).await;
        read(response.ok()?.ok()?).await
    }
}

/// Reads an answer, if it is a good one.
async fn read(response: Response<Incoming>) -> Option<Bytes> {
    if !response.status().is_success() {
        return None;
    }
    Some(response.into_body().collect().await.ok()?.to_bytes())
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
