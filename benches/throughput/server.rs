//! The other side: a plain server on a core of its own.

use std::{convert::Infallible, io, net::SocketAddr, sync::mpsc, thread};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::Protocol;

/// What an order is answered with.
const ANSWER: Bytes =
    Bytes::from_static(br#"{"id":"5f3c","status":"accepted","filled":"0","remaining":"100"}"#);

/// Starts a server, which answers until the program ends.
pub(crate) fn start(protocol: Protocol) -> io::Result<SocketAddr> {
    let (tell, told) = mpsc::channel();
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build();
            match runtime {
                Ok(runtime) => runtime.block_on(serve(protocol, &tell)),
                Err(error) => drop(tell.send(Err(error))),
            }
        })?;
    told.recv()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

async fn serve(protocol: Protocol, tell: &mpsc::Sender<io::Result<SocketAddr>>) {
    let listening = async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    let listener = match listening.await {
        Ok((listener, address)) => {
            // Who asked is gone, or waits for it.
            let _ = tell.send(Ok(address));
            listener
        }
        Err(error) => return drop(tell.send(Err(error))),
    };
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let stream = TokioIo::new(stream);
        // A connection that fails shows in the figures of the client.
        match protocol {
            Protocol::Http1 => drop(tokio::spawn(
                conn::http1::Builder::new().serve_connection(stream, service_fn(answer)),
            )),
            Protocol::Http2 => drop(tokio::spawn(
                conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(stream, service_fn(answer)),
            )),
        }
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    // What is left of a request that breaks off is nobody's.
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(ANSWER)))
}
