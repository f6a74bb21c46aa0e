//! HTTP/1.1 requests that are queued when their used connection is found dead: hyper hands them back.
//!
//! Only memory lets a test decide that both are found in one poll, so the connections here are pipes.

use std::future::Future;

use futures_util::future::poll_immediate;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::mpsc,
};
use tower::ServiceExt;
use tower_outcome::{BoxError, Delivery};

use super::{
    client::{Body, Client, Evidence, Protocol, builder, full, settle, within},
    connector::Memory,
    peer::{OK, TIMED_OUT},
    verdict::{chain, verdict},
};

/// What the idle connection brings in the very poll that finds the next request queued.
#[derive(Clone, Copy, Debug)]
enum Found {
    End,
    Unasked,
}

/// A client whose next request is found together with what has come of the idle connection.
struct Together {
    client: Client,
    servers: mpsc::UnboundedReceiver<DuplexStream>,
    first: Option<DuplexStream>,
    found: Found,
}

impl Together {
    async fn new(evidence: Evidence, found: Found, resend: bool) -> Self {
        let (memory, mut servers) = Memory::new();
        let mut builder = builder(Protocol::Http1);
        builder.retry_canceled_requests(resend);
        let client = Client::built(evidence, &builder, memory);
        let mut call = Box::pin(client.service.clone().oneshot(order("one")));
        assert!(poll_immediate(&mut call).await.is_none());
        let mut first = servers.recv().await.unwrap();
        let serve = async {
            read(&mut first, "one").await;
            first.write_all(OK).await.unwrap();
        };
        let (answer, ()) = within(async { tokio::join!(call, serve) }).await;
        answer.unwrap().into_body().collect().await.unwrap();
        // The connection goes back to the pool.
        settle().await;
        Self {
            client,
            servers,
            first: Some(first),
            found,
        }
    }

    /// Returns the future of the next request, which is queued already.
    async fn call(&mut self) -> impl Future<Output = Result<StatusCode, BoxError>> + use<> {
        // What is done here wakes the connection's task, which does not run before the next await.
        match self.found {
            Found::End => self.first = None,
            Found::Unasked => {
                let first = self.first.as_mut().unwrap();
                poll_immediate(first.write_all(TIMED_OUT))
                    .await
                    .unwrap()
                    .unwrap();
            }
        }
        let mut call = Box::pin(self.client.service.clone().oneshot(order("two")));
        assert!(poll_immediate(&mut call).await.is_none());
        async move { call.await.map(|response| response.status()) }
    }

    /// Everything of the second request that the first connection was given.
    async fn leftover(mut self) -> usize {
        drop(self.client);
        let mut leftover = Vec::new();
        if let Some(first) = &mut self.first {
            within(first.read_to_end(&mut leftover)).await.unwrap();
        }
        leftover.len()
    }
}

fn order(body: &'static str) -> Request<Body> {
    Request::post("http://venue.example/orders")
        .body(full(body))
        .unwrap()
}

async fn read(server: &mut DuplexStream, body: &str) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(body.as_bytes()) {
        bytes.push(server.read_u8().await.unwrap());
    }
}

#[tokio::test]
async fn a_request_found_together_with_the_end_is_handed_back_and_proven_unsent() {
    for evidence in Evidence::ALL {
        for found in [Found::End, Found::Unasked] {
            let mut together = Together::new(evidence, found, false).await;
            let error = within(together.call().await).await.unwrap_err();
            assert_eq!(verdict(&error), Delivery::NotSent, "{found:?}");
            assert!(chain(&*error).contains("Canceled"), "{}", chain(&*error));
            assert!(together.servers.try_recv().is_err(), "sent once more");
            assert_eq!(together.leftover().await, 0);
        }
    }
}

/// Why `retry_canceled_requests` belongs off under these layers: the second attempt is sound and
/// nobody above can count it.
#[tokio::test]
async fn hyper_util_sends_it_again_behind_every_layer_unless_told_otherwise() {
    for evidence in Evidence::ALL {
        for found in [Found::End, Found::Unasked] {
            let mut together = Together::new(evidence, found, true).await;
            let call = together.call().await;
            let servers = &mut together.servers;
            let serve = async {
                let mut second = servers.recv().await.unwrap();
                read(&mut second, "two").await;
                second.write_all(OK).await.unwrap();
                second
            };
            let (answer, second) = within(async { tokio::join!(call, serve) }).await;
            assert_eq!(answer.unwrap(), StatusCode::OK);
            // Once per attempt: nothing reached the first connection, all of it the second.
            drop(second);
            assert!(together.servers.try_recv().is_err(), "sent a third time");
            assert_eq!(together.leftover().await, 0);
        }
    }
}
