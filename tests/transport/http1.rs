//! HTTP/1.1 on a connection of its own.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use futures_util::future::poll_immediate;
use http::{Method, StatusCode, header::CONTENT_LENGTH};
use tokio::time::{advance, error::Elapsed, pause, timeout};
use tower::ServiceExt;
use tower_outcome::{BoxError, Delivery, Reason, Witnessed};

use super::{
    client::{Client, Evidence, Protocol, endless, frames, full, post, request},
    peer::Peer,
    verdict::{cause, chain, proven_by, repeatable, unrepeatable, verdict},
};

/// A body in one frame that no socket buffer holds.
fn large() -> Bytes {
    Bytes::from(vec![7; 8 << 20])
}

#[tokio::test]
async fn a_request_that_was_read_before_the_end_may_have_been_applied() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http1) {
        let error = client.fail(post(&peer, full("an order"))).await;
        assert_eq!(verdict(&error), Delivery::MaybeSent);
        let incomplete = cause(&*error).is_some_and(hyper::Error::is_incomplete_message);
        assert!(incomplete, "{}", chain(&*error));
    }
    assert_eq!(peer.ended(2).await, 2);
}

#[tokio::test]
async fn a_request_that_was_read_before_the_reset_may_have_been_applied() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.reset()
    });
    for client in Client::both(Protocol::Http1) {
        for method in [Method::GET, Method::POST] {
            let error = client.fail(request(method, &peer, full(""))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
    }
    assert_eq!(peer.ended(4).await, 4);
}

#[tokio::test]
async fn a_request_left_unread_on_a_closed_connection_proves_nothing() {
    let peer = Peer::start(|mut conn| async move {
        // The first byte shows that the request is here; the rest stays in the buffer.
        conn.read_exact(1).await?;
        Ok(())
    });
    for client in Client::both(Protocol::Http1) {
        let error = client.fail(post(&peer, full("an order"))).await;
        assert_eq!(verdict(&error), Delivery::MaybeSent);
    }
    assert_eq!(peer.ended(2).await, 0);
}

#[tokio::test]
async fn a_large_body_that_was_handed_over_in_one_frame_proves_nothing() {
    let peer = Peer::start(|mut conn| async move {
        conn.read_head().await?;
        Ok(())
    });
    for client in Client::both(Protocol::Http1) {
        let error = client.fail(post(&peer, full(large()))).await;
        assert_eq!(verdict(&error), Delivery::MaybeSent);
    }
    assert_eq!(peer.ended(2).await, 0);
}

#[tokio::test]
async fn a_body_that_was_not_taken_to_its_end_is_proven_unsent_by_the_witness() {
    let closed = Peer::start(|mut conn| async move {
        conn.read_head().await?;
        Ok(())
    });
    let half_closed = Peer::start(|mut conn| async move {
        conn.read_head().await?;
        conn.close().await
    });
    for peer in [closed, half_closed] {
        for client in Client::both(Protocol::Http1) {
            let error = client.fail(post(&peer, endless())).await;
            let expected = client.evidence.proves(Delivery::NotSent);
            assert_eq!(verdict(&error), expected);
            if client.evidence == Evidence::Witnesses {
                assert_eq!(proven_by(&error), Some(Witnessed::Body));
            }
        }
        assert_eq!(peer.ended(2).await, 0);
    }
}

/// The stream never says that it is over, and the server does not need to be told.
#[tokio::test]
async fn a_body_of_the_declared_length_is_whole_for_the_server_and_for_the_witness() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http1) {
        let mut request = post(&peer, endless());
        request.headers_mut().insert(CONTENT_LENGTH, 3.into());
        let error = client.fail(request).await;
        assert_eq!(verdict(&error), Delivery::MaybeSent);
    }
    assert_eq!(peer.ended(2).await, 2);
}

#[tokio::test]
async fn an_early_refusal_is_lost_or_seen_when_the_connection_goes_with_it() {
    let peer = Peer::start(|mut conn| async move {
        conn.read_head().await?;
        conn.write_all(b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 0\r\n\r\n")
            .await
    });
    for client in Client::both(Protocol::Http1) {
        match client.send(post(&peer, full(large()))).await {
            Ok(response) => assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE),
            Err(error) => assert_eq!(verdict(&error), Delivery::MaybeSent),
        }
    }
    assert_eq!(peer.ended(2).await, 0);
}

#[tokio::test]
async fn an_early_refusal_is_seen_when_the_connection_stays() {
    let peer = Peer::start(|mut conn| async move {
        conn.read_head().await?;
        conn.write_all(b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 0\r\n\r\n")
            .await?;
        conn.told().await;
        Ok(())
    });
    for client in Client::both(Protocol::Http1) {
        let response = client.succeed(post(&peer, full(large()))).await;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        peer.tell();
    }
    assert_eq!(peer.ended(2).await, 0);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_or_no_http_may_follow_an_applied_request() {
    let answers: [&[u8]; 3] = [b"HTTP/1.1 20", b"SSH-2.0-OpenSSH_9.9\r\n\r\n", b"\r\n"];
    for answer in answers {
        let peer = Peer::start(move |mut conn| async move {
            conn.request().await?;
            conn.write_all(answer).await?;
            conn.close().await
        });
        for client in Client::both(Protocol::Http1) {
            let error = client.fail(post(&peer, full("an order"))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
        assert_eq!(peer.ended(2).await, 2);
    }
}

#[tokio::test]
async fn a_silent_server_is_waited_for_without_end_and_a_timeout_above_proves_nothing() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.tell();
        conn.drain().await;
        Ok(())
    });
    for client in Client::both(Protocol::Http1) {
        let mut call = pin!(
            client
                .service
                .clone()
                .oneshot(post(&peer, full("an order")))
        );
        tokio::select! {
            _ = &mut call => panic!("answered"),
            () = peer.told() => {}
        }
        pause();
        advance(Duration::from_secs(24 * 60 * 60)).await;
        assert!(poll_immediate(&mut call).await.is_none());
        let elapsed = timeout(Duration::from_secs(1), &mut call).await;
        tokio::time::resume();
        let error = BoxError::from(elapsed.map(|_| ()).unwrap_err());
        assert!(error.is::<Elapsed>());
        assert_eq!(verdict(&error), Delivery::MaybeSent);
        for decision in [unrepeatable(&*error), repeatable(&*error)] {
            assert_eq!(decision.outcome.reason(), Some(Reason::TimedOut));
        }
    }
    assert_eq!(peer.ended(2).await, 2);
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_connection_along() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.tell();
        conn.gone().await;
        Ok(())
    });
    let clients = Client::both(Protocol::Http1);
    for client in &clients {
        tokio::select! {
            _ = client.send(post(&peer, full("an order"))) => panic!("answered"),
            () = peer.told() => {}
        }
    }
    assert_eq!(peer.ended(2).await, 2);
    // It was the call that closed them, for the clients live on.
    drop(clients);
}

/// A frame that the transport has asked for and not got is not taken.
#[tokio::test]
async fn a_body_of_which_no_frame_came_is_proven_unsent_by_the_witness() {
    let peer = Peer::start(|mut conn| async move {
        conn.read_head().await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http1) {
        let silent = frames(futures_util::stream::pending());
        let error = client.fail(post(&peer, silent)).await;
        let expected = client.evidence.proves(Delivery::NotSent);
        assert_eq!(verdict(&error), expected);
    }
    assert_eq!(peer.ended(2).await, 0);
}
