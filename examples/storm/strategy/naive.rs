//! The loop that everybody writes first.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::time::sleep;

use super::{Belief, Strategy};
use crate::scenario::SECOND;

const TRIES: usize = 3;

/// Tries five times, a second apart, whatever went wrong.
#[derive(Clone)]
pub(crate) struct Naive {
    client: Client<HttpConnector, Full<Bytes>>,
}

// === impl Naive ===

impl Naive {
    pub(crate) fn new() -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }
}

impl Strategy for Naive {
    const NAME: &'static str = "naive";

    async fn send(&self, request: Request<Full<Bytes>>) -> Belief {
        for _ in 0..TRIES {
            if let Ok(response) = self.client.request(request.clone()).await {
                if response.status().is_success() {
                    if let Ok(body) = response.into_body().collect().await {
                        return Belief::Done(body.to_bytes());
                    }
                }
            }
            sleep(SECOND).await;
        }
        Belief::Failed
    }
}
