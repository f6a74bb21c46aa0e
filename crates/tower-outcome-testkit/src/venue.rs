//! A server that misbehaves on purpose.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::desk::{Desk, Handler, Open, Settings};
use crate::limit::Gate;
use crate::{
    Answer, AtAccept, Ban, Demand, Index, Ledger, Limit, Plan, Request, http1, http2, socket,
};

/// A server on loopback that speaks HTTP/1.1 and HTTP/2 on one port and misbehaves on purpose.
///
/// It runs on a thread of its own, so it serves plain tests, any async runtime and clients under
/// a paused clock alike. HTTP/2 is spoken to clients that start with its preface (prior
/// knowledge). When the venue is dropped its thread ends and all its sockets are closed.
///
/// See the [crate docs](crate) for an example.
pub struct Venue {
    addr: SocketAddr,
    desk: Arc<Desk>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Sets a [`Venue`] up.
#[must_use = "a builder does nothing until it is started"]
pub struct Builder {
    plan: Option<Plan>,
    limit: Option<Limit>,
    ban: Option<Ban>,
    latency: Duration,
    body_limit: usize,
    demands: Vec<Box<dyn Demand>>,
    handler: Option<Handler>,
    index: Option<Index>,
    duplicate: Option<Answer>,
}

/// The venue could not be started.
#[derive(Debug)]
pub struct StartError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Io(io::Error),
    Setting { field: &'static str, value: String },
}

/// Bodies up to 16 MiB: far above what a test sends, far below what would hurt the machine.
const BODY_LIMIT: usize = 16 << 20;

/// How often the reactor is turned before the venue counts as having read everything. A new
/// connection needs one turn each for its accept, its first byte and the rest; the others are spare.
const TURNS: usize = 8;

// === impl Venue ===

impl Venue {
    /// Starts a venue that applies and answers every request.
    ///
    /// # Errors
    ///
    /// When there is no free port on 127.0.0.1 or no thread.
    pub fn start() -> Result<Self, StartError> {
        Self::builder().start()
    }

    /// Sets a venue up.
    pub fn builder() -> Builder {
        Builder {
            plan: None,
            limit: None,
            ban: None,
            latency: Duration::ZERO,
            body_limit: BODY_LIMIT,
            demands: Vec::new(),
            handler: None,
            index: None,
            duplicate: None,
        }
    }

    /// Returns the address it listens on, a free port of 127.0.0.1.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL of a path, for example `http://127.0.0.1:40123/orders` for `/orders`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("http://{}{slash}{path}", self.addr)
    }

    /// Returns a handle to what it saw and did.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger::new(Arc::clone(&self.desk))
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic on that thread has nobody to go to any more.
            let _ = thread.join();
        }
        self.desk.stop();
    }
}

impl fmt::Debug for Venue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Venue")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

// === impl Builder ===

impl Builder {
    /// Sets the plan that draws faults for requests that carry none. Default: no faults.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.plan = Some(plan);
        self
    }

    /// Sets a rate limit. Default: none.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets what happens to clients that keep calling over the limit. Default: nothing more.
    pub fn ban(mut self, ban: Ban) -> Self {
        self.ban = Some(ban);
        self
    }

    /// Sets the time between acting on a request and the first byte of its answer. Default: zero.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Sets how many bytes a request body may have. Default: 16 MiB.
    ///
    /// A longer one costs the client its connection.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Adds a demand that each request must meet. Default: none.
    pub fn demand(mut self, demand: impl Demand) -> Self {
        self.demands.push(Box::new(demand));
        self
    }

    /// Sets what applied requests are answered.
    ///
    /// Called once for each request that is applied, on the venue's thread. Default: 200 with a
    /// short JSON document, or an empty message and `grpc-status: 0` for gRPC.
    pub fn answer(mut self, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        self.handler = Some(Arc::new(answer));
        self
    }

    /// Sets what it says of operations when it is asked. Default: nothing, such a `GET` is a request like
    /// any other.
    pub fn index(mut self, index: Index) -> Self {
        self.index = Some(index);
        self
    }

    /// Sets what a request is answered whose operation was applied before, which is not applied again.
    /// Default: it is applied again.
    pub fn duplicates(mut self, answer: Answer) -> Self {
        self.duplicate = Some(answer);
        self
    }

    /// Starts the venue.
    ///
    /// # Errors
    ///
    /// When a setting makes no sense (a rate outside 0 to 1, a limit of no requests or with a
    /// window of zero, a ban after no rejections or without a limit), when there is no free port
    /// on 127.0.0.1, or no thread.
    pub fn start(self) -> Result<Venue, StartError> {
        self.check()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let (turns, asked) = mpsc::unbounded_channel();
        let desk = Arc::new(Desk::new(
            Settings {
                plan: self.plan,
                handler: self.handler,
                index: self.index,
                duplicate: self.duplicate,
                latency: self.latency,
                body_limit: self.body_limit,
                demands: self.demands,
                gate: Gate::new(self.limit, self.ban),
            },
            turns,
        ));
        let (stop, stopped) = oneshot::channel();
        let thread = socket::spawn("venue", stopped, {
            let desk = Arc::clone(&desk);
            async move { serve(listener, desk, asked).await }
        })?;
        Ok(Venue {
            addr,
            desk,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn check(&self) -> Result<(), StartError> {
        let bad = |field, value: String| {
            Err(StartError {
                kind: Kind::Setting { field, value },
            })
        };
        let mut rates = self.plan.iter().flat_map(Plan::rates);
        if let Some(rate) = rates.find(|rate| !(0.0..=1.0).contains(rate)) {
            return bad("plan.rate", rate.to_string());
        }
        if let Some(limit) = self.limit {
            if limit.requests() == 0 {
                return bad("limit.requests", "0".to_owned());
            }
            if limit.window().is_zero() {
                return bad("limit.window", "0".to_owned());
            }
        }
        match (self.ban, self.limit) {
            (Some(ban), Some(_)) if ban.after() == 0 => bad("ban.after", "0".to_owned()),
            (Some(_), None) => bad("ban", "without a limit".to_owned()),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("plan", &self.plan)
            .field("limit", &self.limit)
            .field("ban", &self.ban)
            .field("latency", &self.latency)
            .finish_non_exhaustive()
    }
}

// === impl StartError ===

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self {
            kind: Kind::Io(error),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Io(_) => f.write_str("cannot listen on loopback"),
            Kind::Setting { field, value } => write!(f, "bad setting {field}: {value}"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Io(error) => Some(error),
            Kind::Setting { .. } => None,
        }
    }
}

async fn serve(
    listener: std::net::TcpListener,
    desk: Arc<Desk>,
    mut asked: mpsc::UnboundedReceiver<u64>,
) {
    // Fails only without a reactor, and this runs in one.
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let turner = Arc::clone(&desk);
    tokio::spawn(async move {
        while let Some(ticket) = asked.recv().await {
            for _ in 0..TURNS {
                // Resumes after the reactor was polled and behind all tasks that it woke.
                yield_now().await;
            }
            turner.turned(ticket);
        }
    });
    loop {
        // An aborted connection is no reason to stop listening.
        if let Ok((stream, _)) = listener.accept().await {
            let (open, fate) = desk.accept();
            match fate {
                None => drop(tokio::spawn(attend(stream, Arc::clone(&desk), open))),
                Some(AtAccept::Close) => drop(stream),
                Some(AtAccept::Reset) => socket::reset(stream),
            }
        } else {
            yield_now().await;
        }
    }
}

/// Finds out which protocol the client speaks, and speaks it.
async fn attend(stream: TcpStream, desk: Arc<Desk>, open: Open) {
    // Small frames must not wait for the acknowledgement of others.
    let _ = stream.set_nodelay(true);
    let mut start = [0; http2::PREFACE.len()];
    loop {
        // Asked first: what is peeked at afterwards is then all that there will be.
        let Ok(ready) = stream.ready(Interest::READABLE).await else {
            return;
        };
        let Ok(seen) = stream.peek(&mut start).await else {
            return;
        };
        if start[..seen] != http2::PREFACE[..seen] {
            http1::serve(stream, desk, open).await;
            return;
        }
        if seen == start.len() {
            http2::serve(stream, desk, open).await;
            return;
        }
        if ready.is_read_closed() || seen == 0 {
            return;
        }
        // Peeking leaves the bytes unread, so readiness does not tell when more arrive.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
