//! How a program logs in, and what that looks like on the wire.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use serde::Deserialize;
use tokio::sync::Mutex;
use tower_outcome_testkit::Logins;

/// Where the venue hands out sessions.
pub(crate) const PATH: &str = "/session";

/// The operation under which the venue's ledger knows each log-in.
pub(crate) const CALL: &str = "log-in";

/// When all sessions die, since the market opened: amid the orders, and while the sweep is under way.
pub(crate) const DIES: Duration = Duration::from_millis(13 * 50);

/// The session that the calls of a program share, as most programs keep it.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Option<HeaderValue>>);

#[derive(Deserialize)]
struct Document {
    access_token: String,
}

/// The venue's side.
pub(crate) fn logins() -> Logins {
    Logins::at(PATH)
}

/// Reads the token out of an answer.
pub(crate) fn token(answer: &[u8]) -> serde_json::Result<String> {
    serde_json::from_slice(answer).map(|Document { access_token }| access_token)
}

// === impl Shared ===

impl Shared {
    /// Puts the session onto a request, and logs in where there is none yet.
    pub(crate) async fn put_on<B>(
        &self,
        request: &mut Request<B>,
        log_in: impl AsyncFnOnce() -> Option<Bytes>,
    ) {
        let mut shared = self.0.lock().await;
        if shared.is_none() {
            *shared = log_in().await.as_deref().and_then(bearer);
        }
        if let Some(session) = &*shared {
            let session = session.clone();
            request.headers_mut().insert(header::AUTHORIZATION, session);
        }
    }

    /// Logs in once more, as everybody does who met a 401.
    pub(crate) async fn renew(&self, log_in: impl AsyncFnOnce() -> Option<Bytes>) {
        if let Some(session) = log_in().await.as_deref().and_then(bearer) {
            *self.0.lock().await = Some(session);
        }
    }
}

fn bearer(answer: &[u8]) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("Bearer {}", token(answer).ok()?)).ok()
}
