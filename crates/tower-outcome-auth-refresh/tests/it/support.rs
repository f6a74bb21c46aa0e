//! A venue that knows which sessions are open, and a source that is told what to say.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use tokio::sync::Notify;
use tower::{Layer, Service, ServiceExt};
use tower_outcome_auth_refresh::{
    AuthRefresh, AuthRefreshLayer, Credential, Credentials, CredentialsBuilder, FetchError,
    TokenSource, Unavailable, UnavailableKind,
};
use tower_outcome_core::{BoxError, Failure, ManualClock, SplitMix64, peek::PeekBody};

pub(crate) type Req = Request<Full<Bytes>>;
pub(crate) type Res = Response<Full<Bytes>>;
pub(crate) type Reply = Result<Response<PeekBody<Full<Bytes>>>, BoxError>;

pub(crate) const ORIGIN: &str = "https://venue.test";
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A source that says what it is told, one after the other, and the last for ever.
#[derive(Clone)]
pub(crate) struct Source(Arc<Inner>);

struct Inner {
    script: Mutex<VecDeque<Say>>,
    calls: AtomicUsize,
    previous: Mutex<Vec<Option<Credential>>>,
    takes: Mutex<Duration>,
    gate: Mutex<Option<Arc<Notify>>>,
}

#[derive(Clone)]
pub(crate) enum Say {
    /// Returns a token named after the call (`token-1`) that lives so long.
    Token(Option<Duration>),
    Exactly(Credential),
    Transient,
    After(Duration),
    Dead,
    Panic,
    Never,
}

// === impl Source ===

impl Source {
    pub(crate) fn new(script: impl IntoIterator<Item = Say>) -> Self {
        Self(Arc::new(Inner {
            script: Mutex::new(script.into_iter().collect()),
            calls: AtomicUsize::new(0),
            previous: Mutex::default(),
            takes: Mutex::new(Duration::ZERO),
            gate: Mutex::new(None),
        }))
    }

    pub(crate) fn tokens(lifetime: Duration) -> Self {
        Self::new([Say::Token(Some(lifetime))])
    }

    pub(crate) fn endless() -> Self {
        Self::new([Say::Token(None)])
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn takes(self, time: Duration) -> Self {
        *self.0.takes.lock().unwrap() = time;
        self
    }

    /// Has calls wait until they are let through.
    pub(crate) fn shut(&self) -> Arc<Notify> {
        let gate = Arc::new(Notify::new());
        *self.0.gate.lock().unwrap() = Some(Arc::clone(&gate));
        gate
    }

    pub(crate) fn previous(&self) -> Vec<Option<Credential>> {
        self.0.previous.lock().unwrap().clone()
    }
}

impl TokenSource for Source {
    async fn fetch(&self, previous: Option<Credential>) -> Result<Credential, FetchError> {
        let inner = &*self.0;
        let number = inner.calls.fetch_add(1, Ordering::SeqCst) + 1;
        inner.previous.lock().unwrap().push(previous);
        let takes = *inner.takes.lock().unwrap();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let gate = inner.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.notified().await;
        }
        let say = {
            let mut script = inner.script.lock().unwrap();
            if script.len() > 1 {
                script.pop_front()
            } else {
                script.front().cloned()
            }
        };
        match say.expect("something to say") {
            Say::Token(lifetime) => {
                let credential = Credential::new(format!("token-{number}"));
                Ok(match lifetime {
                    Some(lifetime) => credential.with_lifetime(lifetime),
                    None => credential,
                })
            }
            Say::Exactly(credential) => Ok(credential),
            Say::Transient => Err(FetchError::transient("the token server is down")),
            Say::After(after) => Err(FetchError::transient("busy").with_after(after)),
            Say::Dead => Err(FetchError::dead("invalid_grant")),
            Say::Panic => panic!("the source panics, as it was told"),
            Say::Never => std::future::pending().await,
        }
    }
}

/// Takes every token but those it was told to reject, and none at all for `/admin`; says with which token each request came.
#[derive(Clone, Default)]
pub(crate) struct Venue(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    rejected: Vec<String>,
    rejects_all: bool,
    seen: Vec<String>,
    latency: Duration,
}

// === impl Venue ===

impl Venue {
    pub(crate) fn rejecting(tokens: &[&str]) -> Self {
        let venue = Self::default();
        for token in tokens {
            venue.reject(token);
        }
        venue
    }

    pub(crate) fn reject(&self, token: &str) {
        self.0
            .lock()
            .unwrap()
            .rejected
            .push(format!("Bearer {token}"));
    }

    pub(crate) fn reject_all(&self) {
        self.0.lock().unwrap().rejects_all = true;
    }

    pub(crate) fn latency(&self, latency: Duration) {
        self.0.lock().unwrap().latency = latency;
    }

    /// The tokens of all requests, in order; `-` where there was none.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().seen.clone()
    }
}

impl Service<Req> for Venue {
    type Response = Res;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Res, BoxError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let mut book = self.0.lock().unwrap();
        let header = request.headers().get(header::AUTHORIZATION);
        let token = header
            .map_or("-", |value| value.to_str().unwrap())
            .to_owned();
        let is_good = !book.rejects_all
            && !book.rejected.contains(&token)
            && request.uri().path() != "/admin";
        book.seen
            .push(token.trim_start_matches("Bearer ").to_owned());
        let latency = book.latency;
        Box::pin(async move {
            if latency.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(latency).await;
            }
            Ok(status(if is_good { 200 } else { 401 }))
        })
    }
}

/// Everything that a test on paused time needs.
pub(crate) struct Stage {
    pub(crate) source: Source,
    pub(crate) venue: Venue,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) credentials: Credentials,
    pub(crate) service: AuthRefresh<Venue>,
}

// === impl Stage ===

impl Stage {
    pub(crate) fn new(source: Source) -> Self {
        Self::with(source, Venue::default(), |builder| builder)
    }

    pub(crate) fn with(
        source: Source,
        venue: Venue,
        change: impl FnOnce(CredentialsBuilder) -> CredentialsBuilder,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(start()));
        let builder = Credentials::builder("venue", source.clone())
            .origin(ORIGIN)
            .clock(clock.clone())
            .random(Arc::new(SplitMix64::seeded(1)));
        let credentials = change(builder).build().unwrap();
        let service = AuthRefreshLayer::new(credentials.clone()).layer(venue.clone());
        Self {
            source,
            venue,
            clock,
            credentials,
            service,
        }
    }

    /// Sends a request and returns the status, or why there is no credential.
    pub(crate) async fn call(&self) -> Result<u16, UnavailableKind> {
        match self.service.clone().oneshot(post()).await {
            Ok(response) => Ok(response.status().as_u16()),
            Err(error) => Err(kind(&error)),
        }
    }

    /// Lets time pass on both clocks, and whatever is due happen.
    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        tokio::time::sleep(time).await;
    }

    /// Lets what runs in the background run.
    pub(crate) async fn settle(&self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}

pub(crate) fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

pub(crate) fn post() -> Req {
    Request::post("https://venue.test/orders")
        .body(Full::from("buy 100"))
        .unwrap()
}

pub(crate) fn status(code: u16) -> Res {
    Response::builder()
        .status(code)
        .body(Full::from(code.to_string()))
        .unwrap()
}

pub(crate) fn unavailable(error: &BoxError) -> &Unavailable {
    let failure = Failure::of(&**error).expect("a failure");
    let source = failure.source_ref().expect("a cause");
    source.downcast_ref().expect("no credential")
}

pub(crate) fn kind(error: &BoxError) -> UnavailableKind {
    unavailable(error).kind()
}
