//! tonic's channel with several calls, at once or one after the other.

use std::io;

use tonic::{Status, transport::Channel};
use tower::ServiceExt;
use tower_outcome::{BoxError, Delivery, Witnessed};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Evidence, settle, within},
    connector::Tap,
    grpc::{PLACE, answer, call, endpoint, lazy, message, stack, unary},
    peer::{Conn, Peer},
    verdict::{chain, proven_by, verdict},
};

/// One stream is open, one waits for its turn, one is in the queue, and the connection ends.
#[tokio::test]
async fn a_call_that_waited_for_its_turn_is_proven_unsent_by_the_witness() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[(frame::MAX_CONCURRENT_STREAMS, 1)])
            .await?;
        let stream = conn.stream().await?;
        // The client has seen the limit by then.
        conn.ping().await?;
        conn.tell();
        conn.told().await;
        // The client writes an answer, so that the connection is no witness any more.
        conn.ping().await?;
        conn.write_all(&frame::goaway(stream, frame::NO_ERROR))
            .await?;
        conn.close().await
    });
    for evidence in Evidence::ALL {
        let stack = lazy(evidence, &endpoint(&peer));
        let start = || tokio::spawn(stack.clone().oneshot(call(message())));
        let open = start();
        peer.told().await;
        let waiting = start();
        settle().await;
        let queued = start();
        settle().await;
        peer.tell();
        let open = within(open).await.unwrap().unwrap_err();
        let waiting = within(waiting).await.unwrap().unwrap_err();
        let queued = within(queued).await.unwrap().unwrap_err();
        assert_eq!(verdict(&open), Delivery::MaybeSent);
        let expected = evidence.proves(Delivery::NotSent);
        assert_eq!(verdict(&waiting), expected);
        if evidence == Evidence::Witnesses {
            assert_eq!(proven_by(&waiting), Some(Witnessed::Body));
        }
        assert_eq!(verdict(&queued), Delivery::NotSent);
        // What generated code makes of it has a code that says the opposite.
        let status = Status::from_error(queued);
        assert_eq!(verdict(&status.into()), Delivery::NotSent);
    }
    assert_eq!(peer.ended(2).await, 2);
}

async fn answer_all(mut conn: Conn) -> io::Result<()> {
    conn.start_http2(&[]).await?;
    loop {
        let stream = conn.stream().await?;
        conn.write_all(&answer(stream)).await?;
    }
}

fn tapped(peer: &Peer, tap: &Tap) -> Channel {
    endpoint(peer).connect_with_connector_lazy(tap.clone())
}

#[tokio::test]
async fn an_end_that_a_channel_noticed_while_idle_costs_nothing_but_a_connection() {
    for evidence in Evidence::ALL {
        let peer = Peer::script()
            .connection(|mut conn| async move {
                conn.start_http2(&[]).await?;
                let stream = conn.stream().await?;
                conn.write_all(&answer(stream)).await?;
                conn.close().await
            })
            .connection(answer_all)
            .start();
        let tap = Tap::new();
        let stack = stack(evidence, tapped(&peer, &tap));
        assert_eq!(unary(stack.clone(), PLACE).await.unwrap(), "hi");
        tap.closed().await;
        assert_eq!(unary(stack, PLACE).await.unwrap(), "hi");
        assert_eq!(peer.ended(2).await, 2);
    }
}

#[tokio::test]
async fn an_end_that_a_channel_did_not_notice_yet_is_unsent_or_unknown() {
    for evidence in Evidence::ALL {
        for _ in 0..25 {
            let peer = Peer::script()
                .connection(|mut conn| async move {
                    conn.start_http2(&[]).await?;
                    let stream = conn.stream().await?;
                    conn.write_all(&answer(stream)).await?;
                    // So that what arrives next on the client's side is the end.
                    conn.ping().await?;
                    conn.tell();
                    conn.told().await;
                    Ok(())
                })
                .connection(answer_all)
                .start();
            let tap = Tap::new();
            let stack = stack(evidence, tapped(&peer, &tap));
            unary(stack.clone(), PLACE).await.unwrap();
            peer.told().await;
            settle().await;
            peer.tell();
            tap.readable_meanwhile_blocked();
            let second = unary(stack, PLACE).await;
            // The second is read by a second connection or not at all.
            assert_eq!(peer.whole().len(), peer.connections());
            if let Err(status) = second {
                let error = BoxError::from(status);
                let verdict = verdict(&error);
                let possible = [Delivery::NotSent, Delivery::MaybeSent];
                assert!(possible.contains(&verdict), "{verdict}: {}", chain(&*error));
            }
        }
    }
}
