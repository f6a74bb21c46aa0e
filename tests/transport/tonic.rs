//! tonic's channel: the proofs of HTTP/2, under errors and codes of its own.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{StatusCode, Uri};
use http_body_util::BodyExt;
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use socket2::{Domain, Socket, Type};
use tokio::{net::TcpStream, time::pause};
use tonic::{body::Body, transport::Endpoint};
use tower::service_fn;
use tower_outcome::{BoxError, Delivery, Reason};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Evidence, endless, frames, within},
    grpc::{
        MESSAGE, PLACE, Stack, answer, both_errors, call, endpoint, lazy, message, send, stack,
        unary,
    },
    peer::{Conn, Peer},
    verdict::{chain, repeatable, unrepeatable, verdict},
};

const INADEQUATE_SECURITY: u32 = 0xc;
const HTTP_1_1_REQUIRED: u32 = 0xd;

/// Both errors of a channel to a peer, with either evidence.
async fn errors(peer: &Peer) -> Vec<BoxError> {
    let mut errors = Vec::new();
    for evidence in Evidence::ALL {
        errors
            .extend(both_errors(evidence, async |evidence| lazy(evidence, &endpoint(peer))).await);
    }
    errors
}

fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}

#[tokio::test]
async fn a_channel_that_cannot_connect_has_sent_nothing() {
    let (_socket, addr) = bound();
    let refused = Endpoint::from_shared(format!("http://{addr}")).unwrap();
    let unknown = Endpoint::from_static("http://venue.example");
    let resolver = service_fn(|_: Name| async {
        Err::<std::vec::IntoIter<SocketAddr>, _>(io::Error::other("no such host"))
    });
    for evidence in Evidence::ALL {
        let channel =
            || unknown.connect_with_connector_lazy(HttpConnector::new_with_resolver(resolver));
        let mut errors =
            Vec::from(both_errors(evidence, async |evidence| lazy(evidence, &refused)).await);
        errors.extend(both_errors(evidence, async |evidence| stack(evidence, channel())).await);
        for error in errors {
            assert_eq!(verdict(&error), Delivery::NotSent);
        }
    }
    // The same where the connection is made beforehand.
    let error = refused.connect().await.unwrap_err();
    assert_eq!(verdict(&error.into()), Delivery::NotSent);
}

/// The time-out is the only thing to wait for, so that a paused clock jumps to it.
#[tokio::test(start_paused = true)]
async fn a_connect_timeout_of_a_channel_has_sent_nothing() {
    let (socket, addr) = bound();
    socket.listen(0).unwrap();
    // The queue has room for one; whoever comes next gets no answer at all.
    let _first = std::net::TcpStream::connect(addr).unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{addr}"))
        .unwrap()
        .connect_timeout(Duration::from_secs(5));
    for evidence in Evidence::ALL {
        for error in both_errors(evidence, async |evidence| lazy(evidence, &endpoint)).await {
            assert_eq!(verdict(&error), Delivery::NotSent);
        }
    }
}

#[tokio::test]
async fn a_channel_that_could_not_connect_once_connects_the_next_time() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = conn.stream().await?;
        conn.write_all(&answer(stream)).await?;
        conn.close().await
    });
    let (_socket, nobody) = bound();
    for evidence in Evidence::ALL {
        let before = Arc::new(AtomicBool::new(false));
        let somebody = peer.origin().replace("http://", "");
        let connector = service_fn(move |_: Uri| {
            let target = if before.swap(true, Ordering::SeqCst) {
                somebody.clone()
            } else {
                nobody.to_string()
            };
            async { TcpStream::connect(target).await.map(TokioIo::new) }
        });
        let channel = endpoint(&peer).connect_with_connector_lazy(connector);
        let stack = stack(evidence, channel);
        let status = unary(stack.clone(), PLACE).await.unwrap_err();
        assert_eq!(verdict(&status.into()), Delivery::NotSent);
        assert_eq!(unary(stack, PLACE).await.unwrap(), "hi");
    }
    assert_eq!(peer.ended(2).await, 2);
}

#[tokio::test]
async fn a_channel_killed_at_accept_is_unsent_or_unknown_and_never_more() {
    async fn close(conn: Conn) -> io::Result<()> {
        drop(conn);
        Ok(())
    }
    async fn reset(conn: Conn) -> io::Result<()> {
        conn.reset()
    }
    for peer in [Peer::start(close), Peer::start(reset)] {
        for _ in 0..25 {
            for error in errors(&peer).await {
                let verdict = verdict(&error);
                let possible = [Delivery::NotSent, Delivery::MaybeSent];
                assert!(possible.contains(&verdict), "{verdict}: {}", chain(&*error));
            }
        }
        assert!(peer.whole().is_empty());
    }
}

fn refusing(refusal: fn(u32) -> Vec<u8>) -> Peer {
    Peer::start(move |mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = conn.stream_head().await?;
        conn.write_all(&refusal(stream)).await?;
        conn.drain().await;
        Ok(())
    })
}

#[tokio::test]
async fn a_stream_that_is_refused_was_not_acted_on() {
    let peer = refusing(|stream| frame::rst_stream(stream, frame::REFUSED_STREAM));
    for error in errors(&peer).await {
        assert_eq!(verdict(&error), Delivery::Refused);
    }
    assert_eq!(peer.ended(4).await, 0);
}

#[tokio::test]
async fn a_goaway_below_the_stream_says_that_a_call_was_not_acted_on() {
    for refusal in [
        |_| frame::goaway(0, frame::NO_ERROR),
        |_| frame::goaway(0, frame::ENHANCE_YOUR_CALM),
    ] {
        let peer = refusing(refusal);
        for evidence in Evidence::ALL {
            for error in
                both_errors(evidence, async |evidence| lazy(evidence, &endpoint(&peer))).await
            {
                assert_eq!(verdict(&error), evidence.proves(Delivery::Refused));
            }
        }
        assert_eq!(peer.ended(4).await, 0);
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_for_any_other_reason_may_have_been_applied() {
    for code in [
        frame::NO_ERROR,
        frame::INTERNAL_ERROR,
        frame::CANCEL,
        frame::ENHANCE_YOUR_CALM,
        INADEQUATE_SECURITY,
        HTTP_1_1_REQUIRED,
    ] {
        let peer = Peer::start(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            let stream = conn.stream().await?;
            conn.write_all(&frame::rst_stream(stream, code)).await?;
            conn.drain().await;
            Ok(())
        });
        for error in errors(&peer).await {
            assert_eq!(verdict(&error), Delivery::MaybeSent, "{code}");
        }
        assert_eq!(peer.whole().len(), 4);
    }
}

#[tokio::test]
async fn a_call_that_was_read_before_the_connection_died_may_have_been_applied() {
    async fn read(conn: &mut Conn) -> io::Result<()> {
        conn.start_http2(&[]).await?;
        conn.stream().await.map(drop)
    }
    let goaway = Peer::start(|mut conn| async move {
        read(&mut conn).await?;
        conn.write_all(&frame::goaway(1, frame::NO_ERROR)).await?;
        conn.close().await
    });
    let closed = Peer::start(|mut conn| async move {
        read(&mut conn).await?;
        conn.close().await
    });
    let reset = Peer::start(|mut conn| async move {
        read(&mut conn).await?;
        conn.reset()
    });
    for peer in [goaway, closed, reset] {
        for error in errors(&peer).await {
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
        assert_eq!(peer.ended(4).await, 4);
    }
}

/// Fails a call that the server has read, once the clock is paused.
async fn timed_out(peer: &Peer, stack: Stack) -> BoxError {
    let mut call = Box::pin(unary(stack, PLACE));
    tokio::select! {
        result = &mut call => panic!("{result:?}"),
        () = peer.told() => {}
    }
    // Nothing is left to wait for but the timers.
    pause();
    let status = call.await.unwrap_err();
    tokio::time::resume();
    status.into()
}

#[tokio::test]
async fn a_timeout_of_the_endpoint_and_a_lost_keep_alive_prove_nothing() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.stream().await?;
        conn.tell();
        // Reads the PING and does not answer.
        conn.drain().await;
        Ok(())
    });
    let timeout = endpoint(&peer).timeout(Duration::from_secs(5));
    let keep_alive = endpoint(&peer)
        .http2_keep_alive_interval(Duration::from_secs(1))
        .keep_alive_timeout(Duration::from_secs(1));
    for endpoint in [timeout, keep_alive] {
        for evidence in Evidence::ALL {
            let error = timed_out(&peer, lazy(evidence, &endpoint)).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
            for decision in [unrepeatable(&*error), repeatable(&*error)] {
                let reason = decision.outcome.reason();
                assert_eq!(reason, Some(Reason::TimedOut), "{}", chain(&*error));
            }
        }
    }
    assert_eq!(peer.ended(4).await, 4);
}

/// The trap: by its cause the status looks like a refused stream.
#[tokio::test]
async fn a_stream_that_breaks_off_after_the_head_proves_nothing_whatever_the_code() {
    let refused: fn(u32) -> Vec<u8> = |stream| frame::rst_stream(stream, frame::REFUSED_STREAM);
    let failed: fn(u32) -> Vec<u8> = |stream| frame::rst_stream(stream, frame::INTERNAL_ERROR);
    let nothing: fn(u32) -> Vec<u8> = |_| Vec::new();
    for end in [refused, failed, nothing] {
        let peer = Peer::start(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            let stream = conn.stream().await?;
            let mut answer = frame::headers_ok(stream, false);
            answer.extend(frame::data(stream, &[0, 0, 0, 0, 9, b'o'], false));
            answer.extend(end(stream));
            conn.write_all(&answer).await?;
            conn.close().await
        });
        for evidence in Evidence::ALL {
            let status = unary(lazy(evidence, &endpoint(&peer)), PLACE).await;
            let error = BoxError::from(status.unwrap_err());
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
        assert_eq!(peer.ended(2).await, 2);
    }
}

/// What versions of tonic make of the missing status differs; that the server answered does not.
#[tokio::test]
async fn an_answer_without_a_grpc_status_is_an_answer_to_the_channel() {
    let bare: fn(u32) -> Vec<u8> = |stream| frame::headers(stream, &[(":status", "503")], true);
    let unended: fn(u32) -> Vec<u8> = |stream| {
        let mut answer = frame::headers_ok(stream, false);
        answer.extend(frame::data(stream, MESSAGE, true));
        answer
    };
    for (reply, expected) in [
        (bare, StatusCode::SERVICE_UNAVAILABLE),
        (unended, StatusCode::OK),
    ] {
        let peer = Peer::start(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            loop {
                let stream = conn.stream().await?;
                conn.write_all(&reply(stream)).await?;
            }
        });
        for evidence in Evidence::ALL {
            let stack = lazy(evidence, &endpoint(&peer));
            let response = send(&stack, call(message())).await.unwrap();
            assert_eq!(response.status(), expected);
            within(response.into_body().collect()).await.unwrap();
            if let Err(status) = unary(stack, PLACE).await {
                // An answer that generated code has turned into an error proves nothing.
                let error = BoxError::from(status);
                assert_eq!(Delivery::of(&*error), Delivery::MaybeSent);
            }
        }
        assert_eq!(peer.whole().len(), 4);
    }
}

/// A server acts on the messages of a stream one by one.
#[tokio::test]
async fn a_stream_of_messages_that_was_taken_in_part_proves_nothing() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.stream_head().await?;
        conn.close().await
    });
    for evidence in Evidence::ALL {
        let stack = lazy(evidence, &endpoint(&peer));
        let error = send(&stack, call(Body::new(endless()))).await.unwrap_err();
        assert_eq!(verdict(&error), Delivery::MaybeSent);
        let nothing_yet = Body::new(frames(futures_util::stream::pending()));
        let stack = lazy(evidence, &endpoint(&peer));
        let error = send(&stack, call(nothing_yet)).await.unwrap_err();
        let expected = evidence.proves(Delivery::NotSent);
        assert_eq!(verdict(&error), expected);
    }
    assert_eq!(peer.ended(4).await, 0);
}
