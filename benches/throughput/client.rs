//! The same client twice: bare, and below the whole stack.

use std::{
    future::Future,
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::task::JoinSet;
use tower::{BoxError, Service, ServiceExt};
use tower_outcome::{
    AuthRefreshLayer, Credential, Credentials, FetchError, Limit, Outbound, RateBudget, RetryLayer,
    Timeouts, WitnessConnector, outbound::SharedClient,
};

use crate::{
    Protocol,
    signer::{SIGNATURE, SIGNED, sign},
};

/// What is sent: a body that is shared and not copied.
type Call = Request<Full<Bytes>>;

/// Sends so many requests, and returns when all are answered.
pub(crate) type Send = Box<dyn Fn(u32) -> JoinSet<Result<(), BoxError>>>;

/// Requests under way at once.
const CONCURRENCY: u32 = 16;

const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImtleXN0b3JlIn0";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A client by itself. Its requests have what the stack adds to the others, so that the same goes over the
/// wire and the server has the same work.
pub(crate) fn bare(protocol: Protocol, server: SocketAddr) -> Send {
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .http2_only(protocol == Protocol::Http2)
        .retry_canceled_requests(false)
        .build::<_, Full<Bytes>>(connector());
    let bearer = HeaderValue::from_str(&format!("Bearer {TOKEN}")).expect("is a value");
    sender(client, move || {
        let mut request = order(server);
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, bearer.clone());
        headers.insert(SIGNED, SIGNATURE);
        request
    })
}

/// The client below Deadline, Retry, AuthRefresh, RateLimit, Sign, Timeout and Witness.
pub(crate) fn full(protocol: Protocol, server: SocketAddr) -> Send {
    let second = Duration::from_secs(1);
    let origin = format!("http://{server}");
    // Far away: nothing ever waits.
    let limit = Limit::sliding("requests", 10_000_000, second);
    let outbound = Outbound::builder()
        .timeouts(Timeouts::builder())
        .retry(RetryLayer::builder())
        .auth_refresh(AuthRefreshLayer::builder(credentials(&origin)))
        .rate_limit(RateBudget::builder("venue").limit(limit))
        .sign(sign(&origin))
        .build()
        .expect("a stack that can work");
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .http2_only(protocol == Protocol::Http2)
        .retry_canceled_requests(false)
        .build(WitnessConnector::new(connector()));
    sender(outbound.service(SharedClient::new(client)), move || {
        order(server)
    })
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector
}

/// A token that is good for an hour.
fn credentials(origin: &str) -> Credentials {
    let source = |_| async { Err::<Credential, _>(FetchError::dead("there is one")) };
    let credentials = Credentials::builder("venue", source).origin(origin);
    let credentials = credentials.build().expect("the origin is valid");
    let token = Credential::new(TOKEN).with_lifetime(Duration::from_secs(3600));
    let log_in = pin!(credentials.log_in(token));
    // Nothing is stored, so nothing is waited for.
    let logged_in = log_in.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(logged_in, Poll::Ready(Ok(_))), "the token is good");
    credentials.clone()
}

/// An order that may be sent again.
fn order(server: SocketAddr) -> Call {
    const BODY: Bytes = Bytes::from_static(
        br#"{"symbol":"ACME","side":"buy","type":"limit","price":"101.25","quantity":"100","client":"7"}"#,
    );
    Request::post(format!("http://{server}/orders"))
        .header(header::CONTENT_TYPE, "application/json")
        .header("x-api-key", "0123456789abcdef0123456789abcdef")
        .header(IDEMPOTENCY_KEY, "6f1c2a34-5d0e-4c8b-9a27-1b7d3e5f9c02")
        .header("x-timestamp", "1767225600000")
        .body(Full::new(BODY))
        .expect("is a request")
}

fn sender<S, RB>(service: S, make: impl Fn() -> Call + Clone + std::marker::Send + 'static) -> Send
where
    S: Service<Call, Response = Response<RB>, Error: Into<BoxError>, Future: std::marker::Send>
        + Clone
        + std::marker::Send
        + 'static,
    RB: Body<Data: std::marker::Send, Error: Into<BoxError>> + std::marker::Send,
{
    Box::new(move |calls| {
        let mut workers = JoinSet::new();
        for worker in 0..CONCURRENCY {
            let (mut service, make) = (service.clone(), make.clone());
            let calls = calls / CONCURRENCY + u32::from(worker < calls % CONCURRENCY);
            workers.spawn(async move {
                for _ in 0..calls {
                    let ready = service.ready().await.map_err(Into::into)?;
                    let response = ready.call(make()).await.map_err(Into::into)?;
                    if !response.status().is_success() {
                        return Err(format!("answered with {}", response.status()).into());
                    }
                    response.into_body().collect().await.map_err(Into::into)?;
                }
                Ok(())
            });
        }
        workers
    })
}
