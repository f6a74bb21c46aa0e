//! A gateway that runs in a process of its own, and its callers.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, request};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    task::JoinHandle,
};
use tower_outcome_testkit::Venue;

/// The environment variable with the arguments of the gateway, one a line.
pub(crate) const ARGS: &str = "GATEWAY_ARGS";

/// A gateway in a process of its own, which ends with it.
pub(crate) struct Gateway {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    errors: JoinHandle<String>,
    url: String,
}

/// What a gateway that has ended leaves.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// What a caller got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Writes a file for a gateway.
pub(crate) fn file(text: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("gateway-{}-{number}.toml", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A file with one upstream, and more of it.
pub(crate) fn upstream(venue: &Venue, more: &str) -> String {
    let base = venue.url("");
    format!(
        "listen = \"127.0.0.1:0\"\n\n[[upstream]]\nname = \"venue\"\nprefix = \"/venue\"\nbase = \"{base}\"\n{more}"
    )
}

fn command(args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["the_gateway", "--exact", "--nocapture"])
        .env(ARGS, args.join("\n"))
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs a gateway that is to end by itself.
pub(crate) async fn run(args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let output = command(args, environment).output().await.unwrap();
    Ended {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

// === impl Gateway ===

impl Gateway {
    /// Starts one in front of a venue.
    pub(crate) async fn before(venue: &Venue, more: &str) -> Self {
        Self::start(&upstream(venue, more), &[]).await
    }

    /// Starts one with a file, and waits until it listens.
    pub(crate) async fn start(text: &str, environment: &[(&str, &str)]) -> Self {
        let path = file(text);
        let mut child = command(&[path.to_str().unwrap()], environment)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stderr = child.stderr.take().unwrap();
        let errors = tokio::spawn(async move {
            let mut text = String::new();
            stderr.read_to_string(&mut text).await.unwrap();
            text
        });
        let mut gateway = Self {
            child,
            lines,
            errors,
            url: String::new(),
        };
        let Some(said) = gateway.says("gateway: listening on ").await else {
            panic!("it does not listen: {}", gateway.errors.await.unwrap());
        };
        gateway.url = said;
        gateway
    }

    /// Waits until it says something that begins like this; returns the rest of the line.
    pub(crate) async fn says(&mut self, begin: &str) -> Option<String> {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            // The harness writes to the same line.
            if let Some((_, rest)) = line.split_once(begin) {
                return Some(rest.to_owned());
            }
        }
        None
    }

    /// Returns its host and port.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Asks it to stop.
    pub(crate) async fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.child.id().unwrap());
        let killed = Command::new("sh").args(["-c", &kill]).status().await;
        assert!(killed.unwrap().success());
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(mut self) -> Ended {
        let mut output = String::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            output += &line;
            output.push('\n');
        }
        Ended {
            code: self.child.wait().await.unwrap().code(),
            output,
            errors: self.errors.await.unwrap(),
        }
    }

    /// Starts a request that acts.
    pub(crate) fn post(&self, path: &str, operation: &str) -> request::Builder {
        Request::post(format!("{}{path}", self.url)).header("x-operation-id", operation)
    }

    /// Starts a request that only asks.
    pub(crate) fn get(&self, path: &str) -> request::Builder {
        Request::get(format!("{}{path}", self.url))
    }

    /// Reads the page `/status`, of its one upstream.
    pub(crate) async fn status(&self) -> Value {
        let page = send(self.get("/status"), "").await;
        page.json()["upstreams"][0].clone()
    }
}

/// Sends a request.
pub(crate) async fn send(request: request::Builder, body: &'static str) -> Got {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let request = request.body(Full::new(Bytes::from_static(body.as_bytes())));
    let response = client.request(request.unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    Got {
        status: head.status,
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

// === impl Got ===

impl Got {
    /// Returns a header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether it is a problem of this kind, which says of itself what its status is.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, kind: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("tag:gateway.example,2026:{kind}"));
        assert!(!problem["title"].as_str().unwrap().is_empty());
        problem
    }
}
