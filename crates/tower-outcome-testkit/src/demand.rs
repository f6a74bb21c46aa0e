//! What a venue may demand of a request before it acts.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Answer, Request};

/// Something that a request must meet before the venue acts on it.
///
/// Demands are checked in order on a complete request that passed the limit; the first that is
/// not met answers it, and it is not applied. A replay of a stored answer must meet them too.
/// A closure `FnMut(&Request) -> Result<(), Answer>` is a demand.
pub trait Demand: Send + 'static {
    /// Checks a request.
    ///
    /// # Errors
    ///
    /// The answer for a request that does not meet the demand.
    fn check(&mut self, request: &Request) -> Result<(), Answer>;
}

/// Demands a fresh time, in milliseconds since the Unix epoch, in a header.
///
/// Missing, unreadable or too far from the venue's clock, before or after: 400.
pub struct FreshTimestamp {
    header: String,
    window: Duration,
    clock: Box<dyn Fn() -> Duration + Send>,
}

/// Demands a whole number in a header that rises strictly from request to request of a client.
///
/// Missing, unreadable or not above the last one that was met: 400.
#[derive(Debug)]
pub struct RisingNonce {
    header: String,
    last: HashMap<Option<String>, u64>,
}

/// Demands an open session: a header with a value that was opened and has not expired.
///
/// Anything else is answered 401. A cheap handle; clones share, so keep one to open and expire.
#[derive(Clone, Debug)]
pub struct Sessions {
    header: String,
    /// The values that are good, and for how many more requests. Shared with the venue's thread.
    open: Arc<Mutex<HashMap<String, Option<u64>>>>,
}

impl<F> Demand for F
where
    F: FnMut(&Request) -> Result<(), Answer> + Send + 'static,
{
    fn check(&mut self, request: &Request) -> Result<(), Answer> {
        self(request)
    }
}

// === impl FreshTimestamp ===

impl FreshTimestamp {
    /// Demands a time within `window` of what `clock` says, the time since the Unix epoch.
    #[must_use]
    pub fn new(
        header: impl Into<String>,
        window: Duration,
        clock: impl Fn() -> Duration + Send + 'static,
    ) -> Self {
        Self {
            header: header.into().to_ascii_lowercase(),
            window,
            clock: Box::new(clock),
        }
    }
}

impl Demand for FreshTimestamp {
    fn check(&mut self, request: &Request) -> Result<(), Answer> {
        let sent = request
            .header(&self.header)
            .and_then(|text| text.parse().ok())
            .map(Duration::from_millis);
        match sent {
            Some(sent) if sent.abs_diff((self.clock)()) <= self.window => Ok(()),
            _ => Err(Answer::json(400, r#"{"error":"timestamp"}"#)),
        }
    }
}

impl fmt::Debug for FreshTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreshTimestamp")
            .field("header", &self.header)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

// === impl RisingNonce ===

impl RisingNonce {
    /// Demands a nonce in this header, counted per client (header `x-client`).
    #[must_use]
    pub fn new(header: impl Into<String>) -> Self {
        Self {
            header: header.into().to_ascii_lowercase(),
            last: HashMap::new(),
        }
    }
}

impl Demand for RisingNonce {
    fn check(&mut self, request: &Request) -> Result<(), Answer> {
        let nonce: Option<u64> = request
            .header(&self.header)
            .and_then(|text| text.parse().ok());
        let client = request.client().map(str::to_owned);
        match (nonce, self.last.get(&client)) {
            (Some(nonce), last) if last.is_none_or(|last| nonce > *last) => {
                self.last.insert(client, nonce);
                Ok(())
            }
            _ => Err(Answer::json(400, r#"{"error":"nonce"}"#)),
        }
    }
}

// === impl Sessions ===

impl Sessions {
    /// Demands a session in this header; none is open.
    #[must_use]
    pub fn new(header: impl Into<String>) -> Self {
        Self {
            header: header.into().to_ascii_lowercase(),
            open: Arc::default(),
        }
    }

    /// Opens a session until it is expired by hand.
    pub fn open(&self, value: impl Into<String>) {
        self.insert(value.into(), None);
    }

    /// Opens a session that expires after so many requests.
    pub fn open_for(&self, value: impl Into<String>, requests: u64) {
        self.insert(value.into(), Some(requests));
    }

    /// Expires a session; a value that is not open is left alone.
    pub fn expire(&self, value: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(value);
    }

    fn insert(&self, value: String, requests: Option<u64>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(value, requests);
    }
}

impl Demand for Sessions {
    fn check(&mut self, request: &Request) -> Result<(), Answer> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = request
            .header(&self.header)
            .and_then(|value| open.get_mut(value));
        match session {
            Some(None) => Ok(()),
            Some(Some(left)) if *left > 0 => {
                *left -= 1;
                Ok(())
            }
            _ => Err(Answer::json(401, r#"{"error":"session"}"#)),
        }
    }
}
