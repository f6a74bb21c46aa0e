//! What fails before a connection is chosen, or while it is young.

use std::{io, net::SocketAddr, time::Duration};

use http::{Request, Uri, Version};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use socket2::{Domain, Socket, Type};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tower::service_fn;
use tower_outcome::{BoxError, Delivery, Outcome, Reason};

use super::{
    client::{Body, Client, Evidence, Protocol, full, nodelay, post},
    connector::Tap,
    peer::{Conn, Peer},
    verdict::{cause, chain, repeatable, unrepeatable, verdict},
};

fn order(origin: &str) -> Request<Body> {
    Request::post(format!("{origin}/orders"))
        .body(full("an order"))
        .unwrap()
}

fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}

#[tokio::test]
async fn a_refused_connection_proves_that_nothing_was_sent() {
    // Bound and not listening: the port refuses, and nobody else can take it.
    let (_socket, addr) = bound();
    for protocol in Protocol::ALL {
        for client in Client::both(protocol) {
            let error = client.fail(order(&format!("http://{addr}"))).await;
            assert_eq!(verdict(&error), Delivery::NotSent);
        }
    }
}

#[tokio::test]
async fn an_unknown_host_proves_that_nothing_was_sent() {
    let resolver = service_fn(|_: Name| async {
        Err::<std::vec::IntoIter<SocketAddr>, _>(io::Error::other("no such host"))
    });
    for protocol in Protocol::ALL {
        for evidence in Evidence::ALL {
            let connector = HttpConnector::new_with_resolver(resolver);
            let client = Client::over(evidence, protocol, connector);
            let error = client.fail(order("http://venue.example")).await;
            assert_eq!(verdict(&error), Delivery::NotSent);
        }
    }
}

/// The time-out is the only thing to wait for, so that a paused clock jumps to it.
#[tokio::test(start_paused = true)]
async fn a_connect_timeout_proves_that_nothing_was_sent() {
    let (socket, addr) = bound();
    socket.listen(0).unwrap();
    // The queue has room for one; whoever comes next gets no answer at all.
    let _first = std::net::TcpStream::connect(addr).unwrap();
    for protocol in Protocol::ALL {
        for evidence in Evidence::ALL {
            let mut connector = nodelay();
            connector.set_connect_timeout(Some(Duration::from_secs(5)));
            let client = Client::over(evidence, protocol, connector);
            let error = client.fail(order(&format!("http://{addr}"))).await;
            assert_eq!(verdict(&error), Delivery::NotSent);
            let timed_out = cause::<io::Error>(&*error).map(io::Error::kind);
            assert_eq!(
                timed_out,
                Some(io::ErrorKind::TimedOut),
                "{}",
                chain(&*error)
            );
        }
    }
}

#[tokio::test]
async fn a_failed_handshake_proves_that_nothing_was_sent() {
    /// What a TLS library does with a peer that goes away or speaks something else.
    async fn handshake(uri: Uri) -> io::Result<TokioIo<TcpStream>> {
        let mut stream = TcpStream::connect(uri.authority().unwrap().as_str()).await?;
        stream.write_all(&[22, 3, 1, 0, 1, 1]).await?;
        let mut reply = [0; 7];
        // The kind is lost, as it is with real libraries.
        stream
            .read_exact(&mut reply)
            .await
            .map_err(io::Error::other)?;
        Err(io::Error::other(format!("unexpected record {reply:?}")))
    }
    let replies: [&[u8]; 3] = [
        b"",
        b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
        &[21, 3, 3, 0, 2, 2, 40],
    ];
    for reply in replies {
        let peer = Peer::start(move |mut conn| async move {
            conn.read_exact(6).await?;
            conn.write_all(reply).await?;
            conn.close().await
        });
        for evidence in Evidence::ALL {
            let connector = service_fn(|uri: Uri| Box::pin(handshake(uri)));
            let client = Client::over(evidence, Protocol::Http1, connector);
            let error = client.fail(order(&peer.origin())).await;
            assert_eq!(verdict(&error), Delivery::NotSent);
        }
        assert_eq!(peer.ended(2).await, 0);
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_as_it_is_is_permanent() {
    let relative = || Request::post("/orders").body(full("an order")).unwrap();
    let http3 = || {
        let mut request = order("http://127.0.0.1:9");
        *request.version_mut() = Version::HTTP_3;
        request
    };
    for client in Client::both(Protocol::Http1) {
        for request in [relative(), http3()] {
            let error = client.fail(request).await;
            for decision in [unrepeatable(&*error), repeatable(&*error)] {
                assert_eq!(decision.delivery, Delivery::NotSent, "{}", chain(&*error));
                let reason = Reason::InvalidRequest;
                assert_eq!(
                    decision.outcome,
                    Outcome::Permanent { reason },
                    "{}",
                    chain(&*error)
                );
            }
        }
    }
}

#[tokio::test]
async fn a_version_that_the_connection_cannot_speak_is_proven_unsent_by_the_witnesses_only() {
    let peer = Peer::start(|mut conn| async move {
        conn.drain().await;
        Ok(())
    });
    for client in Client::both(Protocol::Http1) {
        let mut request = post(&peer, full("an order"));
        *request.version_mut() = Version::HTTP_2;
        let error = client.fail(request).await;
        let expected = client.evidence.proves(Delivery::NotSent);
        assert_eq!(verdict(&error), expected);
    }
    assert_eq!(peer.ended(2).await, 0);
}

/// What a server does to a connection before the client has written anything.
async fn dead_on_arrival(peer: Peer, protocol: Protocol) -> Vec<BoxError> {
    let mut errors = Vec::new();
    for evidence in Evidence::ALL {
        let client = Client::over(evidence, protocol, Tap::late());
        errors.push(client.fail(post(&peer, full("an order"))).await);
    }
    assert_eq!(peer.ended(2).await, 0);
    errors
}

#[tokio::test]
async fn a_connection_that_was_closed_before_its_first_use_carried_nothing() {
    let peer = Peer::start(|conn| async move { conn.close().await });
    for error in dead_on_arrival(peer, Protocol::Http1).await {
        assert_eq!(verdict(&error), Delivery::NotSent);
        // The same error on a connection that was in use proves nothing.
        let incomplete = cause(&*error).is_some_and(hyper::Error::is_incomplete_message);
        assert!(incomplete, "{}", chain(&*error));
    }
}

#[tokio::test]
async fn a_connection_that_was_reset_before_its_first_use_carried_nothing() {
    let peer = Peer::start(|conn| async move { conn.reset() });
    for error in dead_on_arrival(peer, Protocol::Http1).await {
        assert_eq!(verdict(&error), Delivery::NotSent);
    }
}

#[tokio::test]
async fn a_server_that_speaks_first_was_sent_nothing() {
    let peer = Peer::start(|mut conn| async move {
        conn.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await?;
        conn.drain().await;
        Ok(())
    });
    for error in dead_on_arrival(peer, Protocol::Http1).await {
        assert_eq!(verdict(&error), Delivery::NotSent);
    }
}

/// One behaviour, up to five different errors: of these the proofs must hold, and the rest must
/// not claim anything.
#[tokio::test]
async fn a_connection_killed_at_accept_is_unsent_or_unknown_and_never_more() {
    async fn close(conn: Conn) -> io::Result<()> {
        drop(conn);
        Ok(())
    }
    async fn reset(conn: Conn) -> io::Result<()> {
        conn.reset()
    }
    for protocol in Protocol::ALL {
        for peer in [Peer::start(close), Peer::start(reset)] {
            for client in Client::both(protocol) {
                for _ in 0..50 {
                    let error = client.fail(post(&peer, full("an order"))).await;
                    let verdict = verdict(&error);
                    let possible = [Delivery::NotSent, Delivery::MaybeSent];
                    assert!(possible.contains(&verdict), "{verdict}: {}", chain(&*error));
                }
            }
            assert!(peer.whole().is_empty());
        }
    }
}
