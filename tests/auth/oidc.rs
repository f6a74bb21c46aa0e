//! Against an authorization server that this project did not write: npm's oidc-provider.

use std::{io::Write, path::PathBuf, process::Stdio};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::JoinSet,
};
use tower::{Layer, Service, ServiceExt};
use tower_outcome::{
    AuthRefreshLayer, BoxError, Credentials,
    auth_refresh::{MemoryStore, OAuth2, Secret},
};

type Hyper = Client<HttpConnector, Full<Bytes>>;

struct Server {
    url: String,
    client: Hyper,
    /// Ends with its standard input.
    _process: Child,
}

/// Where `tests/run` installs the server; `None` after a plain `cargo test`, which cannot.
fn modules() -> Option<PathBuf> {
    let modules = match std::env::var_os("OIDC_MODULES") {
        Some(modules) => PathBuf::from(modules),
        None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../oidc"),
    };
    if modules.join("node_modules/oidc-provider").is_dir() {
        return Some(modules);
    }
    assert!(
        std::env::var_os("CI").is_none() && std::env::var_os("OIDC_MODULES").is_none(),
        "oidc-provider is not installed in {}",
        modules.display()
    );
    // Past the capture of a test's output, or it would look as if it had been tried.
    let what = "not tried: tests/run installs oidc-provider, which needs node and npm";
    let _ = writeln!(std::io::stderr(), "{what}");
    None
}

// === impl Server ===

impl Server {
    async fn start() -> Option<Self> {
        let mut process = Command::new("node")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/oidc/server.mjs"))
            .env("OIDC_MODULES", modules()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().expect("the server starts");
        Some(Self {
            url,
            client: Client::builder(TokioExecutor::new()).build_http(),
            _process: process,
        })
    }

    async fn ask(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.url);
        let request = Request::post(url).body(Full::default()).unwrap();
        let response = self.client.request(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).unwrap()
    }

    fn token_url(&self) -> String {
        format!("{}/token", self.url)
    }

    /// Sends an order and returns the status.
    fn order(
        &self,
        credentials: &Credentials,
        operation: String,
    ) -> impl Future<Output = u16> + use<> {
        let service = AuthRefreshLayer::new(credentials.clone()).layer(self.client.clone());
        let request = Request::post(format!("{}/orders", self.url))
            .header("x-operation-id", operation)
            .body(Full::from("buy 100"))
            .unwrap();
        async move { answer(service, request).await }
    }
}

async fn answer<S, B>(service: S, request: Request<Full<Bytes>>) -> u16
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body,
{
    let response = service.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let _ = response.into_body().collect().await;
    status
}

/// Sends a request to the token endpoint, with a client of its own.
fn sender() -> impl Fn(Request<Vec<u8>>) -> Sending + Send + Sync + 'static {
    let client: Hyper = Client::builder(TokioExecutor::new()).build_http();
    move |request| {
        let client = client.clone();
        Box::pin(async move {
            let response = client.request(request.map(Full::from)).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Response::from_parts(head, body.to_vec()))
        })
    }
}

type Sending = std::pin::Pin<Box<dyn Future<Output = Result<Response<Vec<u8>>, BoxError>> + Send>>;

/// Has sessions die while many orders are under way, round after round.
async fn rounds(server: &Server, credentials: &[Credentials]) {
    const ROUNDS: usize = 5;
    const ORDERS: usize = 100;

    for round in 0..ROUNDS {
        let mut orders = JoinSet::new();
        for number in 0..ORDERS {
            let credentials = &credentials[number % credentials.len()];
            orders.spawn(server.order(credentials, format!("{round}-{number}")));
        }
        while let Some(status) = orders.join_next().await {
            assert_eq!(status.unwrap(), 200);
        }
        server.ask("/expire").await;
    }
    let counts = server.ask("/counts").await;
    let applied = counts["applied"].as_object().unwrap();
    assert_eq!(applied.len(), ROUNDS * ORDERS);
    assert!(applied.values().all(|times| times == 1), "nothing twice");
    assert_eq!(
        counts["tokens"], ROUNDS,
        "one token for each session: {counts}"
    );
    assert_eq!(counts["errors"], Value::Array(Vec::new()));
    assert_eq!(counts["revoked"], 0, "no refresh token was spent twice");
}

fn credentials(server: &Server, source: OAuth2) -> tower_outcome::auth_refresh::CredentialsBuilder {
    Credentials::builder("oidc", source)
        .origin(&server.url)
        .min_interval(std::time::Duration::from_millis(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_credentials_under_load() {
    let Some(server) = Server::start().await else {
        return;
    };
    let source = OAuth2::builder(server.token_url(), "desk")
        .client_secret("desk-secret")
        .client_credentials(sender())
        .unwrap();
    let credentials = credentials(&server, source).build().unwrap();
    rounds(&server, &[credentials]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotating_refresh_tokens_under_load_are_never_reused() {
    let Some(server) = Server::start().await else {
        return;
    };
    let first = server.ask("/seed").await;
    let first = first["refresh_token"].as_str().unwrap();
    // Two that share a store, as two processes would.
    let store = MemoryStore::new();
    let customers: Vec<Credentials> = (0..2)
        .map(|_| {
            let source = OAuth2::builder(server.token_url(), "human")
                .client_secret("human-secret")
                .refresh_token(Some(Secret::new(first)), sender())
                .unwrap();
            let credentials = credentials(&server, source);
            credentials.store(store.clone()).build().unwrap()
        })
        .collect();
    rounds(&server, &customers).await;
    let counts = server.ask("/counts").await;
    assert_eq!(counts["consumed"], counts["tokens"]);
}

#[tokio::test]
async fn a_refresh_token_that_was_spent_is_dead_and_the_server_is_not_asked_again() {
    let Some(server) = Server::start().await else {
        return;
    };
    let first = server.ask("/seed").await;
    let first = Secret::new(first["refresh_token"].as_str().unwrap());
    let customer = || {
        let source = OAuth2::builder(server.token_url(), "human")
            .client_secret("human-secret")
            .refresh_token(Some(first.clone()), sender())
            .unwrap();
        credentials(&server, source).build().unwrap()
    };
    assert!(customer().get(None).await.is_ok());
    let late = customer();
    for _ in 0..3 {
        assert!(late.get(None).await.unwrap_err().is_dead());
    }
    let counts = server.ask("/counts").await;
    assert_eq!(counts["errors"].as_array().unwrap().len(), 1, "{counts}");
}
