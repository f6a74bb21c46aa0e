//! Signatures of any scheme as a demand.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{Answer, Demand, Request};

/// Demands a signature of whatever scheme a function verifies.
///
/// The function is given the request as it was received. What it finds in a signature that is right,
/// the venue holds against it: a [time](Signed::time) must be within the [window](Self::window), a
/// [nonce](Signed::nonce) above all before of the same client (header `x-client`), a
/// [token](Signed::token) new.
///
/// | what is wrong | answer |
/// |---|---|
/// | the signature, or no request can be made of what was received | 401, `{"error":"signature"}` |
/// | the time | 400, `{"error":"timestamp"}` |
/// | the nonce or the token | 400, `{"error":"nonce"}` |
///
/// ```
/// use std::time::Duration;
/// use tower_outcome_testkit::{Signature, Signed, Venue};
///
/// # fn main() -> Result<(), tower_outcome_testkit::StartError> {
/// // Stands for a verifier: the path, backwards.
/// let demand = Signature::new(|request: &http::Request<bytes::Bytes>| {
///     let sent = request.headers().get("x-sign")?.to_str().ok()?;
///     let right: String = request.uri().path().chars().rev().collect();
///     (sent == right).then(Signed::new)
/// });
/// let venue = Venue::builder().demand(demand).start()?;
/// # let _ = venue;
/// # Ok(())
/// # }
/// ```
pub struct Signature {
    verify: Box<Verify>,
    window: Option<Window>,
    last: HashMap<Option<String>, u64>,
    tokens: HashSet<String>,
}

type Verify = dyn FnMut(&http::Request<Bytes>) -> Option<Signed> + Send;

/// How far a time may be from the venue's, either way, and what that is.
struct Window {
    span: Duration,
    clock: Box<dyn Fn() -> Duration + Send>,
}

/// What is in a signature that is right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Signed {
    time: Option<Duration>,
    nonce: Option<u64>,
    token: Option<String>,
}

// === impl Signature ===

impl Signature {
    /// Demands a signature in which `verify` finds something; `None` says that it is wrong.
    #[must_use]
    pub fn new(
        verify: impl FnMut(&http::Request<Bytes>) -> Option<Signed> + Send + 'static,
    ) -> Self {
        Self {
            verify: Box::new(verify),
            window: None,
            last: HashMap::new(),
            tokens: HashSet::new(),
        }
    }

    /// Demands a time within `window` of what `clock` says, the time since the Unix epoch. Default:
    /// any, and none.
    #[must_use]
    pub fn window(
        mut self,
        window: Duration,
        clock: impl Fn() -> Duration + Send + 'static,
    ) -> Self {
        self.window = Some(Window {
            span: window,
            clock: Box::new(clock),
        });
        self
    }

    fn accept(&mut self, request: &Request) -> Result<(), Answer> {
        let received = request.to_http().ok();
        let signed = received.and_then(|received| (self.verify)(&received));
        let Some(signed) = signed else {
            return Err(Answer::json(401, r#"{"error":"signature"}"#));
        };
        if let Some(window) = &self.window {
            let now = (window.clock)();
            let fresh = |time: Duration| time.abs_diff(now) <= window.span;
            if !signed.time.is_some_and(fresh) {
                return Err(Answer::json(400, r#"{"error":"timestamp"}"#));
            }
        }
        let client = request.client().map(str::to_owned);
        let rises = match (signed.nonce, self.last.get(&client)) {
            (Some(nonce), Some(last)) => nonce > *last,
            // Whoever has begun to count goes on.
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let used = |token: &String| self.tokens.contains(token);
        if !rises || signed.token.as_ref().is_some_and(used) {
            return Err(Answer::json(400, r#"{"error":"nonce"}"#));
        }
        if let Some(nonce) = signed.nonce {
            self.last.insert(client, nonce);
        }
        self.tokens.extend(signed.token);
        Ok(())
    }
}

impl Demand for Signature {
    fn check(&mut self, request: &Request) -> Result<(), Answer> {
        self.accept(request)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signature")
            .field("window", &self.window.as_ref().map(|window| window.span))
            .finish_non_exhaustive()
    }
}

// === impl Signed ===

impl Signed {
    /// Found nothing that ages or is used up.
    pub const fn new() -> Self {
        Self {
            time: None,
            nonce: None,
            token: None,
        }
    }

    /// Found a time, since the Unix epoch.
    pub const fn time(mut self, since_epoch: Duration) -> Self {
        self.time = Some(since_epoch);
        self
    }

    /// Found a number that has to rise. Once a client has sent one, it has to send one every time.
    pub const fn nonce(mut self, nonce: u64) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// Found a text that is good for once.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }
}
