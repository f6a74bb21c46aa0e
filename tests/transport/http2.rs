//! HTTP/2 on a connection of its own.

use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::pause;
use tower_outcome::{Delivery, Reason};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Client, Evidence, Protocol, builder, empty, endless, full, nodelay, post, request},
    peer::{Conn, Peer},
    verdict::{cause, chain, repeatable, unrepeatable, verdict},
};

const STREAM_CLOSED: u32 = 0x5;
const HTTP_1_1_REQUIRED: u32 = 0xd;
const UNDEFINED: u32 = 0xff;

/// Which of h2's errors the failure rests on, if on any.
fn h2(error: &tower_outcome::BoxError) -> Option<&h2::Error> {
    cause(&**error)
}

#[tokio::test]
async fn a_refused_stream_was_not_acted_on() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = conn.stream_head().await?;
        conn.write_all(&frame::rst_stream(stream, frame::REFUSED_STREAM))
            .await?;
        conn.drain().await;
        Ok(())
    });
    for client in Client::both(Protocol::Http2) {
        let error = client.fail(post(&peer, endless())).await;
        assert_eq!(verdict(&error), Delivery::Refused);
    }
    assert_eq!(peer.ended(2).await, 0);
}

#[tokio::test]
async fn a_stream_reset_for_any_other_reason_may_have_been_applied() {
    for code in [
        frame::NO_ERROR,
        frame::PROTOCOL_ERROR,
        frame::INTERNAL_ERROR,
        STREAM_CLOSED,
        frame::CANCEL,
        frame::ENHANCE_YOUR_CALM,
        HTTP_1_1_REQUIRED,
        UNDEFINED,
    ] {
        let peer = Peer::start(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            let stream = conn.stream().await?;
            conn.write_all(&frame::rst_stream(stream, code)).await?;
            conn.drain().await;
            Ok(())
        });
        for client in Client::both(Protocol::Http2) {
            let error = client.fail(post(&peer, full("an order"))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent, "{code}");
            let reason = h2(&error).and_then(h2::Error::reason).map(u32::from);
            assert_eq!(reason, Some(code), "{}", chain(&*error));
        }
        assert_eq!(peer.ended(2).await, 2);
    }
}

#[tokio::test]
async fn a_reset_before_the_body_was_taken_is_proven_unsent_by_the_witness() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = conn.stream_head().await?;
        conn.write_all(&frame::rst_stream(stream, frame::CANCEL))
            .await?;
        conn.drain().await;
        Ok(())
    });
    for client in Client::both(Protocol::Http2) {
        let error = client.fail(post(&peer, endless())).await;
        let expected = client.evidence.proves(Delivery::NotSent);
        assert_eq!(verdict(&error), expected);
    }
    assert_eq!(peer.ended(2).await, 0);
}

#[tokio::test]
async fn a_goaway_below_the_stream_says_that_a_request_with_a_body_was_not_acted_on() {
    for code in [
        frame::NO_ERROR,
        frame::INTERNAL_ERROR,
        frame::ENHANCE_YOUR_CALM,
    ] {
        for closes in [false, true] {
            let peer = Peer::start(move |mut conn| async move {
                conn.start_http2(&[]).await?;
                conn.stream_head().await?;
                conn.write_all(&frame::goaway(0, code)).await?;
                if closes {
                    conn.fin().await?;
                }
                conn.drain().await;
                Ok(())
            });
            for client in Client::both(Protocol::Http2) {
                let error = client.fail(post(&peer, full("an order"))).await;
                let expected = client.evidence.proves(Delivery::Refused);
                assert_eq!(verdict(&error), expected);
                let said = h2(&error).is_some_and(|error| error.is_go_away() && error.is_remote());
                assert!(said, "{}", chain(&*error));
            }
            assert_eq!(peer.ended(2).await, 0);
        }
    }
}

/// hyper passes the connection's GOAWAY off as the error of a request whose head is on its way.
#[tokio::test]
async fn a_goaway_proves_nothing_for_a_request_that_is_complete_with_its_head() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.stream().await?;
        conn.write_all(&frame::goaway(0, frame::NO_ERROR)).await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http2) {
        let error = client.fail(post(&peer, empty())).await;
        assert_eq!(verdict(&error), Delivery::MaybeSent);
    }
    assert_eq!(peer.ended(2).await, 2);
}

#[tokio::test]
async fn a_goaway_that_closes_at_once_refuses_or_proves_nothing() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.stream_head().await?;
        // What the client still sends meets a closed socket, and the answer to that may come first.
        conn.write_all(&frame::goaway(0, frame::NO_ERROR)).await
    });
    for client in Client::both(Protocol::Http2) {
        for _ in 0..25 {
            let error = client.fail(post(&peer, full("an order"))).await;
            let verdict = verdict(&error);
            let possible = [
                client.evidence.proves(Delivery::Refused),
                Delivery::MaybeSent,
            ];
            assert!(possible.contains(&verdict), "{verdict}: {}", chain(&*error));
        }
    }
    assert_eq!(peer.ended(50).await, 0);
}

#[tokio::test]
async fn a_goaway_that_includes_the_stream_proves_nothing() {
    for last in [1, 0x7fff_ffff] {
        for code in [
            frame::NO_ERROR,
            frame::ENHANCE_YOUR_CALM,
            frame::PROTOCOL_ERROR,
        ] {
            let peer = Peer::start(move |mut conn| async move {
                conn.start_http2(&[]).await?;
                conn.stream().await?;
                conn.write_all(&frame::goaway(last, code)).await?;
                conn.close().await
            });
            for client in Client::both(Protocol::Http2) {
                let error = client.fail(post(&peer, full("an order"))).await;
                assert_eq!(verdict(&error), Delivery::MaybeSent, "{last} {code}");
            }
            assert_eq!(peer.ended(2).await, 2);
        }
    }
}

#[tokio::test]
async fn a_request_that_was_read_before_the_connection_died_may_have_been_applied() {
    let closed = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.stream().await?;
        conn.close().await
    });
    let reset = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.stream().await?;
        conn.reset()
    });
    for peer in [closed, reset] {
        for client in Client::both(Protocol::Http2) {
            for (method, body) in [(Method::POST, full("an order")), (Method::GET, empty())] {
                let error = client.fail(request(method, &peer, body)).await;
                assert_eq!(verdict(&error), Delivery::MaybeSent);
            }
        }
        assert_eq!(peer.ended(4).await, 4);
    }
}

/// HEADERS do not wait for the server's SETTINGS, so that their absence proves nothing.
#[tokio::test]
async fn a_server_that_never_sends_settings_gets_the_request_all_the_same() {
    let peer = Peer::start(|mut conn| async move {
        conn.read_exact(frame::PREFACE.len()).await?;
        conn.stream().await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http2) {
        let error = client.fail(post(&peer, full("an order"))).await;
        assert_eq!(verdict(&error), Delivery::MaybeSent);
    }
    assert_eq!(peer.ended(2).await, 2);
}

/// An error that h2 finds by itself looks like a GOAWAY, and says nothing of the server's part.
#[tokio::test]
async fn a_server_that_breaks_the_protocol_may_have_applied_the_request() {
    let http1: fn(u32) -> Vec<u8> =
        |_| b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec();
    let data_on_stream_0: fn(u32) -> Vec<u8> = |_| frame::data(0, b"x", false);
    let no_status: fn(u32) -> Vec<u8> = |stream| frame::headers(stream, &[("x-a", "b")], false);
    for answer in [http1, data_on_stream_0, no_status] {
        let peer = Peer::start(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            let stream = conn.stream().await?;
            conn.write_all(&answer(stream)).await?;
            conn.drain().await;
            Ok(())
        });
        for client in Client::both(Protocol::Http2) {
            let error = client.fail(post(&peer, full("an order"))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
            let own = h2(&error).is_some_and(h2::Error::is_library);
            assert!(own, "{}", chain(&*error));
        }
        assert_eq!(peer.ended(2).await, 2);
    }
}

#[tokio::test]
async fn an_answer_that_ends_early_counts_while_the_upload_is_stopped() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = conn.stream_head().await?;
        let mut answer = frame::headers_ok(stream, true);
        answer.extend(frame::rst_stream(stream, frame::NO_ERROR));
        conn.write_all(&answer).await?;
        conn.drain().await;
        Ok(())
    });
    for client in Client::both(Protocol::Http2) {
        let response = client.succeed(post(&peer, endless())).await;
        assert_eq!(response.status(), StatusCode::OK);
    }
    assert_eq!(peer.ended(2).await, 0);
}

#[tokio::test]
async fn a_lost_keep_alive_is_a_timeout_and_proves_nothing() {
    async fn silent(mut conn: Conn) -> std::io::Result<()> {
        conn.start_http2(&[]).await?;
        conn.stream().await?;
        conn.tell();
        // Reads the PING and does not answer.
        conn.drain().await;
        Ok(())
    }
    let peer = Peer::start(silent);
    for evidence in Evidence::ALL {
        let mut builder = builder(Protocol::Http2);
        builder
            .http2_keep_alive_interval(Duration::from_secs(1))
            .http2_keep_alive_timeout(Duration::from_secs(1));
        let client = Client::built(evidence, &builder, nodelay());
        let mut call = Box::pin(client.fail(post(&peer, full("an order"))));
        tokio::select! {
            error = &mut call => panic!("{}", chain(&*error)),
            () = peer.told() => {}
        }
        // Nothing is left to wait for but the two timers.
        pause();
        let error = call.await;
        tokio::time::resume();
        assert_eq!(verdict(&error), Delivery::MaybeSent);
        for decision in [unrepeatable(&*error), repeatable(&*error)] {
            let reason = decision.outcome.reason();
            assert_eq!(reason, Some(Reason::TimedOut), "{}", chain(&*error));
        }
    }
    assert_eq!(peer.ended(2).await, 2);
}
