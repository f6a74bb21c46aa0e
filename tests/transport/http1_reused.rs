//! HTTP/1.1 on a connection that was used before: the keep-alive race in all its forms.

use std::io;

use futures_util::future::poll_immediate;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::connect::Connect;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::mpsc,
};
use tower::ServiceExt;
use tower_outcome::{
    Attempt, Classify, Decision, Delivery, HttpClassifier, Outcome, Reason, Verdict,
    WitnessConnector,
};

use super::{
    client::{Body, Client, Evidence, Protocol, builder, empty, full, post, settle, within},
    connector::{Memory, Tap},
    peer::{Conn, OK, Peer},
    verdict::{chain, verdict},
};

/// What a server says that closes an idle connection, whether or not it was asked.
const TIMED_OUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// How often a race is run.
const ROUNDS: usize = 25;

async fn answer(conn: &mut Conn) -> io::Result<()> {
    conn.request().await?;
    conn.write_all(OK).await
}

/// Answers all requests of all later connections.
async fn answer_all(mut conn: Conn) -> io::Result<()> {
    loop {
        answer(&mut conn).await?;
    }
}

#[tokio::test]
async fn a_request_that_was_read_on_a_used_connection_may_have_been_applied() {
    let closed = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.request().await?;
        conn.close().await
    });
    let reset = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.request().await?;
        conn.reset()
    });
    for peer in [closed, reset] {
        for client in Client::both(Protocol::Http1) {
            client.succeed(post(&peer, empty())).await;
            settle().await;
            let error = client.fail(post(&peer, full("an order"))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
        assert_eq!(peer.ended(2).await, 4);
    }
}

#[tokio::test]
async fn a_request_left_unread_on_a_used_connection_proves_nothing() {
    let closed = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.read_exact(1).await?;
        Ok(())
    });
    let half_closed = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.read_exact(1).await?;
        conn.fin().await?;
        conn.gone().await;
        Ok(())
    });
    for peer in [closed, half_closed] {
        for client in Client::both(Protocol::Http1) {
            client.succeed(post(&peer, empty())).await;
            settle().await;
            let error = client.fail(post(&peer, full("an order"))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
        assert_eq!(peer.ended(2).await, 2);
    }
}

#[tokio::test]
async fn an_end_that_was_noticed_while_idle_costs_nothing_but_a_connection() {
    let end = || {
        Peer::script()
            .connection(|mut conn| async move {
                answer(&mut conn).await?;
                conn.close().await
            })
            .connection(answer_all)
            .start()
    };
    let unasked = || {
        Peer::script()
            .connection(|mut conn| async move {
                answer(&mut conn).await?;
                conn.write_all(TIMED_OUT).await?;
                conn.close().await
            })
            .connection(answer_all)
            .start()
    };
    for evidence in Evidence::ALL {
        for peer in [end(), unasked()] {
            let tap = Tap::new();
            let client = Client::over(evidence, Protocol::Http1, tap.clone());
            client.succeed(post(&peer, empty())).await;
            tap.closed().await;
            let response = client.succeed(post(&peer, full("an order"))).await;
            assert_eq!(response.status(), StatusCode::OK);
            drop(client);
            assert_eq!(peer.ended(2).await, 2);
        }
    }
}

/// What a server does to an idle connection while the client's thread is busy.
enum Death {
    End,
    Reset,
    Unasked,
}

/// What becomes of the next request.
async fn surprised(evidence: Evidence, death: Death) -> Result<StatusCode, Delivery> {
    let doomed = match death {
        Death::End => Peer::script().connection(|mut conn| async move {
            answer(&mut conn).await?;
            conn.told().await;
            Ok(())
        }),
        Death::Reset => Peer::script().connection(|mut conn| async move {
            answer(&mut conn).await?;
            conn.told().await;
            conn.reset()
        }),
        Death::Unasked => Peer::script().connection(|mut conn| async move {
            answer(&mut conn).await?;
            conn.told().await;
            conn.write_all(TIMED_OUT).await?;
            // No end, so that nothing but these bytes is there to be found.
            conn.gone().await;
            Ok(())
        }),
    };
    let peer = doomed.connection(answer_all).start();
    let tap = Tap::new();
    let client = Client::over(evidence, Protocol::Http1, tap.clone());
    client.succeed(post(&peer, empty())).await;
    // The connection goes back to the pool.
    settle().await;
    peer.tell();
    match death {
        Death::End | Death::Unasked => tap.readable_meanwhile_blocked(),
        Death::Reset => tap.reset_meanwhile_blocked(),
    }
    let result = client.send(post(&peer, full("an order"))).await;
    let read = peer.whole().len() - 1;
    // A second connection is possible where the first was found dead in time.
    assert_eq!(read, peer.connections() - 1, "read by the first connection");
    match result {
        Ok(response) => Ok(response.status()),
        Err(error) => Err(verdict(&error)),
    }
}

#[tokio::test]
async fn an_end_that_was_not_noticed_yet_is_unsent_or_unknown() {
    for evidence in Evidence::ALL {
        for _ in 0..ROUNDS {
            let seen = surprised(evidence, Death::End).await;
            let possible = [
                Err(Delivery::NotSent),
                Err(Delivery::MaybeSent),
                Ok(StatusCode::OK),
            ];
            assert!(possible.contains(&seen), "{seen:?}");
        }
    }
}

#[tokio::test]
async fn a_reset_that_was_not_noticed_yet_is_proven_unsent_by_the_witness() {
    for evidence in Evidence::ALL {
        let mut seen = Vec::new();
        for _ in 0..ROUNDS {
            seen.push(surprised(evidence, Death::Reset).await);
        }
        // A connection that was reset accepts nothing, however the race ends.
        let expected = evidence.proves(Delivery::NotSent);
        assert!(seen.contains(&Err(expected)), "{seen:?}");
        let possible = [Err(Delivery::NotSent), Err(expected), Ok(StatusCode::OK)];
        assert!(seen.iter().all(|seen| possible.contains(seen)), "{seen:?}");
    }
}

/// The worst of them: the answer is real, and not to this request.
#[tokio::test]
async fn a_stray_408_reaches_a_request_that_nobody_read_and_proves_nothing() {
    for evidence in Evidence::ALL {
        let mut seen = Vec::new();
        for _ in 0..ROUNDS {
            seen.push(surprised(evidence, Death::Unasked).await);
        }
        assert!(seen.contains(&Ok(StatusCode::REQUEST_TIMEOUT)), "{seen:?}");
        let possible = [
            Ok(StatusCode::REQUEST_TIMEOUT),
            Ok(StatusCode::OK),
            Err(Delivery::NotSent),
            Err(Delivery::MaybeSent),
        ];
        assert!(seen.iter().all(|seen| possible.contains(seen)), "{seen:?}");
    }
    let classifier = HttpClassifier::new();
    let (head, ()) = http::Response::builder()
        .status(StatusCode::REQUEST_TIMEOUT)
        .body(())
        .unwrap()
        .into_parts();
    let (order, ()) = Request::post("/orders").body(()).unwrap().into_parts();
    let verdict = classifier.response(&classifier.call(&order), Attempt::FIRST, &head);
    let Verdict::Decided(Decision { outcome, .. }) = verdict else {
        panic!("{verdict:?}");
    };
    let reason = Reason::TimedOut;
    assert_eq!(outcome, Outcome::Unknown { reason });
}

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
        let client = built(evidence, memory, resend);
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
    async fn call(
        &mut self,
    ) -> impl Future<Output = Result<StatusCode, tower_outcome::BoxError>> + use<> {
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

fn built<C>(evidence: Evidence, connector: C, resend: bool) -> Client
where
    C: Connect + Clone + Send + Sync + 'static,
    WitnessConnector<C>: Connect,
{
    let mut builder = builder(Protocol::Http1);
    builder.retry_canceled_requests(resend);
    Client::built(evidence, &builder, connector)
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
