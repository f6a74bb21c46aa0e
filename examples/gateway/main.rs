//! A gateway: callers that speak plain HTTP get one stack for each upstream, as a file says.
//!
//! ```sh
//! cargo run --example gateway -- --demo examples/gateway.toml
//! cargo run --example gateway -- --check examples/gateway.toml
//! ```
//!
//! The file is explained in itself, what callers may ask for in `caller.rs`, and what they are answered in
//! `answer.rs`.

use std::{
    ffi::OsString, future::IntoFuture, net::SocketAddr, path::PathBuf, pin::pin, process::ExitCode,
    sync::Arc,
};

use axum::{Router, routing::get, serve::ListenerExt};
use clap::Parser;
use tokio::{net::TcpListener, sync::oneshot, time::timeout};

use self::{config::Config, demo::Demo};

mod answer;
mod caller;
mod config;
mod counters;
mod demo;
mod headers;
mod problem;
mod proxy;
mod span;
mod status;
mod stop;
mod target;
mod upstream;

/// A gateway that tells its callers what became of each call.
#[derive(Debug, Parser)]
#[command(name = "gateway")]
struct Args {
    /// What to listen on, and the upstreams.
    file: PathBuf,
    /// Says what is wrong with the file, or what it means, and ends: 0 if it is good, 2 if not.
    #[arg(long)]
    check: bool,
    /// Starts an upstream on this machine that misbehaves as it is told, and sends everything there.
    #[arg(long)]
    demo: bool,
    /// Listens here, whatever the file says.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

/// It served until it was told to stop, and all calls ended.
const DONE: u8 = 0;
/// It could not serve, or calls were cut off at the end.
const FAILED: u8 = 1;
/// The file or the command line is wrong.
const WRONG: u8 = 2;

fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

/// Does what a command line says; returns the exit code.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { WRONG } else { DONE };
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start: {error}")),
    };
    // What is still under way when it is dropped is told as abandoned.
    runtime.block_on(start(args))
}

async fn start(args: Args) -> u8 {
    let name = args.file.display().to_string();
    let text = match std::fs::read_to_string(&args.file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{name}: {error}");
            return WRONG;
        }
    };
    let demo = match args.demo.then(Demo::start).transpose() {
        Ok(demo) => demo,
        Err(error) => return failed(&format!("no demo: {error}")),
    };
    let everything_to = demo.as_ref().map(Demo::base);
    let environment = |name: &str| std::env::var(name).ok();
    let config = match config::read(&name, &text, &environment, everything_to.as_deref()) {
        Ok(config) => config,
        Err(problems) => {
            eprint!("{problems}");
            return WRONG;
        }
    };
    if args.check {
        print!("{config}");
        return DONE;
    }
    let listen = args.listen.unwrap_or(config.listen);
    serve(listen, config, demo).await
}

/// Serves until it is told to stop, and then until all calls have ended or the drain bound strikes.
async fn serve(listen: SocketAddr, config: Config, demo: Option<Demo>) -> u8 {
    let listener = match TcpListener::bind(listen).await {
        Ok(listener) => listener,
        Err(error) => return failed(&format!("cannot listen on {listen}: {error}")),
    };
    let stopping = match stop::asked_to() {
        Ok(stopping) => stopping,
        Err(error) => return failed(&format!("cannot wait for signals: {error}")),
    };
    match listener.local_addr() {
        Ok(address) => println!("gateway: listening on http://{address}"),
        Err(error) => return failed(&format!("has no address: {error}")),
    }
    let drain = config.drain;
    let config = Arc::new(config);
    let mut router = Router::new()
        .route("/healthz", get(status::healthz))
        .route("/status", get(status::status))
        .fallback(proxy::forward)
        .with_state(Arc::clone(&config));
    if let Some(demo) = demo {
        router = router.merge(demo.router());
    }
    let (stop, stopped) = oneshot::channel::<()>();
    // A small answer must not wait for the acknowledgement of another.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, service).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let mut server = pin!(server.into_future());
    let mut stopping = pin!(stopping);
    tokio::select! {
        result = &mut server => {
            let _ = result;
            return failed("stopped listening");
        }
        () = &mut stopping => {}
    }
    println!("gateway: draining for {drain:?} at most");
    drop(stop);
    match timeout(drain, server).await {
        Ok(_) => {
            println!("gateway: done");
            DONE
        }
        Err(_) => {
            let left: u64 = config.upstreams.iter().map(|one| one.counters.open()).sum();
            failed(&format!("{left} calls were still under way"))
        }
    }
}

fn failed(why: &str) -> u8 {
    eprintln!("gateway: {why}");
    FAILED
}
